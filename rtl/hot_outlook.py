"""What an operation would do with each way of a set: the first step of an update.

Source: spec section 5 and `tracker.md`, section "Update".
"""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.hot_update import BankOp, entry_valid, state_bits, way_outlook

__all__ = ["WayOutlook", "chances", "random_bits"]

#: The largest exponent of the probability with which a victim loses a count.
_LAST_EXPONENT = 6


def random_bits(config: Config) -> int:
    """How many of the low bits of u decide about rises and steps."""
    return max(_LAST_EXPONENT, (1 << config.counter_bits) - 3)


def chances(config: Config, u: Value, x_zero: Value, y: Value) -> tuple[Value, Value]:
    """By cnt: whether a victim gives way one step, and whether a key that was hit rises.

    The cnt of both is the bit number; `step` ends at cnt 6, all above behave alike.
    """
    top = (1 << config.counter_bits) - 1
    zero = [~u[:n].any() if n else Const(1, 1) for n in range(random_bits(config) + 1)]
    step: list[Value] = [Const(0, 1)]
    for count in range(1, min(top, _LAST_EXPONENT) + 1):
        base = 0 if count == 1 else count
        by_y = Array(zero[min(_LAST_EXPONENT, base + 2 * n)] for n in range(4))
        step.append(by_y[y])
    rise = [Const(0, 1), *(x_zero & zero[count - 1] for count in range(1, top)), Const(0, 1)]
    return Cat(step), Cat(rise)


class WayOutlook(wiring.Component):
    """What the operation would do with each way of a set, whoever becomes the victim.

    Combinational.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    op : In(BankOp)
    state : In(ArrayLayout(state, ways))
    hit, step, rise : In
        The key's phase-1 outcome, and its :func:`chances` (`sample_aware` only).
    outlook : Out(way_outlook)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        top = (1 << config.counter_bits) - 1
        super().__init__(
            {
                "op": In(BankOp),
                "state": In(data.ArrayLayout(state_bits(config), config.ways)),
                "hit": In(1),
                "step": In(min(top, _LAST_EXPONENT) + 1),
                "rise": In(top + 1),
                "outlook": Out(way_outlook(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        outlook = self.outlook
        states = [self.state[w] for w in range(config.ways)]
        values = states if config.sample_aware else [~state[1:] for state in states]
        m.d.comb += [
            # With the smallest complement, the same compares find the largest RRPV.
            outlook.best.eq(self._smallest(values)),
            outlook.invalid.eq(Cat(~entry_valid(config, state) for state in states)),
        ]
        for way, state in enumerate(states):
            if config.sample_aware:
                self._chances(m, way, state)
            with m.Switch(self.op):
                with m.Case(BankOp.CLEAR):
                    m.d.comb += outlook.state[way].eq(0)
                with m.Case(BankOp.AGE):
                    m.d.comb += outlook.state[way].eq(self._aged(state))
                with m.Case(BankOp.UPDATE):
                    stepped = Mux(self.hit, state + 1, state - 1) if config.sample_aware else state
                    m.d.comb += outlook.state[way].eq(stepped)
                with m.Default():
                    m.d.comb += outlook.state[way].eq(state)
        return m

    def _chances(self, m: Module, way: int, state: Value) -> None:
        outlook = self.outlook
        last = len(self.step) - 1
        step = Signal(name=f"step_{way}")
        with m.Switch(state):
            for count in range(last):
                with m.Case(count):
                    m.d.comb += step.eq(self.step[count])
            with m.Default():
                m.d.comb += step.eq(self.step[last])
        m.d.comb += [
            outlook.taken[way].eq((state == 0) | ((state == 1) & step)),
            outlook.worn[way].eq((state > 1) & step),
            outlook.raised[way].eq(self.rise.bit_select(state, 1)),
        ]

    def _smallest(self, values: list[Value]) -> Value:
        """All ways that have the smallest value. Pairwise compares: shallow, and few for 4 ways."""
        return Cat(
            ~Cat(value > other for j, other in enumerate(values) if j != i).any()
            for i, value in enumerate(values)
        )

    def _aged(self, state: Value) -> Value:
        if self.config.sample_aware:
            return Mux(state == 1, 1, state >> 1)
        rrpv = state[1:]
        return Cat(state[0], Mux(rrpv.all(), rrpv, (rrpv + 1)[: len(rrpv)]))
