"""Register slice at half rate."""

from __future__ import annotations

from amaranth import Module, Signal

from hotline.rtl.stream_slice import StreamSlice

__all__ = ["StreamHalf"]


class StreamHalf(StreamSlice):
    """`valid` and `ready` both from one register: a transfer in two cycles, and no second place."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valid, payload = Signal(), Signal(self.shape, reset_less=True)
        m.d.comb += [
            self.input.ready.eq(~valid),
            self.output.valid.eq(valid),
            self.output.payload.eq(payload),
        ]
        with m.If(~valid):
            m.d.sync += [valid.eq(self.input.valid), payload.eq(self.input.payload)]
        with m.Elif(self.output.ready):
            m.d.sync += valid.eq(0)
        return m
