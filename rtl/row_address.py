"""Home addresses of rows: table lookup, range check and address multiplication."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.gpu_turns import routed_entry
from hotline.rtl.interfaces import TableField, bus_address, hot_write, table_write
from hotline.rtl.slot_address import SlotAddress, slot_address_bits
from hotline.rtl.small_fifo import SmallFIFO

__all__ = ["RowAddress", "make_row_address", "row_address_members", "row_home", "row_words_bits"]

#: Bits of the row number that one 18x18 multiplier takes.
_LOW_BITS = 18

#: Results that may wait; a distributed RAM has 16 entries anyway.
_RESULTS = 16


def row_words_bits(config: Config) -> int:
    """Bits of a row length in 32-bit words."""
    return (config.max_row_bytes // 4).bit_length()


def row_home(config: Config) -> data.StructLayout:
    """A row found in its table.

    `move`: there is a row to copy, `words` long (at least 1; an entry with `zero` has a length
    too). Its home is at word address `home`, its slot at `slot` in units of 64 bytes; `hot`: the
    entry said that it has a slot. Without `move` the entry was skipped, but keeps its position in
    the dense buffer, unless it is a mere end marker. `count`: the entry counts as a row copied (a
    row of a table without row length counts, though there is nothing to move). `last` ends the
    list. `fault`: the entry names no row of the table, or no slot; nothing follows.
    """
    return data.StructLayout(
        {
            "home": bus_address(config).width - 2,
            "slot": slot_address_bits(config),
            "words": row_words_bits(config),
            "move": 1,
            "hot": 1,
            "count": 1,
            "last": 1,
            "fault": 1,
        }
    )


def row_address_members(config: Config) -> dict[str, wiring.Member]:
    """Members of :class:`RowAddress` and of its serial sibling."""
    return {
        "table_write": In(stream.Signature(table_write(config))),
        "hot_write": In(stream.Signature(hot_write(config))),
        "start": In(1),
        "num_tables": In(range(config.max_tables + 1)),
        "table_limit": In(range(config.max_tables + 1)),
        "hot_rows": In(1),
        "entries": In(stream.Signature(routed_entry(config))),
        "rows": Out(stream.Signature(row_home(config))),
        "scanning": Out(1),
        "widest": Out(row_words_bits(config)),
        "fault_info": Out(unsigned(64)),
    }


def make_row_address(config: Config, *, slots: bool = True) -> wiring.Component:
    """The row address unit that suits the configuration; without `slots` only homes are wanted.

    On a 32-bit bus a row of 64 bytes takes 16 beats, so a serial unit (one memory, one adder, one
    bit of the row length a cycle) keeps up, and saves most of the logic.
    """
    from hotline.rtl.serial_row_address import SerialRowAddress

    return SerialRowAddress(config) if config.narrow else RowAddress(config, slots=slots)


class RowAddress(wiring.Component):
    """Turns (table, row) into the home address of the row, one a cycle.

    Latency 6 cycles. Results wait in a queue; an entry is only taken when there is a place for its
    result, so that nothing stops the pipeline, and `ready` depends on registers alone. The table
    registers are kept in a memory that reset does not clear: they are written through
    `table_write` (always ready), never while a command runs. Entries are taken from `start` on,
    to one with `last` or `fault`. Reset empties the pipeline and forgets a fault.

    Parameters
    ----------
    config : Config
        The configuration.
    slots : bool
        Slots are wanted too; else `hot_write` has no effect and the slots of the results are 0.

    Members
    -------
    table_write, hot_write : In
        Write-through of the TABLE_* and HOT_* registers; always ready, never both at once.
    start : In
        Pulse: forget the fault, and scan the tables below `num_tables` for the longest row.
        Only while nothing is in flight.
    num_tables : In
        Tables of the scan; stable from `start` until `scanning` falls.
    table_limit : In
        Tables that entries may name; stable.
    hot_rows : In
        Hot rows are wanted too; else they are skipped without a check. Stable.
    entries : In
        Rows wanted.
    rows : Out
        One result for each entry.
    scanning : Out
        The scan runs; no entry is taken meanwhile.
    widest : Out
        Longest row of the scan, in words.
    fault_info : Out
        (table << 32) + row of the entry with `fault`; valid from its result on.
    """

    def __init__(self, config: Config, *, slots: bool = True) -> None:
        self.config, self._slots = config, slots
        super().__init__(row_address_members(config))

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        index_bits = max(1, ceil_log2(config.max_tables))
        home_bits = config.addr_width - 2
        entry, gpu = self.entries.payload.entry, self.entries.payload.gpu
        m.submodules.results = results = SmallFIFO(row_home(config), _RESULTS)
        connect(m, results.output, flipped(self.rows))
        result = results.input.payload

        # ---- table registers ------------------------------------------------------------------
        ports = {}
        value = self.table_write.payload.value
        fields = {
            "base_lo": (TableField.BASE_LO, value[2:]),
            "base_hi": (TableField.BASE_HI, value[: max(0, config.addr_width - 32)]),
            "rows": (TableField.ROWS, value[: min(32, config.row_bits + 1)]),
            "words": (TableField.ROW_BYTES, value[2 : 2 + row_words_bits(config)]),
        }
        m.d.comb += self.table_write.ready.eq(1)
        for name, (field, source) in fields.items():
            if len(source) == 0:
                continue
            table = memory.Memory(
                shape=len(source), depth=1 << index_bits, init=[], attrs={"no_rw_check": 1}
            )
            m.submodules[f"table_{name}"] = table
            write, ports[name] = table.write_port(), table.read_port()
            m.d.comb += [
                write.addr.eq(self.table_write.payload.table),
                write.data.eq(source),
                write.en.eq(self.table_write.valid & (self.table_write.payload.field == field)),
            ]

        # ---- control --------------------------------------------------------------------------
        credits = Signal(range(_RESULTS + 1), init=_RESULTS)
        stopped = Signal(init=1)
        position = Signal(range(config.max_tables + 1))
        scan = Signal()
        scan_0, scan_1, scan_2 = Signal(), Signal(), Signal()
        take = Signal()
        m.d.comb += [
            scan_0.eq(scan & (position != self.num_tables)),
            self.scanning.eq(scan),
            self.entries.ready.eq((credits != 0) & ~scan & ~stopped),
            take.eq(self.entries.valid & self.entries.ready),
        ]
        m.d.sync += credits.eq(credits - take + (self.rows.valid & self.rows.ready))
        with m.If(take & entry.last):
            m.d.sync += stopped.eq(1)
        with m.If(scan_0):
            m.d.sync += position.eq(position + 1)
        with m.If(scan & ~scan_0 & ~scan_1 & ~scan_2):
            m.d.sync += scan.eq(0)

        # ---- stage 1: the memories are being read ---------------------------------------------
        table_1, row_1 = Signal(32, reset_less=True), Signal(32, reset_less=True)
        valid_1, live_1, last_1 = Signal(), Signal(), Signal()
        hot_1, bad_1, counts_1 = Signal(), Signal(), Signal()
        m.d.sync += [
            table_1.eq(entry.table),
            row_1.eq(entry.row),
            valid_1.eq(take),
            live_1.eq(entry.valid & (~entry.hot | self.hot_rows)),
            last_1.eq(entry.last),
            hot_1.eq(entry.hot),
            bad_1.eq(entry.bad),
            counts_1.eq(self.entries.payload.counts),
            scan_1.eq(scan_0),
        ]
        for name in ("rows", "words"):
            m.d.comb += ports[name].addr.eq(Mux(scan, position, entry.table))

        # ---- stage 2: what the tables say -----------------------------------------------------
        table_2, row_2 = Signal(32, reset_less=True), Signal(32, reset_less=True)
        valid_2, live_2, last_2, bad_2 = Signal(), Signal(), Signal(), Signal()
        hot_2, counts_2 = Signal(), Signal()
        rows_2 = Signal(32, reset_less=True)
        words_2 = Signal(row_words_bits(config), reset_less=True)
        m.d.sync += [
            table_2.eq(table_1),
            row_2.eq(row_1),
            valid_2.eq(valid_1),
            live_2.eq(live_1),
            last_2.eq(last_1),
            hot_2.eq(hot_1),
            counts_2.eq(counts_1),
            bad_2.eq(bad_1 | (table_1 >= self.table_limit)),
            rows_2.eq(ports["rows"].data),
            words_2.eq(ports["words"].data),
            scan_2.eq(scan_1),
        ]
        with m.If(scan_2 & (words_2 > self.widest)):
            m.d.sync += self.widest.eq(words_2)

        # ---- stage 3: partial products, verdict -----------------------------------------------
        row = row_2[: config.row_bits]
        low, high = row[:_LOW_BITS], row[_LOW_BITS:]
        product_low_3 = Signal(len(low) + len(words_2), reset_less=True)
        product_high_3 = Signal(max(1, len(high) + len(words_2)))
        words_3 = Signal.like(words_2)
        valid_3, live_3, last_3, bad_3, faulted = (Signal(), Signal(), Signal(), Signal(), Signal())
        hot_3, counts_3 = Signal(), Signal()
        bad = Signal()
        m.d.comb += bad.eq(valid_2 & live_2 & (bad_2 | (row_2 >= rows_2)))
        m.d.sync += [
            product_low_3.eq(low * words_2),
            product_high_3.eq(high * words_2),
            words_3.eq(words_2),
            # What entered behind the bad entry goes no further.
            valid_3.eq(valid_2 & ~faulted),
            live_3.eq(live_2),
            last_3.eq(last_2),
            hot_3.eq(hot_2),
            counts_3.eq(counts_2),
            bad_3.eq(bad),
        ]
        with m.If(~faulted):
            m.d.sync += self.fault_info.eq(Cat(row_2, table_2))
        with m.If(bad):
            m.d.sync += [faulted.eq(1), stopped.eq(1)]
        for name in ("base_lo", "base_hi"):
            if name in ports:
                m.d.comb += ports[name].addr.eq(table_2)

        # ---- stage 4: product and base --------------------------------------------------------
        product_4, base_4 = (Signal(home_bits, reset_less=True) for _ in range(2))
        product, far_4 = Signal(config.row_bits + len(words_2) + 1), Signal()
        words_4 = Signal.like(words_3)
        valid_4, live_4, last_4, bad_4 = Signal(), Signal(), Signal(), Signal()
        hot_4, counts_4 = Signal(), Signal()
        base = [ports[name].data for name in ("base_lo", "base_hi") if name in ports]
        m.d.comb += product.eq(product_low_3 + (product_high_3 << _LOW_BITS))
        m.d.sync += [
            product_4.eq(product),
            far_4.eq(product[home_bits:].any()),
            base_4.eq(Cat(*base)),
            words_4.eq(words_3),
            valid_4.eq(valid_3),
            live_4.eq(live_3),
            last_4.eq(last_3),
            hot_4.eq(hot_3),
            counts_4.eq(counts_3),
            bad_4.eq(bad_3),
        ]

        # ---- stage 5: home --------------------------------------------------------------------
        m.d.sync += [
            results.input.valid.eq(valid_4),
            # Beyond the address space there is only "beyond": the top bit stays set.
            result.home.eq((base_4 + product_4) | (far_4 << home_bits)),
            result.words.eq(words_4),
            result.move.eq(live_4 & ~bad_4 & (words_4 != 0)),
            result.hot.eq(hot_4),
            result.count.eq(live_4 & counts_4 & ~bad_4),
            result.last.eq(last_4),
            result.fault.eq(bad_4),
        ]

        if self._slots:
            m.submodules.slots = slots = SlotAddress(config)
            connect(m, flipped(self.hot_write), slots.hot_write)
            m.d.comb += [
                slots.slot.eq(entry.slot),
                slots.gpu.eq(gpu),
                result.slot.eq(slots.address),
            ]
        else:
            m.d.comb += self.hot_write.ready.eq(1)

        with m.If(self.start):
            m.d.sync += [
                scan.eq(1),
                position.eq(0),
                self.widest.eq(0),
                stopped.eq(0),
                faulted.eq(0),
            ]
        return m
