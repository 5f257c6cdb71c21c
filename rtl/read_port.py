"""One port of the read engine: its beat buffer, and what it hands to the reader."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.burst import burst_limit
from hotline.rtl.interfaces import BURST_BITS, Status, bus_address, read_beat
from hotline.rtl.register_slice import register_slice

__all__ = ["ReadPort"]


class ReadPort(wiring.Component):
    """Ring of reserved, filled and readable beats, with a stream at its end.

    Space is reserved when a burst is granted (`take`), filled in any order (`fill`), and becomes
    readable burst by burst in order (`retire`).

    Contract: one `take`, one `fill` and one beat out per cycle. A beat appears two cycles after
    its burst has been retired. `data` may stall for ever: nothing but this port's own reservation
    (`fits`) depends on it. Reset empties the ring.

    A failed burst is remembered once: from its first beat on, every beat has `fault`. A window
    fault takes its turn behind the port's earlier bursts; an earlier burst that fails on the bus
    overrides it.

    Parameters
    ----------
    config : Config
    depth : int
        Beats in the ring, a power of two, at least four bursts.

    Members
    -------
    fits : Out
        A burst of any length may be taken in this cycle.
    take, take_beats : In
        Reserve so many beats from `start` on.
    start : Out
        Where the next reservation begins, with the wrap bit on top.
    fill, fill_addr, fill_data, fill_last : In
        A beat from the bus.
    retire, retire_beats, retire_addr, retire_fault : In
        The oldest burst of this port is complete; its bus address, and whether it failed.
    refuse, refuse_start, refuse_addr : In
        The reservation at `refuse_start` will not be filled: outside the windows.
    halt : In
        Nothing more shall be issued.
    blocked : Out
        A fault has been seen, or `halt` a cycle ago: nothing more may be issued for this port.
    data : Out stream of read_beat
    fault_code, fault_addr : Out
        First fault of the port in stream order; stands before its first beat is out.
    """

    def __init__(self, config: Config, depth: int) -> None:
        self._config = config
        self._depth = depth
        pointer = log2(depth) + 1
        super().__init__(
            {
                "fits": Out(1),
                "take": In(1),
                "take_beats": In(BURST_BITS),
                "start": Out(pointer),
                "fill": In(1),
                "fill_addr": In(pointer - 1),
                "fill_data": In(config.data_width),
                "fill_last": In(1),
                "retire": In(1),
                "retire_beats": In(BURST_BITS),
                "retire_addr": In(bus_address(config)),
                "retire_fault": In(1),
                "refuse": In(1),
                "refuse_start": In(pointer),
                "refuse_addr": In(bus_address(config)),
                "halt": In(1),
                "blocked": Out(1),
                "data": Out(stream.Signature(read_beat(config))),
                "fault_code": Out(Status),
                "fault_addr": Out(bus_address(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._elaborate_reservation(m)
        self._elaborate_fault(m)
        self._elaborate_output(m)
        return m

    def _elaborate_reservation(self, m: Module) -> None:
        """Pointers: `start` reserved up to here, `_ready` readable, `_next` next to read."""
        pointer = len(self.start)
        self._ready = Signal(pointer)
        self._next = Signal(pointer)
        self._read = Signal()
        freed = Signal()
        free = Signal(pointer, init=self._depth)
        m.d.sync += [
            freed.eq(self._read),
            free.eq(free + freed),
            # One burst more than needed: `free` does not know yet what this cycle takes. So the
            # grant does not wait for the subtraction.
            self.fits.eq(free >= 2 * burst_limit(self._config)),
        ]
        # The grant comes late, so it only chooses.
        with m.If(self.take):
            m.d.sync += [
                free.eq(free + freed - self.take_beats),
                self.start.eq(self.start + self.take_beats),
            ]

    def _elaborate_fault(self, m: Module) -> None:
        refused = Signal()
        self._failed = Signal()
        self._fault_start = Signal(len(self.start))
        turn = Signal()
        m.d.comb += [
            turn.eq(refused & ~self._failed & (self._ready == self._fault_start)),
        ]
        # Of one register, since all that may be issued depends on it.
        m.d.sync += self.blocked.eq(
            refused | self._failed | self.refuse | (self.retire & self.retire_fault) | self.halt
        )
        with m.If(self.refuse):
            m.d.sync += [
                refused.eq(1),
                self._fault_start.eq(self.refuse_start),
                self.fault_addr.eq(self.refuse_addr),
            ]
        with m.If(self.retire | turn):
            m.d.sync += self._ready.eq(self._ready + Mux(self.retire, self.retire_beats, 1))
        with m.If(self.retire & self.retire_fault & ~self._failed):
            m.d.sync += [
                self._failed.eq(1),
                self._fault_start.eq(self._ready),
                self.fault_code.eq(Status.BUS_READ),
                self.fault_addr.eq(self.retire_addr),
            ]
        with m.Elif(turn):
            m.d.sync += [self._failed.eq(1), self.fault_code.eq(Status.ADDR_WINDOW)]

    def _elaborate_output(self, m: Module) -> None:
        """Memory, memory register, output; each moves when the next one can take it."""
        config, depth = self._config, self._depth
        # `last` stands apart, so that it costs nothing where no reader looks at it.
        m.submodules.beats = beats = Memory(
            shape=config.data_width, depth=depth, init=[], attrs={"no_rw_check": 1}
        )
        m.submodules.lasts = lasts = Memory(shape=1, depth=depth, init=[], attrs={"no_rw_check": 1})
        m.submodules.out = slice_ = register_slice(config, read_beat(config))
        out, taken = slice_.input, slice_.output
        # A burst that was refused has one beat, which nobody has filled.
        refused = self.fault_code == Status.ADDR_WINDOW
        m.d.comb += [
            self.data.valid.eq(taken.valid),
            self.data.payload.eq(taken.payload),
            self.data.payload.last.eq(taken.payload.last | (taken.payload.fault & refused)),
            taken.ready.eq(self.data.ready),
        ]
        move_fetched = Signal()
        fetched, fetched_fault, faulty, fault = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            move_fetched.eq(~fetched | out.ready),
            self._read.eq(move_fetched & (self._next != self._ready)),
            fault.eq(faulty | (self._failed & (self._next == self._fault_start))),
        ]
        for memory, value in ((beats, self.fill_data), (lasts, self.fill_last)):
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.en.eq(self.fill),
                write.addr.eq(self.fill_addr),
                write.data.eq(value),
                read.en.eq(move_fetched),
                read.addr.eq(self._next),
            ]
            if memory is beats:
                m.d.comb += out.payload.data.eq(read.data)
            else:
                m.d.comb += out.payload.last.eq(read.data)
        with m.If(self._read):
            m.d.sync += [
                self._next.eq(self._next + 1),
                faulty.eq(fault),
                fetched_fault.eq(fault),
            ]
        with m.If(move_fetched):
            m.d.sync += fetched.eq(self._read)
        m.d.comb += [out.valid.eq(fetched), out.payload.fault.eq(fetched_fault)]
