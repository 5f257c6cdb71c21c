"""Gather DMA: rows by number, from anywhere in memory, as a stream of aligned beats."""

from __future__ import annotations

from amaranth import Module, Mux, ResetInserter, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.gen.config import Config
from hotline.rtl.axi import axi_read
from hotline.rtl.interfaces import Status, table_write, windows
from hotline.rtl.read_engine import ReadEngine, read_buffer_beats
from hotline.rtl.row_address import make_row_address
from hotline.rtl.row_reader import RowReader

__all__ = ["GatherDMA", "row_beat", "row_number"]


def row_number(config: Config) -> data.StructLayout:
    """Which row: `row` of `table`."""
    return data.StructLayout({"row": unsigned(32), "table": config.table_bits})


def row_beat(config: Config) -> data.StructLayout:
    """A beat of a row that begins in the first word of its first beat. `strobe` marks the 32-bit
    words that belong to the row, `last` its last beat."""
    return data.StructLayout({"data": config.data_width, "strobe": config.data_words, "last": 1})


class GatherDMA(wiring.Component):
    """Fetches rows over AXI4 and delivers them aligned, in the order asked for.

    Stands alone: address look-up and multiplication, range check, 4 KiB split, window check, many
    reads in flight under several IDs, reordering of what comes back, realignment. One beat and
    at most one row a cycle, as far as `read_outstanding` covers the latency of the memory. The
    bus is never stalled: RREADY is constant 1.

    After a fault no row is taken, no read is issued and nothing comes out; `drained` rises when
    the bus is quiet. Then a pulse of `restart` forgets all rows taken so far and goes on.

    Parameters
    ----------
    config : Config
        The configuration; `lanes`, the hot table and the write side do not matter.

    Members
    -------
    table_write : In
        Base, rows and row length of the tables; always ready, not while rows are asked for. Each
        table must be written before it is used: the memory is not reset.
    num_tables : In
        Tables that may be named; stable.
    windows : In
        Address windows; stable.
    rows : In
        Rows to fetch. A table without row length gives no beat.
    output : Out
        Their beats.
    fault, fault_code, fault_info : Out
        Level: INDEX_RANGE with (table << 32) + row, or BUS_READ or ADDR_WINDOW with the start
        address of the burst; of the first row, in order, that failed.
    drained : Out
        After a fault: no read is outstanding.
    restart : In
        Pulse, heeded while `drained`.
    axi : Out
        AXI4 read master.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "table_write": In(stream.Signature(table_write(config))),
                "num_tables": In(range(config.max_tables + 1)),
                "windows": In(windows(config)),
                "rows": In(stream.Signature(row_number(config))),
                "output": Out(stream.Signature(row_beat(config))),
                "fault": Out(1),
                "fault_code": Out(Status),
                "fault_info": Out(64),
                "drained": Out(1),
                "restart": In(1),
                "axi": Out(axi_read(config)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        flush = Signal()
        resettable = ResetInserter(flush)
        address, reader = make_row_address(config, slots=False), RowReader(config)
        engine = ReadEngine(config, [read_buffer_beats(config)])
        m.submodules.address = resettable(address)
        m.submodules.reader = resettable(reader)
        m.submodules.engine = resettable(engine)

        # The address unit begins with a scan, here of no table at all.
        started = Signal()
        m.d.sync += started.eq(~flush)
        connect(m, flipped(self.table_write), address.table_write)
        entry, row = address.entries, self.rows
        m.d.comb += [
            address.start.eq(~started),
            address.table_limit.eq(self.num_tables),
            entry.valid.eq(row.valid & ~self.fault),
            row.ready.eq(entry.ready & ~self.fault),
            entry.payload.entry.row.eq(row.payload.row),
            entry.payload.entry.table.eq(row.payload.table),
            entry.payload.entry.valid.eq(1),
        ]

        found, wanted = address.rows, reader.rows
        skip = Signal()
        m.d.comb += [
            skip.eq(~found.payload.move & ~found.payload.fault),
            wanted.valid.eq(found.valid & ~skip),
            found.ready.eq(wanted.ready | skip),
            wanted.payload.source.eq(found.payload.home),
            wanted.payload.words.eq(found.payload.words),
            wanted.payload.move.eq(found.payload.move),
            wanted.payload.fault.eq(found.payload.fault),
        ]
        connect(m, reader.request, engine.request[0])
        connect(m, engine.data[0], reader.data)
        connect(m, engine.axi, flipped(self.axi))

        beat, out = reader.output, self.output
        m.d.comb += [
            out.valid.eq(beat.valid),
            beat.ready.eq(out.ready),
            out.payload.data.eq(beat.payload.data),
            out.payload.strobe.eq(beat.payload.strobe),
            out.payload.last.eq(beat.payload.last),
            engine.windows.eq(self.windows),
            engine.halt.eq(self.fault),
            self.fault.eq(reader.read_fault | reader.index_fault),
            self.fault_code.eq(Mux(reader.read_fault, engine.fault_code[0], Status.INDEX_RANGE)),
            self.fault_info.eq(Mux(reader.read_fault, engine.fault_addr[0], address.fault_info)),
        ]
        # From registers, since a flush goes everywhere; once it has come, nothing is drained.
        m.d.sync += [
            self.drained.eq(self.fault & engine.idle & ~flush),
            flush.eq(self.drained & self.restart & ~flush),
        ]
        return m
