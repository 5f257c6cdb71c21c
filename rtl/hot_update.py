"""What one update, load or sweep step does to the entries of a set: pure logic, no state.

Source: spec section 5 and `tracker.md`, section "Update".
"""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config

__all__ = ["BankOp", "UpdateDecision", "VictimChoice", "entry_layout", "one_hot_first"]


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


def entry_valid(config: Config, state: Value) -> Value:
    """Whether an entry with this state holds a key."""
    return state.any() if config.sample_aware else state[0]


def one_hot_first(bits: Value) -> Value:
    """The lowest set bit alone."""
    return Cat(bit & ~bits[:n].any() if n else bit for n, bit in enumerate(bits))


def _one_of(selectors: Value, values: list[Value]) -> Value:
    """The value whose selector is set: AND-OR of a one-hot choice."""
    chosen: Value = Const(0, len(values[0]))
    for bit, value in zip(selectors, values, strict=True):
        chosen = chosen | Mux(bit, value, 0)
    return chosen


class VictimChoice(wiring.Component):
    """Which way a new key would take, from the states of its set.

    Combinational.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    state : In(ArrayLayout(state, ways))
    start : In(2)
        u[15:14], first way of the cyclic order in which ties break (`sample_aware` only).
    victim : Out(ways)
        One-hot. `sample_aware`: smallest cnt. `srrip`: first invalid, else first of the largest
        RRPV.
    free : Out(ways)
        One-hot: the first invalid way, or nothing.
    value : Out(counter_bits)
        cnt or RRPV of the victim.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "state": In(data.ArrayLayout(state_bits(config), config.ways)),
                "start": In(2),
                "victim": Out(config.ways),
                "free": Out(config.ways),
                "value": Out(config.counter_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        ways = range(config.ways)
        states = [self.state[w] for w in ways]
        invalid = Signal(config.ways)
        m.d.comb += [
            invalid.eq(Cat(~entry_valid(config, state) for state in states)),
            self.free.eq(one_hot_first(invalid)),
        ]
        if config.sample_aware:
            values = states
            candidates = self._smallest(m, values)
            m.d.comb += self.victim.eq(self._first_from(m, candidates))
        else:
            values = [state[1:] for state in states]
            # With the smallest complement, the same tree finds the largest RRPV.
            oldest = self._smallest(m, [~value for value in values])
            m.d.comb += self.victim.eq(Mux(invalid.any(), self.free, one_hot_first(oldest)))
        m.d.comb += self.value.eq(_one_of(self.victim, values))
        return m

    def _smallest(self, m: Module, values: list[Value]) -> Signal:
        """All ways that have the smallest value. Pairwise compares: shallow, and few for 4 ways."""
        result = Signal(len(values), name="smallest")
        count = len(values)
        above = {
            (i, j): values[i] > values[j] for i in range(count) for j in range(count) if i != j
        }
        for i in range(count):
            beaten: Value = Const(0, 1)
            for j in range(count):
                if i != j:
                    beaten = beaten | above[i, j]
            m.d.comb += result[i].eq(~beaten)
        return result

    def _first_from(self, m: Module, candidates: Value) -> Value:
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


class UpdateDecision(wiring.Component):
    """New entries of a set from old ones: one update, load or sweep step.

    Combinational; the compares with the key and the choice of the victim are inputs, so that a
    pipeline register fits in between.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    op : In(BankOp)
    match : In(ways)
        One-hot or zero: the way that holds the key.
    victim, free, value : In
        See :class:`VictimChoice`.
    old : In(ArrayLayout(entry, ways))
    tag : In(ArrayLayout(tag, ways))
        The key's tags.
    hit, x_zero, y, u : In(1), In(1), In(2), In(16)
        `tracker.md`; ignored by `srrip`.
    write : Out(ways)
        Which ways change.
    new : Out(ArrayLayout(entry, ways))
    result : Out(ways)
        One-hot or zero: the way that held the key, or that took it (LOAD).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        entries = data.ArrayLayout(entry_layout(config), config.ways)
        super().__init__(
            {
                "op": In(BankOp),
                "match": In(config.ways),
                "victim": In(config.ways),
                "free": In(config.ways),
                "value": In(config.counter_bits),
                "old": In(entries),
                "tag": In(data.ArrayLayout(config.tag_bits, config.ways)),
                "hit": In(1),
                "x_zero": In(1),
                "y": In(2),
                "u": In(16),
                "write": Out(config.ways),
                "new": Out(entries),
                "result": Out(config.ways),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        present = Signal()
        insert = Signal(config.ways)
        change = Signal(config.ways)
        state = Signal(data.ArrayLayout(state_bits(config), config.ways))
        fresh = 1 if config.sample_aware else (((1 << config.counter_bits) - 2) << 1) | 1
        m.d.comb += present.eq(self.match.any())

        with m.Switch(self.op):
            with m.Case(BankOp.UPDATE):
                if config.sample_aware:
                    self._sample_aware(m, present, insert, change, state)
                else:
                    self._srrip(m, present, insert, change, state)
            with m.Case(BankOp.LOAD):
                m.d.comb += insert.eq(Mux(present, 0, self.free))
            with m.Case(BankOp.CLEAR, BankOp.UNMARK):
                m.d.comb += change.eq(~0)
                for way in range(config.ways):
                    m.d.comb += state[way].eq(self.old[way].state)
            with m.Case(BankOp.AGE):
                m.d.comb += change.eq(~0)
                for way in range(config.ways):
                    m.d.comb += state[way].eq(self._aged(self.old[way].state))
        clear = Signal()
        unmark = Signal()
        m.d.comb += [
            clear.eq(self.op == BankOp.CLEAR),
            unmark.eq(clear | (self.op == BankOp.UNMARK)),
            self.write.eq(insert | change),
            self.result.eq(self.match | Mux(self.op == BankOp.LOAD, insert, 0)),
        ]
        for way in range(config.ways):
            old, new = self.old[way], self.new[way]
            m.d.comb += [
                new.state.eq(Mux(clear, 0, Mux(insert[way], fresh, state[way]))),
                new.changed.eq((old.changed | insert[way]) & ~unmark),
                new.tag.eq(Mux(insert[way], self.tag[way], old.tag)),
            ]
        return m

    def _aged(self, state: Value) -> Value:
        if self.config.sample_aware:
            halved = state >> 1
            return Mux(state == 1, 1, halved)
        rrpv = state[1:]
        return Cat(state[0], Mux(rrpv.all(), rrpv, (rrpv + 1)[: len(rrpv)]))

    def _sample_aware(
        self, m: Module, present: Value, insert: Signal, change: Signal, state: Signal
    ) -> None:
        config = self.config
        top = (1 << config.counter_bits) - 1
        # low_zero[n]: the low n bits of u are 0.
        low_zero = Array(~self.u[:n].any() if n else Const(1, 1) for n in range(top))
        exponent = Signal(3)
        doubled = Signal(range(top + 7))
        count = Signal(config.counter_bits)
        step = Signal()
        rise = Signal()
        m.d.comb += [
            doubled.eq(Mux(self.value == 1, 0, self.value) + (self.y << 1)),
            exponent.eq(Mux(doubled > 6, 6, doubled)),
            step.eq(~self.u[:6].any()),
            count.eq(_one_of(self.match, [self.old[w].state for w in range(config.ways)])),
        ]
        with m.Switch(exponent):
            for n in range(6):
                with m.Case(n):
                    m.d.comb += step.eq(~self.u[:n].any() if n else 1)
        with m.Switch(count):
            for n in range(1, top):
                with m.Case(n):
                    m.d.comb += rise.eq(self.x_zero & low_zero[n - 1])
        with m.If(self.hit):
            m.d.comb += change.eq(Mux(rise, self.match, 0))
        with m.Elif(~present):
            with m.If(self.value == 0):
                m.d.comb += insert.eq(self.victim)
            with m.Elif(step):
                with m.If(self.value == 1):
                    m.d.comb += insert.eq(self.victim)
                with m.Else():
                    m.d.comb += change.eq(self.victim)
        for way in range(config.ways):
            old = self.old[way].state
            m.d.comb += state[way].eq(Mux(self.hit, old + 1, old - 1))

    def _srrip(
        self, m: Module, present: Value, insert: Signal, change: Signal, state: Signal
    ) -> None:
        config = self.config
        top = (1 << config.counter_bits) - 1
        full = Signal()
        m.d.comb += full.eq(~self.free.any())
        with m.If(present):
            m.d.comb += change.eq(self.match)
        with m.Else():
            m.d.comb += insert.eq(self.victim)
            # Ageing until one way has the largest value adds the same to all of them.
            with m.If(full):
                m.d.comb += change.eq(~self.victim)
        for way in range(config.ways):
            rrpv = self.old[way].state[1:]
            aged = (rrpv + (top - self.value))[: config.counter_bits]
            m.d.comb += state[way].eq(Cat(Const(1, 1), Mux(present, 0, aged)))
        return None
