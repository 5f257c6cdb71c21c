"""Lists the rows that POOL sums, bag by bag."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.hot_update import one_hot_first
from hotline.rtl.interfaces import row_entry
from hotline.rtl.small_fifo import SmallFIFO
from hotline.rtl.stream_register import StreamRegister

__all__ = ["BagLister", "bag_group", "weight_pick"]

#: Picks that may wait; a distributed RAM has 16 entries anyway.
_PICKS = 16


def bag_group(config: Config) -> data.StructLayout:
    """A judged group, as far as its rows are concerned.

    `wanted_a`, `wanted_b`: the lanes of each sample whose rows are summed. `ends_a`, `ends_b`: a
    non-popular sample ends. `count`: keys of the group, wanted or not.
    """
    lanes = config.lanes
    return data.StructLayout(
        {
            "key": data.ArrayLayout(unsigned(config.key_bits), lanes),
            "slot": data.ArrayLayout(unsigned(config.slot_bits), lanes),
            "hit": lanes,
            "count": range(lanes + 1),
            "wanted_a": lanes,
            "wanted_b": lanes,
            "ends_a": 1,
            "ends_b": 1,
            "last": 1,
        }
    )


def weight_pick() -> data.StructLayout:
    """Which weight comes next: its `number` among all of the command; `last`: no other."""
    return data.StructLayout({"number": 31, "last": 1})


def _event(config: Config) -> data.StructLayout:
    """A wanted key (`has_key`), then perhaps the end of its sample; or the end of all."""
    return data.StructLayout(
        {
            "key": unsigned(config.key_bits),
            "slot": unsigned(config.slot_bits),
            "hot": 1,
            "number": 31,
            "has_key": 1,
            "end": 1,
            "last": 1,
        }
    )


class BagLister(wiring.Component):
    """From judged groups to one row after the other, with the bounds of the bags.

    Each bag of a non-popular sample gives its wanted rows, of which the last one has `close`, or,
    if there is none, an entry with `zero` and `close`. One entry a cycle, and a cycle more a
    sample; a group without wanted keys takes one cycle. Latency about five cycles, and a row waits
    for the next one, or for the end of its sample. Back-pressure stops it. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    start : In
        Pulse before the first group: the next key has number 0.
    num_tables : In
        Bags a sample; stable while it runs, like the next.
    weighted : In
        Each row needs a weight.
    groups : In
        To the one with `last`.
    rows : Out
        Ends with the marker valid = 0, last = 1.
    picks : Out
        With `weighted`: the weights of these rows.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "num_tables": In(range(config.max_tables + 1)),
                "weighted": In(1),
                "groups": In(stream.Signature(bag_group(config))),
                "rows": Out(stream.Signature(row_entry(config))),
                "picks": Out(stream.Signature(weight_pick())),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        # The choice of a lane ends in these registers, and the stall of the rows.
        m.submodules.events = events = StreamRegister(_event(self.config))
        self._choose(m, events.input)
        self._close(m, events.output)
        return m

    def _choose(self, m: Module, events: stream.Interface) -> None:
        """One wanted key of a group after the other."""
        config = self.config
        lanes = range(config.lanes)
        group = Signal(bag_group(config), reset_less=True)
        valid, done = Signal(), Signal()
        left_a, left_b = Signal(config.lanes), Signal(config.lanes)
        owed_a, owed_b, owed_last = Signal(), Signal(), Signal()
        first_number = Signal(31)
        in_a, here, rest, chosen = (
            Signal(),
            Signal(config.lanes),
            Signal(config.lanes),
            Signal(config.lanes),
        )
        more, nothing = Signal(), Signal()
        event = events.payload
        lane = Signal(range(max(2, config.lanes)))
        m.d.comb += [
            in_a.eq(left_a.any() | owed_a),
            here.eq(Mux(in_a, left_a, left_b)),
            chosen.eq(one_hot_first(here)),
            rest.eq(here & ~chosen),
            nothing.eq(~in_a & ~left_b.any() & ~owed_b),
            more.eq(rest.any() | owed_last | (in_a & (left_b.any() | owed_b))),
            event.has_key.eq(here.any()),
            event.end.eq(~rest.any() & Mux(in_a, owed_a, owed_b)),
            event.last.eq(nothing),
            event.number.eq(first_number + lane),
            events.valid.eq(valid & (~nothing | owed_last)),
            done.eq(Mux(nothing, ~owed_last | events.ready, ~more & events.ready)),
            self.groups.ready.eq(~valid | done),
        ]
        for n in lanes:
            with m.If(chosen[n]):
                m.d.comb += [
                    lane.eq(n),
                    event.key.eq(group.key[n]),
                    event.slot.eq(group.slot[n]),
                    event.hot.eq(group.hit[n]),
                ]
        with m.If(events.valid & events.ready):
            with m.If(in_a):
                m.d.sync += left_a.eq(rest)
                with m.If(~rest.any()):
                    m.d.sync += owed_a.eq(0)
            with m.Else():
                m.d.sync += left_b.eq(rest)
                with m.If(~rest.any()):
                    m.d.sync += owed_b.eq(0)
        with m.If(self.groups.ready):
            incoming = self.groups.payload
            m.d.sync += [
                valid.eq(self.groups.valid),
                group.eq(incoming),
                left_a.eq(incoming.wanted_a),
                left_b.eq(incoming.wanted_b),
                owed_a.eq(incoming.ends_a),
                owed_b.eq(incoming.ends_b),
                owed_last.eq(incoming.last),
            ]
        with m.If(self.start):
            m.d.sync += first_number.eq(0)
        with m.Elif(valid & done):
            m.d.sync += first_number.eq(first_number + group.count)

    def _close(self, m: Module, events: stream.Interface) -> None:
        """Hold each row until it is known whether its bag ends; put in the empty bags."""
        config = self.config
        event = events.payload
        opened, keyed = Signal(), Signal()  # a row is held; the key of the event is
        held, number = Signal(row_entry(config), reset_less=True), Signal(31, reset_less=True)
        table, upcoming = Signal(range(config.max_tables + 1)), Signal(range(config.max_tables + 1))
        key_table = event.key[config.row_bits :]
        has_key, same, follows, ends = Signal(), Signal(), Signal(), Signal()
        m.submodules.picks = picks = SmallFIFO(weight_pick(), _PICKS)
        wiring.connect(m, picks.output, wiring.flipped(self.picks))
        emits, closes, marks = Signal(), Signal(), Signal()
        to_pick, room, step, taken = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            has_key.eq(event.has_key & ~keyed),
            same.eq(opened & has_key & (key_table == table)),
            follows.eq(key_table == upcoming),
            ends.eq(upcoming == self.num_tables),
            marks.eq(event.last),
            closes.eq(~same),
            emits.eq(events.valid & (opened | marks)),
            to_pick.eq(self.weighted & (marks | ~held.zero)),
            room.eq(picks.input.ready | ~to_pick),
            self.rows.valid.eq(emits & room),
            self.rows.payload.eq(held),
            self.rows.payload.close.eq(closes),
            picks.input.valid.eq(emits & to_pick & self.rows.ready),
            picks.input.payload.number.eq(number),
            picks.input.payload.last.eq(marks),
            step.eq(events.valid & (~emits | (room & self.rows.ready))),
        ]
        with m.If(marks):
            m.d.comb += [self.rows.payload.eq(0), self.rows.payload.last.eq(1)]
        takes_key, closed = Signal(), Signal()
        m.d.comb += [
            takes_key.eq(has_key & (same | follows)),
            closed.eq(~has_key & ends),
            taken.eq(marks | (takes_key & ~event.end) | closed),
            events.ready.eq(step & taken),
        ]
        with m.If(step & ~marks):
            m.d.sync += [
                opened.eq(~closed),
                keyed.eq((keyed | takes_key) & ~events.ready),
                number.eq(event.number),
                held.eq(0),
            ]
            with m.If(~same):
                m.d.sync += [table.eq(upcoming), upcoming.eq(Mux(closed, 0, upcoming + 1))]
            with m.If(takes_key):
                m.d.sync += [
                    held.row.eq(event.key[: config.row_bits]),
                    held.slot.eq(event.slot),
                    held.hot.eq(event.hot),
                    held.valid.eq(1),
                ]
            with m.Else():
                m.d.sync += held.zero.eq(1)
            m.d.sync += held.table.eq(Mux(same, table, upcoming))
