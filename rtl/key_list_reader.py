"""Key list reader: a `keys` list in memory as a stream of rows."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.gen.config import Config
from hotline.rtl.interfaces import read_beat, read_request, row_entry
from hotline.rtl.linear_reader import LinearReader

__all__ = ["KeyListReader"]


class KeyListReader(wiring.Component):
    """Reads `count` u64 entries and hands them over one a cycle, then an end marker.

    32-bit bus: an entry in two cycles. After a beat with `fault` the end marker comes at once, so
    that the consumer finishes what it was given before, and no beat is taken any more: bus
    faults stay in list order with those of the consumer. Back-pressure holds the entry. Reset
    makes it idle; data of requests made before must not arrive after it.

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
    request, data : Out, In
        Port of the read engine.
    entries : Out
        The entries (all with `last` = 0), then the end marker.
    fault : Out
        Level, until reset: a beat of the list failed. Rises before the end marker.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "addr": In(config.addr_width),
                "count": In(32),
                "request": Out(stream.Signature(read_request(config))),
                "data": In(stream.Signature(read_beat(config))),
                "entries": Out(stream.Signature(row_entry(config))),
                "fault": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.reader = reader = LinearReader(config)
        connect(m, reader.request, flipped(self.request))
        m.d.comb += [
            reader.start.eq(self.start),
            reader.addr.eq(self.addr),
            reader.bytes.eq(self.count << 3),
        ]

        beat, out = self.data.payload, self.entries
        running, free, take = Signal(), Signal(), Signal()
        left = Signal(32)
        more, whole, consumed = Signal(), Signal(), Signal()
        key = Signal(64)
        m.d.comb += [
            free.eq(~out.valid | out.ready),
            more.eq(left != 0),
            take.eq(running & free & more & self.data.valid & ~beat.fault),
            self.data.ready.eq(take & consumed),
        ]
        if config.data_width >= 64:
            places = config.keys_per_beat
            place = Signal(range(max(2, places)))
            m.d.comb += [
                key.eq(Array(beat.data.word_select(i, 64) for i in range(places))[place]),
                whole.eq(1),
                consumed.eq((place == places - 1) | (left == 1)),
            ]
            with m.If(take):
                m.d.sync += place.eq(Mux(consumed, 0, place + 1))
        else:
            low, half = Signal(32), Signal()
            m.d.comb += [key.eq(Cat(low, beat.data)), whole.eq(half), consumed.eq(1)]
            with m.If(take):
                m.d.sync += half.eq(~half)
                with m.If(~half):
                    m.d.sync += low.eq(beat.data)

        ending = Signal()
        m.d.comb += ending.eq(running & free & (~more | (self.data.valid & beat.fault)))
        with m.If(free):
            m.d.sync += [
                out.valid.eq((take & whole) | ending),
                out.payload.valid.eq(~ending),
                out.payload.last.eq(ending),
                out.payload.row.eq(key[:32]),
                out.payload.table.eq(key[32:63]),
                out.payload.hot.eq(key[63]),
            ]
        with m.If(take & whole):
            m.d.sync += left.eq(left - 1)
        with m.If(ending):
            m.d.sync += [running.eq(0), self.fault.eq(more)]
        with m.If(self.start):
            m.d.sync += [running.eq(1), left.eq(self.count)]
        return m
