"""What one update, load or sweep step does to the entries of a set: pure logic, no state.

Source: spec section 5 and `tracker.md`, section "Update". In three steps, for pipeline registers to
fit in between: what each way would do (:class:`~hotline.rtl.hot_outlook.WayOutlook`), which one
does it (:class:`UpdateDecision`), and the entries that are written (:class:`NewEntries`).
"""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.one_hot import one_hot_first

__all__ = [
    "BankOp",
    "NewEntries",
    "UpdateDecision",
    "bank_write",
    "entry_layout",
    "entry_status",
    "entry_valid",
    "index_width",
    "state_bits",
    "way_outlook",
]


class BankOp(enum.Enum, shape=3):
    """What a bank does with a request. The first three have the codes of `HotOp`."""

    LOOKUP = 0
    UPDATE = 1
    LOAD = 2
    CLEAR = 3
    AGE = 4
    UNMARK = 5
    READ = 6  #: the scan of COMMIT


def state_bits(config: Config) -> int:
    """Bits of an entry's state: cnt, or {rrpv, valid}."""
    return config.counter_bits + (0 if config.sample_aware else 1)


def entry_layout(config: Config) -> data.StructLayout:
    """An entry of the hot table. `state`: cnt (0 = invalid), or valid in bit 0 below the RRPV."""
    return data.StructLayout(
        {
            "state": unsigned(state_bits(config)),
            "changed": unsigned(1),
            "tag": unsigned(config.tag_bits),
        }
    )


def entry_status(config: Config) -> data.StructLayout:
    """An entry without its tag: what changes when the key stays."""
    return data.StructLayout({"state": unsigned(state_bits(config)), "changed": unsigned(1)})


def entry_valid(config: Config, state: Value) -> Value:
    """Whether an entry with this state holds a key."""
    return state.any() if config.sample_aware else state[0]


def index_width(config: Config) -> int:
    """Bits of a bank's memory address: at least 1, so that a bank of one set has a port."""
    return max(1, config.index_bits)


def bank_write(config: Config) -> data.StructLayout:
    """What a bank writes, by way: `status` where `change` is set, `tag` where `insert` is set.

    `insert` is a part of `change`.
    """
    ways = config.ways
    return data.StructLayout(
        {
            "index": data.ArrayLayout(index_width(config), ways),
            "change": ways,
            "insert": ways,
            "status": data.ArrayLayout(entry_status(config), ways),
            "tag": data.ArrayLayout(config.tag_bits, ways),
        }
    )


def way_outlook(config: Config) -> data.StructLayout:
    """What a way is to the key that comes; one bit a way but for `state`.

    `best`: candidate victim: smallest cnt, or largest RRPV. `invalid`: holds no key. As victim it
    would be `taken` at once, or only be `worn`, down by one. `raised`: cnt rises if it holds the
    key. `state`: its next state, if it stays; `srrip` may still age it.
    """
    ways = config.ways
    return data.StructLayout(
        {
            "best": ways,
            "invalid": ways,
            "taken": ways,
            "worn": ways,
            "raised": ways,
            "state": data.ArrayLayout(state_bits(config), ways),
        }
    )


