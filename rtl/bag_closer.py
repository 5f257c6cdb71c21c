"""Marks where bags end in a list of rows, and puts in the empty ones."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.interfaces import row_entry
from hotline.rtl.stream_register import StreamRegister

__all__ = ["BagCloser", "wanted_key", "weight_pick"]


def wanted_key(config: Config) -> data.StructLayout:
    """A key whose row is summed (`has_key`), then perhaps the `end` of its sample; or `last`.

    `number` + `lane`: its number among all keys of the command.
    """
    return data.StructLayout(
        {
            "key": unsigned(config.key_bits),
            "slot": unsigned(config.slot_bits),
            "hot": 1,
            "number": 31,
            "lane": range(max(2, config.lanes)),
            "has_key": 1,
            "end": 1,
            "last": 1,
        }
    )


def weight_pick() -> data.StructLayout:
    """Which weight comes next: its `number` among all of the command; `last`: no other."""
    return data.StructLayout({"number": 31, "last": 1})


def _run(config: Config) -> data.StructLayout:
    """`empty` bags from table `first` on, then a key (of the bag before with `same`), or the end of
    the sample, or the end of all."""
    bags = range(config.max_tables + 1)
    return data.StructLayout(
        {
            "first": bags,
            "empty": bags,
            "key": unsigned(config.key_bits),
            "slot": unsigned(config.slot_bits),
            "hot": 1,
            "has_key": 1,
            "same": 1,
            "last": 1,
        }
    )


def _item(config: Config) -> data.StructLayout:
    """A row of the bag before (`same`), of another one, or (`empty`) none."""
    return data.StructLayout({"row": row_entry(config), "same": 1, "empty": 1})


class BagCloser(wiring.Component):
    """From the wanted keys of samples to rows with the bounds of bags.

    Each bag gives its rows, of which the last one has `close`, or, if there is none, an entry with
    `zero` and `close`. One entry a cycle, and a cycle more a sample. Latency four cycles, and a row
    waits for the next one, or for the end of its sample. Back-pressure stops it. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    num_tables : In
        Bags a sample; stable while it runs, like `weighted`.
    weighted : In
        Each row needs a weight.
    keys : In
        To the one with `last`, which has no key.
    rows : Out
        Ends with the marker valid = 0, last = 1.
    picks : Out
        With `weighted`: the weights of these rows, none later than its row. A pick is offered when
        its row can go on, so `ready` should come from a register.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "num_tables": In(range(config.max_tables + 1)),
                "weighted": In(1),
                "keys": In(stream.Signature(wanted_key(config))),
                "rows": Out(stream.Signature(row_entry(config))),
                "picks": Out(stream.Signature(weight_pick())),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        # Each step ends in registers, for its decision reaches all of them.
        m.submodules.runs = runs = StreamRegister(_run(self.config))
        m.submodules.items = items = StreamRegister(_item(self.config))
        m.submodules.closed = closed = StreamRegister(row_entry(self.config))
        self._measure(m, runs.input)
        self._expand(m, runs.output, items.input)
        self._close(m, items.output, closed.input)
        wiring.connect(m, closed.output, wiring.flipped(self.rows))
        return m

    def _measure(self, m: Module, runs: stream.Interface) -> None:
        """How many bags are empty before a key, and before the end of a sample."""
        config = self.config
        key, run, picks = self.keys.payload, runs.payload, self.picks
        keyed = Signal()  # the key has passed, the end of its sample follows
        table = key.key[config.row_bits :]
        current, opened = Signal.like(table), Signal()  # bag of the key before
        upcoming = Signal(range(config.max_tables + 1))  # the one after it
        has_key, room, done = Signal(), Signal(), Signal()
        # Near by, for it reaches `ready` of the keys.
        weighted = Signal()
        m.d.sync += weighted.eq(self.weighted)
        m.d.comb += [
            has_key.eq(key.has_key & ~keyed),
            run.first.eq(upcoming),
            run.same.eq(has_key & opened & (table == current)),
            run.empty.eq(Mux(run.same, 0, Mux(has_key, table, self.num_tables) - upcoming)),
            run.has_key.eq(has_key),
            run.last.eq(key.last),
            *(run[name].eq(key[name]) for name in ("key", "slot", "hot")),
            picks.payload.number.eq(key.number + key.lane),
            picks.payload.last.eq(key.last),
            room.eq(picks.ready | ~weighted),
            runs.valid.eq(self.keys.valid & room),
            picks.valid.eq(self.keys.valid & weighted & (has_key | key.last) & runs.ready),
            done.eq(~has_key | ~key.end),
            self.keys.ready.eq(runs.ready & room & done),
        ]
        with m.If(key.last):
            m.d.comb += run.empty.eq(0)
        with m.If(self.keys.valid & runs.ready & room):
            m.d.sync += [
                keyed.eq(~done),
                opened.eq(has_key),
                current.eq(table),
                upcoming.eq(Mux(has_key, table + 1, 0)),
            ]

    def _expand(self, m: Module, runs: stream.Interface, items: stream.Interface) -> None:
        """Runs of empty bags, one by one."""
        config = self.config
        run, item = Signal(_run(config), reset_less=True), items.payload
        valid, more = Signal(), Signal()  # there is a run; there are empty bags
        m.d.comb += [
            items.valid.eq(valid),
            runs.ready.eq(~valid | (~more & items.ready)),
            item.empty.eq(~more & ~run.has_key),
            item.same.eq(run.same),
            item.row.table.eq(Mux(more, run.first, run.key[config.row_bits :])),
            item.row.zero.eq(more),
            item.row.row.eq(run.key[: config.row_bits]),
            item.row.slot.eq(run.slot),
            item.row.hot.eq(run.hot & ~more),
            item.row.valid.eq(~more & run.has_key),
            item.row.last.eq(~more & run.last),
        ]
        with m.If(runs.ready):
            m.d.sync += [
                valid.eq(runs.valid),
                run.eq(runs.payload),
                more.eq(runs.payload.empty.any()),
            ]
        with m.Elif(items.ready):
            m.d.sync += [
                run.first.eq(run.first + 1),
                run.empty.eq(run.empty - 1),
                more.eq(run.empty != 1),
            ]

    def _close(self, m: Module, items: stream.Interface, rows: stream.Interface) -> None:
        """Hold each row until it is known whether its bag goes on."""
        item = items.payload
        held, opened = Signal(row_entry(self.config), reset_less=True), Signal()
        marks = item.row.last
        m.d.comb += [
            rows.valid.eq(items.valid & (opened | marks)),
            rows.payload.eq(held),
            rows.payload.close.eq(~item.same),
            items.ready.eq(rows.ready),
        ]
        # The end of a sample comes before that of all: nothing is held then.
        with m.If(marks):
            m.d.comb += [rows.payload.eq(0), rows.payload.last.eq(1)]
        with m.If(items.valid & rows.ready):
            m.d.sync += [opened.eq(~item.empty), held.eq(item.row)]
