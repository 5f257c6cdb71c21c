"""Shallow FIFO in distributed RAM, used to cut long `ready` paths."""

from __future__ import annotations

from amaranth import Module, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

__all__ = ["SmallFIFO", "room_after"]


def room_after(level: ValueLike, limit: int, put: Value, take: Value) -> Value:
    """Whether there are fewer than `limit` items in the next cycle, without the adder of `level`.

    `put` only if there are fewer now.
    """
    level = Value.cast(level)
    return take | ~((level == limit) | ((level == limit - 1) & put))


class SmallFIFO(wiring.Component):
    """First in, first out, a few items deep.

    Latency: one cycle. Throughput: one item a cycle. `input.ready` and `output.valid` are
    registers: so it ends the combinational path of the consumer's `ready`. Reset: empty.

    Parameters
    ----------
    shape : ShapeLike
        What it holds.
    depth : int
        Items, at least 2.

    Members
    -------
    input : In(stream)
    output : Out(stream)
    more : Out(1)
        At least two items wait: after this one `output` stays valid.
    """

    def __init__(self, shape, depth: int = 4) -> None:
        self._shape, self._depth = shape, depth
        super().__init__(
            {
                "input": In(stream.Signature(shape)),
                "output": Out(stream.Signature(shape)),
                "more": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        payload = self.input.payload.as_value()
        m.submodules.fifo = fifo = SyncFIFO(width=len(payload), depth=self._depth)
        # As fifo.w_rdy and fifo.r_rdy, but from registers.
        room, some, put, take = Signal(init=1), Signal(), Signal(), Signal()
        m.d.sync += [
            room.eq(room_after(fifo.level, self._depth, put, take)),
            some.eq(put | self.more | (some & ~take)),
        ]
        m.d.comb += [
            put.eq(self.input.valid & room),
            take.eq(some & self.output.ready),
            fifo.w_data.eq(payload),
            fifo.w_en.eq(put),
            self.input.ready.eq(room),
            self.output.payload.eq(fifo.r_data),
            self.output.valid.eq(some),
            fifo.r_en.eq(take),
            self.more.eq(fifo.level[1:].any()),
        ]
        return m
