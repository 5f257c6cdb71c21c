"""Row list reader: a `keys` list, or the records of a FILL, in memory as a stream of rows."""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.gen.config import Config
from hotline.rtl.interfaces import count_bits, read_beat, read_request, row_entry
from hotline.rtl.linear_reader import LinearReader
from hotline.rtl.stream_stage import StreamStage
from hotline.rtl.stream_wire import StreamWire

__all__ = ["RowListReader"]

#: 32-bit words of a key, and of a record {slot, table, row, 0}.
_KEY_WORDS, _RECORD_WORDS = 2, 4


class RowListReader(wiring.Component):
    """Reads `count` keys (u64) or records (16 bytes), hands them over, then an end marker.

    One a cycle where the bus is as wide, else one for each of its beats. After a beat with `fault`
    the end marker comes at once, so that the consumer finishes what it was given before, and no
    beat behind it is taken: bus faults stay in list order with those of the consumer. Back-pressure
    holds the entry. Reset makes it idle; data of requests made before must not arrive after it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    start : In
        Pulse; latches `addr` and `count`. Only after reset, or when the end marker was taken and
        there was no fault.
    addr : In
        Byte address of the list, 64-byte aligned.
    count : In
        Entries; 0 gives the end marker alone.
    records : In
        The list holds records, not keys; stable while it is read.
    request, data : Out, In
        Port of the read engine.
    entries : Out
        The entries (all with `last` = 0), then the end marker.
    fault : Out
        Level, until reset: a beat of the list failed. Rises before the end marker is taken (in a
        device of rows alone, in the cycle after that).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "addr": In(config.addr_width),
                "count": In(count_bits(config)),
                "records": In(1),
                "request": Out(stream.Signature(read_request(config))),
                "data": In(stream.Signature(read_beat(config))),
                "entries": Out(stream.Signature(row_entry(config))),
                "fault": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        # Records are those of FILL.
        words = _RECORD_WORDS if config.hot_table else _KEY_WORDS
        longest = 4 * words * ((1 << count_bits(config)) - 1)
        m.submodules.reader = reader = LinearReader(config, longest)
        connect(m, reader.request, flipped(self.request))
        m.d.comb += [
            reader.start.eq(self.start),
            reader.addr.eq(self.addr),
            reader.bytes.eq(Mux(self.records, self.count << 4, self.count << 3)),
        ]

        # In a device of rows alone the address unit takes the entry into registers at once.
        slice_ = (StreamStage if config.hot_table else StreamWire)(row_entry(config))
        m.submodules.exit = slice_
        connect(m, slice_.output, flipped(self.entries))
        beat, out = self.data.payload, slice_.input
        running, takes, take = Signal(), Signal(), Signal()
        left = Signal(count_bits(config), reset_less=True)
        more, final = Signal(), Signal()  # left != 0, left == 1: from registers
        whole, consumed = Signal(), Signal()
        m.d.comb += [
            takes.eq(running & out.ready & more),
            take.eq(takes & self.data.valid & ~beat.fault),
            # A beat with a fault may go: the list ends with it.
            self.data.ready.eq(takes & consumed),
        ]
        wide = config.data_words >= _RECORD_WORDS
        cut = self._cut if wide else self._collect
        key, record = cut(m, take, final, whole, consumed)

        ending = Signal()
        slot = record[:32]
        m.d.comb += [
            ending.eq(~more | (self.data.valid & beat.fault)),
            out.valid.eq(running & ((self.data.valid & whole) | ending)),
            out.payload.valid.eq(~ending),
            out.payload.last.eq(ending),
            out.payload.row.eq(Mux(self.records, record[64:96], key[:32])),
            out.payload.table.eq(Mux(self.records, record[32:64], Cat(key[32:63], Const(0, 1)))),
            out.payload.hot.eq(self.records | key[63]),
            out.payload.slot.eq(slot),
            out.payload.bad.eq(self.records & (slot >= config.slots)),
        ]
        with m.If(take & whole):
            m.d.sync += [left.eq(left - 1), more.eq(~final), final.eq(left == 2)]
        with m.If(running & out.ready & ending):
            m.d.sync += [running.eq(0), self.fault.eq(more)]
        with m.If(self.start):
            m.d.sync += [
                running.eq(1),
                left.eq(self.count),
                more.eq(self.count != 0),
                final.eq(self.count == 1),
            ]
        return m

    def _cut(
        self, m: Module, take: Value, final: Value, whole: Value, consumed: Value
    ) -> tuple[Value, Value]:
        """Several entries in a beat, or one: the key and the record at the place that has come."""
        places = self.config.data_words // _KEY_WORDS
        data = self.data.payload.data
        place, next_place = Signal(range(places)), Signal(range(places + 1))
        records = Array(data.word_select(i, 128) for i in range(places // 2))
        m.d.comb += [
            whole.eq(1),
            next_place.eq(place + Mux(self.records, _RECORD_WORDS // _KEY_WORDS, 1)),
            consumed.eq(final | (next_place == places)),
        ]
        with m.If(take):
            m.d.sync += place.eq(Mux(consumed, 0, next_place))
        key = Array(data.word_select(i, 64) for i in range(places))[place]
        return key, records[place >> 1]

    def _collect(
        self, m: Module, take: Value, _final: Value, whole: Value, consumed: Value
    ) -> tuple[Value, Value]:
        """A record takes several beats, and perhaps a key does: those before the last are kept."""
        width = self.config.data_width
        kept = Signal(32 * _RECORD_WORDS - width, reset_less=True)
        parts = 32 * _RECORD_WORDS // width
        part = Signal(range(parts))
        last_part = Mux(self.records, parts - 1, parts * _KEY_WORDS // _RECORD_WORDS - 1)
        m.d.comb += [whole.eq(part == last_part), consumed.eq(1)]
        words = Cat(kept, self.data.payload.data)
        with m.If(take):
            m.d.sync += [kept.eq(words[width:]), part.eq(Mux(whole, 0, part + 1))]
        return words[-32 * _KEY_WORDS :], words
