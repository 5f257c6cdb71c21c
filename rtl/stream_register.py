"""Register slice of a stream."""

from __future__ import annotations

from amaranth import Module, Mux, Signal

from hotline.rtl.stream_slice import StreamSlice

__all__ = ["StreamRegister"]


class StreamRegister(StreamSlice):
    """A register slice with `valid` and `ready` both from registers."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spare = Signal(self.shape, reset_less=True)
        front = Signal(self.shape, reset_less=True)
        full = Signal()
        valid = Signal()
        m.d.comb += [
            self.input.ready.eq(~full),
            self.output.valid.eq(valid),
            self.output.payload.eq(front),
        ]
        with m.If(~full):
            m.d.sync += spare.eq(self.input.payload)
        with m.If(self.output.ready | ~valid):
            m.d.sync += [valid.eq(full | self.input.valid), full.eq(0)]
            m.d.sync += front.eq(Mux(full, spare, self.input.payload))
        with m.Elif(self.input.valid):
            m.d.sync += full.eq(1)
        return m