class UpdateDecision(wiring.Component):
    """Which ways change: one update, load or sweep step.

    Combinational.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    op : In(BankOp)
    match : In(ways)
        One-hot or zero: the way that holds the key.
    hit : In(1)
        Phase-1 outcome (`sample_aware` only).
    start : In(2)
        u[15:14], first way of the cyclic order in which ties break (`sample_aware` only).
    outlook : In(way_outlook)
    old : In(ArrayLayout(state, ways))
        States as they were read.
    insert : Out(ways)
        One-hot or zero: the way that takes the key.
    change : Out(ways)
        Which other ways change.
    state : Out(ArrayLayout(state, ways))
        Their new states, to which `gap` is still to be added.
    gap : Out(counter_bits)
        How much all RRPVs age (`srrip` only).
    result : Out(ways)
        One-hot or zero: the way that held the key, or that took it (LOAD).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        states = data.ArrayLayout(state_bits(config), config.ways)
        super().__init__(
            {
                "op": In(BankOp),
                "match": In(config.ways),
                "hit": In(1),
                "start": In(2),
                "outlook": In(way_outlook(config)),
                "old": In(states),
                "insert": Out(config.ways),
                "change": Out(config.ways),
                "state": Out(states),
                "gap": Out(config.counter_bits),
                "result": Out(config.ways),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        absent = Signal()
        free = Signal(config.ways)
        m.d.comb += [
            absent.eq(~self.match.any()),
            free.eq(one_hot_first(self.outlook.invalid)),
            self.state.eq(self.outlook.state),
            self.result.eq(self.match),
        ]
        with m.Switch(self.op):
            with m.Case(BankOp.UPDATE):
                if config.sample_aware:
                    self._sample_aware(m, absent)
                else:
                    self._srrip(m, absent, free)
            with m.Case(BankOp.LOAD):
                m.d.comb += [
                    self.insert.eq(Mux(absent, free, 0)),
                    self.result.eq(Mux(absent, free, self.match)),
                ]
            with m.Case(BankOp.CLEAR, BankOp.UNMARK, BankOp.AGE):
                m.d.comb += self.change.eq(~0)
        return m

    def _sample_aware(self, m: Module, absent: Value) -> None:
        outlook = self.outlook
        victim = self._first_from(outlook.best)
        # All candidates have the same cnt, so that any of them speaks for the victim.
        taken, worn = (outlook.best & outlook.taken).any(), (outlook.best & outlook.worn).any()
        with m.If(self.hit):
            m.d.comb += self.change.eq(self.match & outlook.raised)
        with m.Else():
            m.d.comb += [
                self.insert.eq(Mux(absent & taken, victim, 0)),
                self.change.eq(Mux(absent & worn, victim, 0)),
            ]

    def _first_from(self, candidates: Value) -> Value:
        """The first candidate in cyclic order from way `start` mod ways."""
        ways = self.config.ways
        if ways == 1:
            return candidates
        choices = []
        for first in range(min(ways, 4)):
            order = [(first + n) % ways for n in range(ways)]
            chosen = one_hot_first(Cat(candidates[w] for w in order))
            choices.append(Cat(chosen[order.index(w)] for w in range(ways)))
        return Array(choices)[self.start[: 1 if ways == 2 else 2]]

    def _srrip(self, m: Module, absent: Value, free: Value) -> None:
        outlook = self.outlook
        full = ~outlook.invalid.any()
        victim = Signal(self.config.ways)
        m.d.comb += victim.eq(Mux(full, one_hot_first(outlook.best), free))
        with m.If(absent):
            m.d.comb += self.insert.eq(victim)
            # Ageing until one way has the largest value adds the same to all of them.
            largest: Value = Const(0, self.config.counter_bits)
            for way in range(self.config.ways):
                largest = largest | Mux(outlook.best[way], self.old[way][1:], 0)
            m.d.comb += self.gap.eq(~largest)
            with m.If(full):
                m.d.comb += self.change.eq(~victim)
        with m.Else():
            m.d.comb += self.change.eq(self.match)
            for way in range(self.config.ways):
                m.d.comb += self.state[way].eq(1)


class NewEntries(wiring.Component):
    """State and mark to write. The tag of a key that is inserted is the key's own.

    Combinational.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    insert, state, gap : In
        See :class:`UpdateDecision`.
    unmark : In(1)
        All marks go.
    changed : In(ways)
        The old marks.
    new : Out(ArrayLayout(entry_status, ways))
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "insert": In(config.ways),
                "state": In(data.ArrayLayout(state_bits(config), config.ways)),
                "gap": In(config.counter_bits),
                "unmark": In(1),
                "changed": In(config.ways),
                "new": Out(data.ArrayLayout(entry_status(config), config.ways)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        fresh = 1 if config.sample_aware else (((1 << config.counter_bits) - 2) << 1) | 1
        for way in range(config.ways):
            new, insert = self.new[way], self.insert[way]
            state: Value = self.state[way]
            if not config.sample_aware:
                aged = (state[1:] + self.gap)[: config.counter_bits]
                state = Cat(state[0], aged)
            m.d.comb += [
                new.state.eq(Mux(insert, fresh, state)),
                new.changed.eq((self.changed[way] | insert) & ~self.unmark),
            ]
        return m
