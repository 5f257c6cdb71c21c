"""Memory in block RAM."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from hotline.fpga.axi_memory import MemoryPort

__all__ = ["BlockMemory"]


class BlockMemory(wiring.Component):
    """A bus beat a cycle, in block RAM that may be spread over the whole device.

    Latency: a read is answered four cycles after its request: the memory has registers before and
    behind it, because its blocks are far from each other. Back-pressure: none, it is always ready.
    Reset: forgets what is in flight; the contents stay.

    Parameters
    ----------
    data_width : int
        Bits of a beat.
    depth : int
        Beats, a power of two.

    Members
    -------
    port : In(MemoryPort)
    """

    def __init__(self, data_width: int, depth: int) -> None:
        self.data_width, self.depth = data_width, depth
        super().__init__({"port": In(MemoryPort(data_width, depth.bit_length() - 1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # A request either reads or writes, so that no read can meet a write.
        m.submodules.storage = storage = Memory(
            shape=self.data_width,
            depth=self.depth,
            init=[],
            attrs={"no_rw_check": 1, "ram_style": "block"},
        )
        write, read = storage.write_port(granularity=8), storage.read_port()
        request = self.port.request
        given = Signal.like(request.payload, reset_less=True)
        asked, fetched = Signal(), Signal()
        enable = Signal(self.data_width // 8)
        m.d.comb += [
            request.ready.eq(1),
            write.addr.eq(given.addr),
            write.data.eq(given.data),
            write.en.eq(enable),
            read.addr.eq(given.addr),
            read.en.eq(asked),
        ]
        m.d.sync += [
            given.eq(request.payload),
            enable.eq(0),
            asked.eq(request.valid & ~request.payload.write),
            fetched.eq(asked),
            self.port.read.valid.eq(fetched),
            self.port.read.data.eq(read.data),
        ]
        with m.If(request.valid & request.payload.write):
            m.d.sync += enable.eq(request.payload.strobe)
        return m
