"""Register slice that delays only valid and payload."""

from __future__ import annotations

from amaranth import Module, Signal

from hotline.rtl.stream_slice import StreamSlice

__all__ = ["StreamStage"]


class StreamStage(StreamSlice):
    """One register: `input.ready` follows `output.ready` in the same cycle."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        payload = Signal(self.shape, reset_less=True)
        m.d.comb += [
            self.input.ready.eq(~self.output.valid | self.output.ready),
            self.output.payload.eq(payload),
        ]
        with m.If(self.input.ready):
            m.d.sync += [
                self.output.valid.eq(self.input.valid),
                payload.eq(self.input.payload),
            ]
        return m
