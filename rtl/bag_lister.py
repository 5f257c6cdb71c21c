"""Lists the rows that POOL sums, bag by bag."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.bag_closer import BagCloser, wanted_key, weight_pick
from hotline.rtl.interfaces import row_entry
from hotline.rtl.one_hot import one_hot_first
from hotline.rtl.small_fifo import SmallFIFO
from hotline.rtl.stream_register import StreamRegister

__all__ = ["BagLister", "bag_group"]

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


class BagLister(wiring.Component):
    """From judged groups to one row after the other, with the bounds of the bags.

    Takes one wanted key of the non-popular samples after the other; what becomes of them is told by
    :class:`~hotline.rtl.bag_closer.BagCloser`. One key a cycle; a group without wanted keys takes
    one cycle. Latency six cycles, and that of a bag. Back-pressure stops it. Reset empties it.

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
        # The choice of a lane ends in these registers.
        m.submodules.keys = keys = StreamRegister(wanted_key(self.config))
        m.submodules.closer = closer = BagCloser(self.config)
        m.submodules.queue = queue = SmallFIFO(weight_pick(), _PICKS)
        self._choose(m, keys.input)
        wiring.connect(m, keys.output, closer.keys)
        wiring.connect(m, closer.rows, wiring.flipped(self.rows))
        wiring.connect(m, closer.picks, queue.input)
        wiring.connect(m, queue.output, wiring.flipped(self.picks))
        m.d.comb += [
            closer.num_tables.eq(self.num_tables),
            closer.weighted.eq(self.weighted),
        ]
        return m

    def _choose(self, m: Module, events: stream.Interface) -> None:
        """One wanted key of a group after the other: those of sample A, then those of B."""
        config = self.config
        group = Signal(bag_group(config), reset_less=True)
        valid, done = Signal(), Signal()
        # The sample at hand: there is one, its keys to go, and whether it ends. The other one.
        live, left, owes = Signal(), Signal(config.lanes), Signal()
        waits, owes_last = Signal(), Signal()
        first_number = Signal(31, reset_less=True)
        rest, chosen, more = Signal(config.lanes), Signal(config.lanes), Signal()
        event, incoming = events.payload, self.groups.payload
        has_a, has_b = Signal(), Signal()
        m.d.comb += [
            chosen.eq(one_hot_first(left)),
            rest.eq(left & ~chosen),
            more.eq(live & (rest.any() | waits | owes_last)),
            event.has_key.eq(left.any()),
            event.end.eq(~rest.any() & owes),
            event.last.eq(~live),
            event.number.eq(first_number),
            events.valid.eq(valid & (live | owes_last)),
            done.eq(~(live | owes_last) | (events.ready & ~more)),
            self.groups.ready.eq(~valid | done),
            has_a.eq(incoming.wanted_a.any() | incoming.ends_a),
            has_b.eq(incoming.wanted_b.any() | incoming.ends_b),
        ]
        for n in range(config.lanes):
            with m.If(chosen[n]):
                m.d.comb += [
                    event.lane.eq(n),
                    event.key.eq(group.key[n]),
                    event.slot.eq(group.slot[n]),
                    event.hot.eq(group.hit[n]),
                ]
        with m.If(events.valid & events.ready):
            with m.If(rest.any()):
                m.d.sync += left.eq(rest)
            with m.Elif(waits):
                m.d.sync += [left.eq(group.wanted_b), owes.eq(group.ends_b), waits.eq(0)]
            with m.Else():
                m.d.sync += [live.eq(0), left.eq(0), owes.eq(0)]
        with m.If(self.groups.ready):
            m.d.sync += [
                valid.eq(self.groups.valid),
                group.eq(incoming),
                live.eq(has_a | has_b),
                left.eq(Mux(has_a, incoming.wanted_a, incoming.wanted_b)),
                owes.eq(Mux(has_a, incoming.ends_a, incoming.ends_b)),
                waits.eq(has_a & has_b),
                owes_last.eq(incoming.last),
            ]
        with m.If(self.start):
            m.d.sync += first_number.eq(0)
        with m.Elif(valid & done):
            m.d.sync += first_number.eq(first_number + group.count)
