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
        move = self.output.ready | ~valid
        with m.If(~full):
            m.d.sync += spare.eq(self.input.payload)
        with m.If(move):
            m.d.sync += [
                valid.eq(full | self.input.valid),
                front.eq(Mux(full, spare, self.input.payload)),
            ]
        # As gates: the reset pin of a flip-flop is slow, and `output.ready` may come late.
        m.d.sync += full.eq(~move & (full | self.input.valid))
        return m
