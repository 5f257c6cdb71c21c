"""Floating-point adder: IEEE-754, round to nearest even, subnormals, infinities, one NaN."""

from __future__ import annotations

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import ceil_log2
from hotline.rtl.fp_format import FloatFormat
from hotline.rtl.fp_parts import StageRegisters, leading_zeros, shift_right, shift_right_sticky

__all__ = ["FloatAdder"]

#: Places below the significands of a sum: guard, round and sticky bit.
_EXTRA = 3

#: Stages that end in registers, by latency.
_CUTS = {
    3: ("order", "sum", "round"),
    4: ("order", "sum", "normalise", "round"),
    5: ("order", "sum", "count", "normalise", "round"),
}


class FloatAdder(wiring.Component):
    """Sum of two numbers, a new one each cycle.

    Latency :attr:`latency` enabled cycles, one sum a cycle. The pipeline is rigid: it moves when
    `enable` is high and holds otherwise. It has no state that needs a reset, and no valid bits:
    what is in flight is for the owner to know. Every NaN result is the one with sign 0 and only the
    top bit of the fraction set; an exact zero of operands of different signs is +0.

    Parameters
    ----------
    format : FloatFormat
        Of operands and sum.
    latency : int
        3 to 5. The fourth stage costs 43 registers (binary32), and raises the clock by almost half;
        the fifth separates the count of leading zeros from the shift.

    Members
    -------
    enable : In(1)
    a, b : In(format.width)
    sum : Out(format.width)
        From a register.

    Raises
    ------
    ValueError
        Another latency.
    """

    def __init__(self, format: FloatFormat, latency: int = 5) -> None:
        if latency not in _CUTS:
            raise ValueError(f"latency must be 3 to 5, not {latency}")
        self.format, self.latency = format, latency
        super().__init__(
            {
                "enable": In(1),
                "a": In(format.width),
                "b": In(format.width),
                "sum": Out(format.width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = StageRegisters(m, self.enable, _CUTS[self.latency])
        now = stages.end("order", **self._order(m))
        now = stages.end("sum", **self._sum(m, now))
        now = stages.end("count", **self._count(m, now))
        now = stages.end("normalise", **self._normalise(m, now))
        now = stages.end("round", **self._round(m, now))
        m.d.comb += self.sum.eq(now.result)
        return m

    def _order(self, m: Module) -> dict[str, Value]:
        """Which operand is the bigger one, and how far the other lies below it."""
        fmt = self.format
        a, b = fmt.view(self.a), fmt.view(self.b)
        # Patterns without their signs are in the order of the magnitudes, NaN above all.
        swap = Signal()
        big, small = Signal(fmt.layout), Signal(fmt.layout)
        m.d.comb += [
            swap.eq(self.a[:-1] < self.b[:-1]),
            big.eq(Mux(swap, self.b, self.a)),
            small.eq(Mux(swap, self.a, self.b)),
        ]
        scale_a, scale_b = Signal(fmt.exponent_bits), Signal(fmt.exponent_bits)
        m.d.comb += [scale_a.eq(fmt.scale(a)), scale_b.eq(fmt.scale(b))]
        # Both ways, so that neither waits for the comparison.
        a_b, b_a = Signal(fmt.exponent_bits), Signal(fmt.exponent_bits)
        m.d.comb += [a_b.eq(scale_a - scale_b), b_a.eq(scale_b - scale_a)]
        # The first level of the shifter fits in here; it drops nothing yet.
        odd = scale_a[0] ^ scale_b[0]
        low = Cat(Const(0, _EXTRA), fmt.significand(small))
        subtract = a.sign ^ b.sign
        return {
            "sign": big.sign,
            "subtract": subtract,
            # Where the smaller one is special, so is the bigger one.
            "special": fmt.is_special(a) | fmt.is_special(b),
            "cancels": fmt.is_special(a) & fmt.is_special(b) & subtract,
            "scale": Mux(swap, scale_b, scale_a),
            "big": fmt.significand(big),
            "small": Mux(odd, shift_right(low, 1), low),
            "places": Mux(swap, self._places(b_a), self._places(a_b)),
        }

    def _places(self, distance: Signal) -> Value:
        """Places to shift by, without the lowest. From a certain distance on, all of them: at most
        the top bit is left then, and that in the sticky place."""
        size = ceil_log2(self.format.significand_bits + _EXTRA + 1)
        far = distance[size:].any()
        return Cat(place | far for place in distance[1:size])

    def _sum(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """The smaller significand, aligned, added to or taken from the bigger one."""
        fmt = self.format
        shifted, sticky = shift_right_sticky(m, now.small, now.places, lowest=1)
        aligned = Cat(shifted[0] | sticky, shifted[1:], 0)
        # The bigger one has nothing in its extra places, so there is room for the 1 of -x = ~x + 1.
        big = Cat(now.subtract, Const(0, _EXTRA - 1), now.big, 0)
        total = Signal(len(big))
        m.d.comb += total.eq(big + (aligned ^ now.subtract.replicate(len(aligned))))
        # Shifting left ends where the exponent does. An infinity stays where it is: its total
        # is 0, so nothing but its exponent gets into the result.
        levels = ceil_log2(len(total))
        too_much = now.scale[levels:].any()
        limit = Cat((place | too_much) & ~now.special for place in now.scale[:levels])
        return {
            "sign": now.sign,
            "subtract": now.subtract & ~now.special,
            "nan": now.special & (now.big[:-1].any() | now.cancels),
            "scale": now.scale,
            "limit": limit,
            "total": Mux(now.special, 0, total),
            "largest": now.scale == fmt.max_exponent - 1,
        }

    def _count(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """Leading zeros, and what is special about the sum."""
        zero = Signal()
        m.d.comb += zero.eq(now.subtract & ~now.total.any())
        return {
            "sign": now.sign & ~now.nan & ~zero,
            "nan": now.nan,
            "scale": now.scale,
            "zero": zero,
            "overflow": now.largest & now.total[-1],
            "total": now.total,
            "count": leading_zeros(m, now.total, now.limit),
        }

    def _normalise(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """As much of the shift as time allows: all but the last two levels."""
        value: Value = now.total
        for level in reversed(range(2, len(now.count))):
            value = self._shifted_left(m, value, now.count, level)
        return {
            "sign": now.sign,
            "nan": now.nan,
            # Field and shift of a zero; the shift was not limited, so they do not cancel out.
            "scale": Mux(now.zero, 0, now.scale),
            "count": Mux(now.zero, 0, now.count),
            # The top bit of an overflow makes its exponent that of infinity.
            "top": value[-1],
            "rest": Mux(now.overflow, 0, value[:-1]),
        }

    def _round(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """The last places of the shift, and the rounding, whose carry counts the exponent up."""
        fmt = self.format
        value: Value = Cat(now.rest, now.top)
        for level in (1, 0):
            value = self._shifted_left(m, value, now.count, level)
        below = len(value) - fmt.significand_bits
        guard, sticky = value[below - 1], value[: below - 1].any()
        fraction, hidden = value[below:-1], value[-1]
        exponent, up = Signal(fmt.exponent_bits), Signal()
        m.d.comb += [
            exponent.eq(now.scale - now.count),
            up.eq(guard & (sticky | fraction[0])),
        ]
        magnitude = Signal(fmt.width - 1)
        # A subnormal has the exponent field 0, where its scale is 1: the hidden bit makes up.
        # The fraction of a NaN is 0 so far.
        m.d.comb += magnitude.eq(
            Cat(fraction, exponent) + Cat(up, Const(0, fmt.fraction_bits - 2), now.nan, hidden)
        )
        return {"result": Cat(magnitude, now.sign)}

    def _shifted_left(self, m: Module, value: Value, count: Value, level: int) -> Value:
        """One level of the shifter that normalises."""
        distance = 1 << level
        shifted = Signal(len(value))
        longer = Cat(Const(0, distance), value)[: len(value)]
        m.d.comb += shifted.eq(Mux(count[level], longer, value))
        return shifted
