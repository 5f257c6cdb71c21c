"""What all register slices of streams have in common."""

from __future__ import annotations

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamSlice"]


class StreamSlice(wiring.Component):
    """A stream, a cycle later, at full rate unless its class says otherwise. Reset empties it.

    Parameters
    ----------
    shape : shape-castable
        Payload.

    Members
    -------
    input, output : streams of `shape`
    """

    def __init__(self, shape: data.Layout) -> None:
        self.shape = shape
        super().__init__(
            {
                "input": In(stream.Signature(shape)),
                "output": Out(stream.Signature(shape)),
            }
        )
