"""A value, some steps later, in distributed RAM instead of a chain of registers."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["DelayLine"]

#: From so many steps on it is a memory.
_LEAST = 3


class DelayLine(wiring.Component):
    """Shows what `input` was `steps` steps before; `enable` makes a step.

    Reset does not clear what is on its way.

    Parameters
    ----------
    shape : ShapeLike
        Of the value.
    steps : int
        At least 1. One or two steps are registers: that is smaller.

    Members
    -------
    enable : In(1)
    input : In
    output : Out
    """

    def __init__(self, shape, steps: int) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1, not {steps}")
        self._shape, self._steps = shape, steps
        super().__init__({"enable": In(1), "input": In(shape), "output": Out(shape)})

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        if self._steps < _LEAST:
            value = self.input
            for step in range(self._steps):
                later = Signal(self._shape, name=f"step_{step}", reset_less=True)
                with m.If(self.enable):
                    m.d.sync += later.eq(value)
                value = later
            m.d.comb += self.output.eq(value)
            return m
        depth = self._steps - 1
        # Reads come out of a register, which is the last step; they see what the write of the same
        # cycle replaces.
        m.submodules.places = places = Memory(shape=self._shape, depth=depth, init=[])
        write, read = places.write_port(), places.read_port()
        m.d.comb += [
            write.en.eq(self.enable),
            read.en.eq(self.enable),
            read.addr.eq(write.addr),
            write.data.eq(self.input),
            self.output.eq(read.data),
        ]
        with m.If(self.enable):
            m.d.sync += write.addr.eq(Mux(write.addr == depth - 1, 0, write.addr + 1))
        return m
