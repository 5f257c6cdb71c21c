"""A value, some steps later, in distributed RAM instead of a chain of registers."""

from __future__ import annotations

from amaranth import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["DelayLine"]


class DelayLine(wiring.Component):
    """Shows what `input` was `steps` steps before; `enable` makes a step.

    Reset does not clear what is on its way.

    Parameters
    ----------
    shape : ShapeLike
        Of the value.
    steps : int
        At least 3: below that registers are smaller.

    Members
    -------
    enable : In(1)
    input : In
    output : Out
    """

    def __init__(self, shape, steps: int) -> None:
        if steps < 3:
            raise ValueError(f"steps must be at least 3, not {steps}")
        self._shape, self._depth = shape, steps - 1
        super().__init__({"enable": In(1), "input": In(shape), "output": Out(shape)})

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        # Reads come out of a register, which is the last step; they see what the write of the same
        # cycle replaces.
        m.submodules.places = places = Memory(shape=self._shape, depth=self._depth, init=[])
        write, read = places.write_port(), places.read_port()
        m.d.comb += [
            write.en.eq(self.enable),
            read.en.eq(self.enable),
            read.addr.eq(write.addr),
            write.data.eq(self.input),
            self.output.eq(read.data),
        ]
        with m.If(self.enable):
            m.d.sync += write.addr.eq(Mux(write.addr == self._depth - 1, 0, write.addr + 1))
        return m
