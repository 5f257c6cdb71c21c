"""COMMIT: walks the hot table and writes a record for each changed, or each valid, slot.

Source: spec section 7, opcode 0x02.
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.feistel import InverseHash
from hotline.rtl.hot_bank import READ_LATENCY
from hotline.rtl.hot_update import entry_layout, entry_valid
from hotline.rtl.interfaces import list_beat, row_entry
from hotline.rtl.one_hot import one_hot_first

__all__ = ["SCAN_LATENCY", "CommitScan"]

#: Cycles from a read request to the entries.
SCAN_LATENCY = READ_LATENCY + 2

#: Bits and 32-bit words of a record.
_RECORD_BITS = 128
_RECORD_WORDS = 4


class CommitScan(wiring.Component):
    """Records {slot, table, row, 0} of the hot table, ascending, as beats of a list.

    A set a cycle while there is nothing to report; a record takes 7 cycles, plus two a way for
    `sample_aware`, and the pipeline is filled again after a set with records. Back-pressure
    stops it. Reset makes it idle.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    start : In(1)
        Pulse, when idle.
    all : In(1)
        Report every valid slot, not only changed ones. Stable during the scan.
    read : Out(1)
        Read all ways of set `read_set`; the entries come SCAN_LATENCY cycles later.
    read_set : Out(set_bits or 1)
    entries : In(ArrayLayout(entry, ways))
    fill : In(1)
        Hand the rows of the records to `rows` too. Stable during the scan.
    records : Out(stream of list_beat)
    rows : Out(stream of row_entry)
        With `fill`: each row, then a marker with valid = 0 and last = 1.
    count : Out(32)
        Records so far; stable from `done` until the next start.
    done : Out(1)
        Pulse, when the last beat, and the marker, have been taken.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.per_beat = max(1, config.data_width // _RECORD_BITS)
        super().__init__(
            {
                "start": In(1),
                "all": In(1),
                "read": Out(1),
                "read_set": Out(max(1, config.set_bits)),
                "entries": In(data.ArrayLayout(entry_layout(config), config.ways)),
                "fill": In(1),
                "records": Out(stream.Signature(list_beat(config))),
                "rows": Out(stream.Signature(row_entry(config))),
                "count": Out(32),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        ways = range(config.ways)
        last_set = config.sets - 1
        asked = Signal(config.set_bits + 1)
        found = Signal(max(1, config.set_bits))
        coming = Signal(SCAN_LATENCY)
        reported = Signal(config.ways)
        m.d.comb += [
            self.read_set.eq(asked),
            reported.eq(
                Cat(
                    entry_valid(config, entry.state) & (entry.changed | self.all)
                    for entry in (self.entries[way] for way in ways)
                )
            ),
        ]

        m.submodules.inverse = inverse = InverseHash(config)
        left = Signal(config.ways)
        tags = Signal(data.ArrayLayout(config.tag_bits, config.ways), reset_less=True)
        way = Signal(max(1, config.way_bits))
        first = one_hot_first(left)
        number: Value = Const(0, len(way))
        tag: Value = Const(0, config.tag_bits)
        for n in ways:
            number = number | Mux(first[n], n, 0)
            tag = tag | Mux(first[n], tags[n], 0)
        bank, index = found[: config.bank_bits], found[config.bank_bits : config.set_bits]
        m.d.comb += [
            inverse.way.eq(number),
            inverse.bank.eq(bank),
            inverse.hash.eq(Cat(index, tag)),
        ]

        taken = Signal()
        record = Signal(_RECORD_BITS)
        slot = Cat(way[: config.way_bits], found[: config.set_bits])
        m.d.comb += [
            record[:32].eq(slot),
            record[32:64].eq(inverse.key[config.row_bits :]),
            record[64:96].eq(inverse.key[: config.row_bits]),
        ]
        flush, push = Signal(), Signal()
        record_gone, row_gone, both_gone = Signal(), Signal(), Signal()
        row, found_row = self.rows.payload, Signal()
        m.d.comb += [
            row.row.eq(record[64:96]),
            row.table.eq(record[32:64]),
            row.slot.eq(slot),
            row.hot.eq(1),
            row.valid.eq(found_row),
            row.last.eq(~found_row),
            both_gone.eq(record_gone & (row_gone | ~self.fill)),
        ]
        flushed = self._pack(m, record, push, taken, flush)

        with m.FSM(name="scan"):
            with m.State("IDLE"):
                m.d.sync += [asked.eq(0), found.eq(0), coming.eq(0)]
                with m.If(self.start):
                    m.d.sync += self.count.eq(0)
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += self.read.eq(asked <= last_set)
                m.d.sync += coming.eq(Cat(self.read, coming[:-1]))
                with m.If(self.read):
                    m.d.sync += asked.eq(asked + 1)
                with m.If(coming[-1]):
                    with m.If(reported.any()):
                        m.d.sync += left.eq(reported)
                        for n in ways:
                            m.d.sync += tags[n].eq(self.entries[n].tag)
                        m.next = "WAY"
                    with m.Elif(found == last_set):
                        m.next = "FLUSH"
                    with m.Else():
                        m.d.sync += found.eq(found + 1)
            with m.State("WAY"):
                m.d.comb += inverse.start.eq(1)
                m.d.sync += [left.eq(left & ~first), way.eq(number), coming.eq(0)]
                m.next = "INVERT"
            with m.State("INVERT"):
                m.d.comb += found_row.eq(1)
                with m.If(inverse.done):
                    m.d.comb += [
                        push.eq(~record_gone),
                        self.rows.valid.eq(self.fill & ~row_gone),
                    ]
                m.d.sync += [
                    record_gone.eq((record_gone | taken) & ~both_gone),
                    row_gone.eq((row_gone | (self.rows.valid & self.rows.ready)) & ~both_gone),
                ]
                with m.If(both_gone):
                    m.d.sync += self.count.eq(self.count + 1)
                    with m.If(left.any()):
                        m.next = "WAY"
                    with m.Elif(found == last_set):
                        m.next = "FLUSH"
                    with m.Else():
                        m.d.sync += [found.eq(found + 1), asked.eq(found + 1)]
                        m.next = "READ"
            with m.State("FLUSH"):
                m.d.comb += flush.eq(1)
                with m.If(flushed):
                    m.d.comb += self.done.eq(~self.fill)
                    m.next = "IDLE"
                    with m.If(self.fill):
                        m.next = "MARK"
            with m.State("MARK"):
                m.d.comb += self.rows.valid.eq(1)
                with m.If(self.rows.ready):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
        return m

    def _pack(self, m: Module, record: Value, push: Value, taken: Signal, flush: Value) -> Value:
        """Records into beats. Returns whether the final beat is taken in this cycle."""
        width = self.config.data_width
        beat, ready = self.records.payload, self.records.ready
        final = flush & ready
        if width < _RECORD_BITS:
            parts = _RECORD_BITS // width
            part = Signal(range(parts))
            m.d.comb += [
                self.records.valid.eq(push | flush),
                beat.data.eq(record.word_select(part, width)),
                beat.strobe.eq(Mux(flush, 0, ~0)),
                taken.eq(push & ready & (part == parts - 1)),
            ]
            with m.If(push & ready):
                m.d.sync += part.eq(part + 1)
        elif self.per_beat == 1:
            m.d.comb += [
                self.records.valid.eq(push | flush),
                beat.data.eq(record),
                beat.strobe.eq(Mux(flush, 0, ~0)),
                taken.eq(push & ready),
            ]
        else:
            filled = Signal(range(self.per_beat))
            held = Signal(width - _RECORD_BITS, reset_less=True)
            full = Signal()
            strobe = Cat(
                (filled > n // _RECORD_WORDS) | push for n in range(self.config.data_words)
            )
            m.d.comb += [
                full.eq(filled == self.per_beat - 1),
                self.records.valid.eq((push & full) | flush),
                beat.data.eq(Cat(held, record)),
                beat.strobe.eq(strobe),
                taken.eq(push & (ready | ~full)),
            ]
            with m.If(push & ~full):
                m.d.sync += held.word_select(filled, _RECORD_BITS).eq(record)
            with m.If(taken):
                m.d.sync += filled.eq(Mux(full, 0, filled + 1))
            with m.If(final):
                m.d.sync += filled.eq(0)
        m.d.comb += beat.last.eq(flush)
        return final
