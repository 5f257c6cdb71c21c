"""Row mover: copies rows between their homes in the tables, hot buffers and a dense buffer."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.gen.config import Config, log2
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.burst import beat_bits
from hotline.rtl.gpu_turns import GpuTurns
from hotline.rtl.interfaces import (
    Status,
    bus_address,
    count_bits,
    hot_write,
    read_beat,
    read_request,
    row_entry,
    table_write,
    write_beat,
)
from hotline.rtl.register_slice import register_slice
from hotline.rtl.row_adder import RowAdder
from hotline.rtl.row_address import make_row_address, row_home, row_words_bits
from hotline.rtl.row_bursts import beat_address_bits
from hotline.rtl.row_pairs import RowPairs, homed_read
from hotline.rtl.row_pool import RowPool, pool_place
from hotline.rtl.row_reader import RowReader, rows_in_flight
from hotline.rtl.row_writer import RowWriter, row_place
from hotline.rtl.slot_address import SLOT_GRAIN
from hotline.rtl.small_fifo import SmallFIFO
from hotline.rtl.stream_register import StreamRegister

__all__ = ["Direction", "RowMover"]


class Direction(enum.Enum, shape=2):
    """Where rows come from and go to. Bit 0: to their homes; bit 1: the other side is a slot."""

    GATHER = 0  #: from the tables to the dense buffer
    SCATTER = 1  #: from the dense buffer to the tables
    FILL = 2  #: from the tables to the slots of all GPUs
    BACK = 3  #: from the slots of GPU 0 to the tables


class RowMover(wiring.Component):
    """Copies the rows of a list, in list order.

    The address side (table look-up, dense position, read bursts) runs ahead of the data side
    (realignment, write bursts); between them stand queues of one entry a row. One beat a cycle,
    and one row a cycle where a row is one beat; the first request comes num_tables + 14 cycles
    after `start` (later on a 32-bit bus, where addresses are computed serially). An entry is
    acted upon when its successor, or `last`, is known. A burst of the dense buffer spans rows
    that follow each other without a gap.

    Back-pressure on `output` stops the data side; the address side goes on until the queues or the
    read engine are full. Reset makes it idle whatever it was doing; data of requests made before
    must not arrive after it.

    Faults come in list order: a bad entry is reported when all rows before it have been read
    without a fault. After a fault only a few beats of those rows may follow, so a burst may stay
    unfinished; after a bad entry no other is taken, and after a failed read the address
    side goes on until its queues are full. Only reset leaves this state.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    start : In
        Pulse: begin a list. Only when idle or `done`.
    direction : In
        Stable while it runs, like all inputs up to `rows`.
    hot_rows : In
        GATHER: hot rows come from their slots, of one GPU after the other. Else they are skipped.
    add : In
        SCATTER: add the rows, as fp32, to what is there. Only where that unit is built.
    pool, weighted : In
        GATHER: sum the rows of each bag; times `weights`. Only where that unit is built.
    weights : In
        With `weighted`: binary32, one for each row.
    row_written : In
        Pulse: another row, in order, is in memory.
    gpu_count : In
        GPUs that take part, 1 to `gpus`.
    num_tables : In
        Tables whose longest row gives the stride.
    table_limit : In
        Tables that the list may name.
    rows : In
        Byte address of the dense buffer, 64-byte aligned.
    table_write, hot_write : In
        Write-through of the TABLE_* and HOT_* registers; always ready; not while it runs, nor
        both at once.
    entries : In
        The list, to its end marker. FILL and BACK: hot rows only.
    request, data : Out, In
        Port of the read engine.
    read_fault_code, read_fault_addr : In
        What the read engine says about this port's first fault.
    output : Out
        Channel of the write engine.
    count : Out
        Rows copied so far; final with `done`. Skipped (hot) entries do not count, and a row that
        goes to several GPUs counts once.
    done : Out
        Level: the list has ended and its last beat has been handed over.
    fault, fault_code, fault_info : Out
        Level, until reset: the list failed, with status and error info.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        tables = range(config.max_tables + 1)
        super().__init__(
            {
                "start": In(1),
                "direction": In(Direction),
                "hot_rows": In(1),
                "add": In(1),
                "pool": In(1),
                "weighted": In(1),
                "weights": In(stream.Signature(unsigned(32))),
                "row_written": In(1),
                "gpu_count": In(4),
                "num_tables": In(tables),
                "table_limit": In(tables),
                "rows": In(config.addr_width),
                "table_write": In(stream.Signature(table_write(config))),
                "hot_write": In(stream.Signature(hot_write(config))),
                "entries": In(stream.Signature(row_entry(config))),
                "request": Out(stream.Signature(read_request(config))),
                "data": In(stream.Signature(read_beat(config))),
                "read_fault_code": In(Status),
                "read_fault_addr": In(bus_address(config)),
                "output": Out(stream.Signature(write_beat(config))),
                "count": Out(count_bits(config)),
                "done": Out(1),
                "fault": Out(1),
                "fault_code": Out(Status),
                "fault_info": Out(64),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        shift = log2(config.data_words)
        m.submodules.turns = turns = GpuTurns(config)
        m.submodules.address = address = make_row_address(config)
        m.submodules.reader = reader = RowReader(config)
        m.submodules.writer = writer = RowWriter(config)
        places_layout = pool_place(config) if config.pool else row_place(config)
        m.submodules.places = places = BlockFIFO(places_layout, rows_in_flight(config))

        homewards, by_slot = self.direction.as_value()
        connect(m, flipped(self.table_write), address.table_write)
        connect(m, flipped(self.hot_write), address.hot_write)
        # Here ends the stall of the address side.
        m.submodules.next_entry = next_entry = register_slice(config, row_entry(config))
        connect(m, flipped(self.entries), next_entry.input)
        connect(m, next_entry.output, turns.input)
        connect(m, turns.output, address.entries)
        m.d.comb += [
            turns.start.eq(self.start),
            turns.gpu_count.eq(self.gpu_count),
            turns.repeat.eq(self.direction == Direction.FILL),
            turns.turns.eq(self.hot_rows),
            address.hot_rows.eq(self.hot_rows | by_slot),
            address.start.eq(self.start),
            address.num_tables.eq(self.num_tables),
            address.table_limit.eq(self.table_limit),
        ]

        # ---- dense side: position of each entry, skipped ones included ------------------------
        dense = Signal(beat_address_bits(config), reset_less=True)
        row_beats = Signal(range((config.max_row_bytes // 4 >> shift) + 2))
        stride = Signal.like(row_beats)

        def beats_of(words: Signal) -> Signal:
            return (words + (config.data_words - 1)) >> shift

        placed_row = data.StructLayout(
            {"home": row_home(config), "dense": len(dense), "close": 1, "zero": 1}
        )
        rows = stream.Signature(placed_row).create()
        m.d.comb += [
            rows.valid.eq(address.rows.valid),
            rows.payload.home.eq(address.rows.payload),
            rows.payload.dense.eq(dense),
            address.rows.ready.eq(rows.ready),
        ]
        if config.pool:
            # What the address unit does not need to know; it never has more entries inside.
            m.submodules.bags = bags = SmallFIFO(data.StructLayout({"close": 1, "zero": 1}), 16)
            entry = turns.output.payload.entry
            m.d.comb += [
                bags.input.payload.close.eq(entry.close),
                bags.input.payload.zero.eq(entry.zero),
                bags.input.valid.eq(address.entries.valid & address.entries.ready),
                bags.output.ready.eq(rows.valid & rows.ready),
                rows.payload.close.eq(bags.output.payload.close),
                rows.payload.zero.eq(bags.output.payload.zero),
            ]
        with m.If(self.start):
            m.d.sync += dense.eq(self.rows >> beat_bits(config))
        with m.Elif(rows.valid & rows.ready & (~self.pool | rows.payload.close)):
            m.d.sync += dense.eq(dense + stride)
        if not config.narrow:
            # All this leaves distributed RAM here, and goes far.
            m.submodules.found = next_row = StreamRegister(placed_row)
            connect(m, rows, next_row.input)
            rows = next_row.output
        row_found = rows.payload
        found = row_found.home
        m.d.comb += row_beats.eq(beats_of(found.words))
        m.d.sync += stride.eq(beats_of(address.widest))

        # ---- plan: source and destination of a row, held until the next entry is known --------
        valid, ready, go = Signal(), Signal(), Signal()
        home = Signal(bus_address(config).width - 2, reset_less=True)
        place = Signal(beat_address_bits(config), reset_less=True)
        words = Signal(row_words_bits(config), reset_less=True)
        move, last, fault, fills = Signal(), Signal(), Signal(), Signal()
        in_words = Cat(Const(0, SLOT_GRAIN - 2), found.slot)
        in_beats = Cat(Const(0, SLOT_GRAIN - beat_bits(config)), found.slot)
        known = Signal()
        closes, zeros = Signal(), Signal()
        # Where it goes, whether it passes twice: from registers, for the next one waits for this.
        to_place, to_read, wanted, ends, twice = (Signal() for _ in range(5))
        zero_row = Signal()
        m.d.comb += [
            # A last row with data passes twice: as a row, then as the end marker.
            ready.eq(~valid | (go & ~twice)),
            rows.ready.eq(ready),
            known.eq(ends | rows.valid),
            zero_row.eq(self.pool & row_found.zero & (found.words != 0)),
        ]
        with m.If(ready):
            m.d.sync += [
                valid.eq(rows.valid),
                home.eq(Mux(found.hot & ~by_slot, in_words, found.home)),
                place.eq(Mux(by_slot, in_beats, row_found.dense)),
                words.eq(found.words),
                move.eq(found.move),
                last.eq(found.last),
                fault.eq(found.fault),
                fills.eq(row_beats == stride),
                closes.eq(row_found.close),
                zeros.eq(zero_row),
                ends.eq(found.last | found.fault),
                twice.eq(found.move & found.last),
                to_read.eq(found.move | found.last | found.fault),
                to_place.eq(found.move | zero_row | (self.pool & found.last)),
                wanted.eq(found.move | found.last | found.fault | zero_row),
            ]
            with m.If(rows.valid):
                m.d.sync += self.count.eq(self.count + found.count)
        with m.Elif(go):
            m.d.sync += [move.eq(0), twice.eq(0), to_place.eq(zeros | (self.pool & last))]
        with m.If(self.start):
            m.d.sync += self.count.eq(0)

        # ---- to the reader and, for rows with data, to the queue of destinations --------------
        placed = Signal()
        target = Signal(places_layout)
        reads, beats = reader.rows, reader.output
        row = reads.payload
        if config.scatter_add:
            reads, beats = self._add(m, reads, beats)
            row = reads.payload.read
            m.d.comb += reads.payload.home.eq(home)
        m.d.comb += [
            placed.eq(places.input.ready),
            reads.valid.eq(valid & to_read & known & placed),
            go.eq(~wanted | (known & placed & (reads.ready | ~to_read))),
            row.source.eq(Mux(homewards, place << shift, home)),
            row.dest.eq(Mux(homewards, home[:shift], 0)),
            row.words.eq(words),
            reader.early.eq(homewards),
            row.move.eq(move),
            row.last.eq(last & ~move),
            row.fault.eq(fault),
            target.start.eq(Mux(homewards, home >> shift, place)),
            # The next row of the dense buffer begins where a row ends that fills its stride.
            target.joins.eq(~homewards & ~by_slot & ~self.pool & fills & ~last & found.move),
            places.input.payload.eq(target),
            places.input.valid.eq(valid & to_place & known & (reads.ready | ~to_read)),
        ]
        connect(m, reader.request, flipped(self.request))
        connect(m, flipped(self.data), reader.data)

        # ---- data side ------------------------------------------------------------------------
        m.d.comb += [
            writer.clear.eq(self.start),
            self.done.eq(writer.done),
            self.fault.eq(reader.read_fault | reader.index_fault),
            self.fault_code.eq(Mux(reader.read_fault, self.read_fault_code, Status.INDEX_RANGE)),
            self.fault_info.eq(Mux(reader.read_fault, self.read_fault_addr, address.fault_info)),
        ]
        # The read of block RAM ends in this slice.
        m.submodules.next_place = next_place = register_slice(config, places_layout)
        connect(m, places.output, next_place.input)
        placings = next_place.output
        if config.pool:
            m.d.comb += [
                target.words.eq(words),
                target.zero.eq(zeros),
                target.close.eq(closes),
                target.end.eq(last & ~move),
            ]
            placings, beats = self._pool(m, placings, beats)
        connect(m, placings, writer.places)
        connect(m, beats, writer.beats)
        connect(m, writer.output, flipped(self.output))
        return m

    def _pool(
        self, m: Module, places: wiring.PureInterface, beats: wiring.PureInterface
    ) -> tuple[wiring.PureInterface, wiring.PureInterface]:
        """Before the writer: the sums. Returns its streams."""
        m.submodules.pool = pool = RowPool(self.config)
        # Here end the choices between rows and sums of two rows, and between those and sums of
        # bags.
        m.submodules.next_total = next_total = register_slice(self.config, beats.payload.shape())
        m.submodules.next_sum = next_sum = register_slice(self.config, beats.payload.shape())
        m.submodules.next_start = next_start = register_slice(self.config, row_place(self.config))
        m.d.comb += [pool.pool.eq(self.pool), pool.weighted.eq(self.weighted)]
        connect(m, flipped(self.weights), pool.weights)
        connect(m, places, pool.places)
        connect(m, beats, next_total.input)
        connect(m, next_total.output, pool.beats)
        connect(m, pool.sums, next_sum.input)
        connect(m, pool.sum_places, next_start.input)
        return next_start.output, next_sum.output

    def _add(
        self, m: Module, reads: wiring.PureInterface, beats: wiring.PureInterface
    ) -> tuple[wiring.PureInterface, wiring.PureInterface]:
        """Around the reader: two reads of each row, and the sum. Returns the outer streams."""
        m.submodules.pairs = pairs = RowPairs(self.config)
        m.submodules.adder = adder = RowAdder(self.config)
        m.d.comb += [
            pairs.add.eq(self.add),
            pairs.clear.eq(self.start),
            pairs.row_written.eq(self.row_written & self.add),
            adder.add.eq(self.add),
        ]
        # A row that waits for its earlier sum stops here.
        m.submodules.next_read = next_read = register_slice(self.config, homed_read(self.config))
        connect(m, next_read.output, pairs.input)
        connect(m, pairs.output, reads)
        connect(m, beats, adder.input)
        return next_read.input, adder.output
