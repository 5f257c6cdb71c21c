"""FIFO in block RAM."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["BlockFIFO"]


class BlockFIFO(wiring.Component):
    """First in, first out, with synchronous reads, so that it maps to block RAM.

    Latency: two cycles through an empty FIFO. Throughput: one item a cycle. Back-pressure: holds
    `depth` items beside the one it shows. Reset: empty; the memory itself is not cleared.

    Parameters
    ----------
    shape : ShapeLike
        What it holds.
    depth : int
        Items in the memory, a power of two.

    Members
    -------
    input : In(stream)
    output : Out(stream)

    Raises
    ------
    ValueError
        `depth` is not a power of two of at least 2.
    """

    def __init__(self, shape, depth: int) -> None:
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two from 2 on, not {depth}")
        self._shape, self._depth = shape, depth
        super().__init__(
            {"input": In(stream.Signature(shape)), "output": Out(stream.Signature(shape))}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        # An item is read a cycle after it was written at the earliest, and the reader never
        # passes the writer: no read can meet a write at one address, so no bypass is wanted.
        m.submodules.storage = storage = Memory(
            shape=self._shape,
            depth=self._depth,
            init=[],
            attrs={"no_rw_check": 1, "ram_style": "block"},
        )
        write, read = storage.write_port(), storage.read_port()
        level = Signal(range(self._depth + 1))
        some = Signal()  # level != 0, from a register
        push, fetch = Signal(), Signal()
        m.d.sync += some.eq(push | level[1:].any() | (level[0] & ~fetch))
        m.d.comb += [
            # The depth is a power of two: full is the top bit.
            self.input.ready.eq(~level[-1]),
            push.eq(self.input.valid & self.input.ready),
            write.en.eq(push),
            write.data.eq(self.input.payload),
            fetch.eq(some & (~self.output.valid | self.output.ready)),
            read.en.eq(fetch),
            self.output.payload.eq(read.data),
        ]
        with m.If(push):
            m.d.sync += write.addr.eq(write.addr + 1)
        with m.If(fetch):
            m.d.sync += [read.addr.eq(read.addr + 1), self.output.valid.eq(1)]
        with m.Elif(self.output.ready):
            m.d.sync += self.output.valid.eq(0)
        with m.If(push & ~fetch):
            m.d.sync += level.eq(level + 1)
        with m.Elif(fetch & ~push):
            m.d.sync += level.eq(level - 1)
        return m
