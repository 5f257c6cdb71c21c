"""Second reads of rows: what is at home, for SCATTER with ADD."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.interfaces import bus_address
from hotline.rtl.row_reader import row_read
from hotline.rtl.rows_in_flight import RowsInFlight

__all__ = ["RowPairs", "homed_read"]


def homed_read(config: Config) -> data.StructLayout:
    """A row to read, and the word address of its home."""
    return data.StructLayout({"read": row_read(config), "home": bus_address(config).width - 2})


class RowPairs(wiring.Component):
    """With `add` follows each row with a read of what is at its home.

    The second read is of whole beats from the first on, so that its words lie as those of the
    first do, and does not come before earlier changes of that row are in memory. Latency one
    cycle; one read a cycle. Back-pressure holds it. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    add : In(1)
        Stable while rows pass.
    clear : In(1)
        Pulse before a list: no row is in flight.
    row_written : In(1)
        Pulse: another row of those with `add`, in order, is in memory.
    input : In
        Rows to read.
    output : Out
        The reads.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "add": In(1),
                "clear": In(1),
                "row_written": In(1),
                "input": In(stream.Signature(homed_read(config))),
                "output": Out(stream.Signature(row_read(config))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        shift = log2(self.config.data_words)
        m.submodules.flight = flight = RowsInFlight(self.config)
        held = Signal(homed_read(self.config), reset_less=True)
        valid, fresh, pair, second = Signal(), Signal(), Signal(), Signal()
        load, leave, out = Signal(), Signal(), self.output
        m.d.comb += [
            pair.eq(self.add & held.read.move),
            out.valid.eq(valid & (~second | flight.free)),
            out.payload.eq(held.read),
            leave.eq(out.valid & out.ready & (second | ~pair)),
            self.input.ready.eq(~valid | leave),
            load.eq(self.input.valid & self.input.ready),
            flight.clear.eq(self.clear),
            flight.load.eq(load),
            flight.home.eq(self.input.payload.home),
            flight.enter.eq(fresh & pair),
            flight.leave.eq(leave & second),
            flight.written.eq(self.row_written),
        ]
        with m.If(second):
            offset = held.home[:shift]
            m.d.comb += [
                out.payload.source.eq(Cat(Const(0, shift), held.home[shift:])),
                out.payload.dest.eq(0),
                out.payload.words.eq(held.read.words + offset),
            ]
        with m.If(self.input.ready):
            m.d.sync += [valid.eq(self.input.valid), held.eq(self.input.payload)]
        m.d.sync += fresh.eq(load)
        with m.If(out.valid & out.ready):
            m.d.sync += second.eq(pair & ~second)
        return m
