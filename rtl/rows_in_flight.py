"""Rows that have been read to be changed, and not yet been written back (SCATTER with ADD)."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.interfaces import bus_address

__all__ = ["RowsInFlight"]

#: Bits of the running number of a row, far more than rows in flight: when the numbers come round,
#: a row meets what it left behind itself.
_NUMBER_BITS = 12

#: Entries of each memory for each read in flight. A row that meets others in all memories waits
#: for nothing, so this makes that rare.
_ENTRIES = 16


class RowsInFlight(wiring.Component):
    """Tells whether a row may be read, or an earlier change of it has not been written yet.

    Three memories, each indexed by another hash of the row's address, hold the number of the last
    row that came there. Rows are written in order, so an entry tells for sure that no row in flight
    came there; if all say otherwise the row waits, in rare cases for nothing.

    Protocol, for one row at a time: `load` with its `home`; `enter` in the cycle after it; from the
    cycle after that on, `free` says whether it may be read; `leave` when it is, not before. The
    next `load` may come with `leave`. A reset must be followed by `clear`.

    Parameters
    ----------
    config : Config
        The configuration; `read_outstanding` gives the size.

    Members
    -------
    clear : In(1)
        Pulse before the first row of a list: none is in flight.
    load, home : In
        A row comes; word address of its first word.
    enter, leave : In(1)
        See above.
    written : In(1)
        The oldest row is in memory.
    free : Out(1)
        No earlier row with the same home is in flight.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._index_bits = max(10, ceil_log2(_ENTRIES * config.read_outstanding))
        super().__init__(
            {
                "clear": In(1),
                "load": In(1),
                "home": In(bus_address(config).width - 2),
                "enter": In(1),
                "leave": In(1),
                "written": In(1),
                "free": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        # Numbers go on from list to list, even over a reset, so that entries of earlier ones look
        # old; at first they are far from what the memories hold.
        bits = self._index_bits
        number = Signal(_NUMBER_BITS, init=1 << (_NUMBER_BITS - 1), reset_less=True)
        oldest = Signal.like(number)
        has_wrapped = Signal()
        m.d.sync += has_wrapped.eq(number < oldest)
        m.d.sync += [number.eq(number + self.leave), oldest.eq(oldest + self.written)]
        with m.If(self.clear):
            m.d.sync += oldest.eq(number)

        conflicts = []
        for name, turn in (("first", 0), ("second", 3), ("third", 7)):
            memory = Memory(
                shape=_NUMBER_BITS,
                depth=1 << bits,
                init=[],
                attrs={"no_rw_check": 1, "ram_style": "block"},
            )
            m.submodules[name] = memory
            write, read = memory.write_port(), memory.read_port()
            here = self._hash(m, self.home, turn)
            index = Signal(bits, name=f"{name}_index")
            with m.If(self.load):
                m.d.sync += index.eq(here)
            m.d.comb += [
                read.en.eq(self.load),
                read.addr.eq(here),
                write.en.eq(self.enter),
                write.addr.eq(index),
                write.data.eq(number),
            ]
            # The slow memory and a carry chain fill a cycle.
            since, beyond = Signal(name=f"{name}_since"), Signal(name=f"{name}_beyond")
            m.d.sync += [since.eq(read.data >= oldest), beyond.eq(read.data >= number)]
            conflicts.append(Mux(has_wrapped, since | ~beyond, since & ~beyond))
        m.d.comb += self.free.eq(~Cat(conflicts).all())
        return m

    def _hash(self, m: Module, address: Value, turn: int) -> Signal:
        """XOR of the pieces of an address, each turned by `turn` places more than the last."""
        bits = self._index_bits
        folded: Value = Const(0, bits)
        for number, start in enumerate(range(0, len(address), bits)):
            piece = Signal(bits)
            m.d.comb += piece.eq(address[start : start + bits])
            folded = folded ^ piece.rotate_left(turn * number % bits)
        index = Signal(bits)
        m.d.comb += index.eq(folded)
        return index
