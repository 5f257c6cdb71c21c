"""The place of a block that is not built."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

__all__ = ["Absent"]


class Absent(wiring.Component):
    """Has the ports of a block, does nothing, and costs nothing: its outputs are constant.

    Parameters
    ----------
    block : wiring.Component
        The block that would be there.
    ones : sequence of str
        Outputs that are 1, such as those that say that nothing is under way; all others are 0.
    """

    def __init__(self, block: wiring.Component, ones: Sequence[str] = ()) -> None:
        self._ones = ones
        super().__init__(block.signature)
        # Only its ports are of use, and Amaranth would warn that it is not elaborated.
        block._MustUse__used = True

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for path, member, value in self.signature.flatten(self):
            if member.flow is Out:
                m.d.comb += Value.cast(value).eq(int(path[-1] in self._ones))
        return m
