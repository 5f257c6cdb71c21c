"""Floating-point multiplier: IEEE-754, round to nearest even, subnormals, infinities, one NaN."""

from __future__ import annotations

from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.rtl.fp_format import FloatFormat
from hotline.rtl.fp_parts import StageRegisters, leading_zeros, shift_right_sticky

__all__ = ["FloatMultiplier"]

#: Stages that end in registers, by latency.
_CUTS = {
    4: ("multiply", "add", "shift", "round"),
    5: ("unpack", "multiply", "add", "shift", "round"),
}


class FloatMultiplier(wiring.Component):
    """Product of two numbers, a new one each cycle.

    Latency :attr:`latency` enabled cycles, one product a cycle. The pipeline is rigid: it moves
    when `enable` is high and holds otherwise. It has no state that needs a reset, and no valid
    bits: what is in flight is for the owner to know. Every NaN result is the one with sign 0 and
    only the top bit of the fraction set.

    Subnormals are multiplied as they are. Leading zeros of a subnormal operand, and the exponent of
    the product, decide how far to shift what comes out, in one go whether that normalises or
    denormalises; then it is rounded, once.

    Parameters
    ----------
    format : FloatFormat
        Of operands and product.
    latency : int
        4 or 5. The fifth stage stands in front.
    multiplier_bits : int
        Operands of the FPGA's multipliers, unsigned. Wider significands take four of them.

    Members
    -------
    enable : In(1)
    a, b : In(format.width)
    product : Out(format.width)
        From a register.

    Raises
    ------
    ValueError
        Another latency, or `multiplier_bits` less than 1.
    """

    def __init__(self, format: FloatFormat, latency: int = 5, multiplier_bits: int = 18) -> None:
        if latency not in _CUTS:
            raise ValueError(f"latency must be 4 or 5, not {latency}")
        if multiplier_bits < 1:
            raise ValueError(f"multiplier_bits must be at least 1, not {multiplier_bits}")
        self.format, self.latency = format, latency
        self.multiplier_bits = multiplier_bits
        super().__init__(
            {
                "enable": In(1),
                "a": In(format.width),
                "b": In(format.width),
                "product": Out(format.width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = StageRegisters(m, self.enable, _CUTS[self.latency])
        now = stages.end("unpack", **self._unpack(m))
        now = stages.end("multiply", **self._multiply(m, now))
        now = stages.end("add", **self._add(m, now))
        now = stages.end("shift", **self._shift(m, now))
        now = stages.end("round", **self._round(m, now))
        m.d.comb += self.product.eq(now.result)
        return m

    def _unpack(self, m: Module) -> dict[str, Value]:
        """Fields and classes of the operands."""
        fmt = self.format
        a, b = fmt.view(self.a), fmt.view(self.b)
        special_a, special_b, empty_a, empty_b, zero = (Signal() for _ in range(5))
        m.d.comb += [
            special_a.eq(fmt.is_special(a)),
            special_b.eq(fmt.is_special(b)),
            empty_a.eq(~a.fraction.any()),
            empty_b.eq(~b.fraction.any()),
            zero.eq((empty_a & ~fmt.is_normal(a)) | (empty_b & ~fmt.is_normal(b))),
        ]
        # What a subnormal has; of two of them it does not matter: their product is shifted out.
        fraction = Mux(fmt.is_normal(a), 0, a.fraction) | Mux(fmt.is_normal(b), 0, b.fraction)
        special = special_a | special_b
        nan = (special_a & ~empty_a) | (special_b & ~empty_b) | (special & zero)
        return {
            "sign": (a.sign ^ b.sign) & ~nan,
            "special": special,
            "nan": nan,
            "zero": zero,
            "scale": fmt.scale(a) + fmt.scale(b),
            "a": fmt.significand(a),
            "b": fmt.significand(b),
            "fraction": fraction,
        }

    def _multiply(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """Partial products; leading zeros of the subnormal operand, if there is one."""
        fmt = self.format
        bits = fmt.significand_bits
        zeros = leading_zeros(m, Cat(now.fraction, now.a[-1] & now.b[-1]))
        # The exponent field that this makes without the hidden bit; and the shift that brings the
        # product to the exponent of subnormals instead, saturated.
        exponent, to_subnormal = (Signal(signed(fmt.exponent_bits + 2)) for _ in range(2))
        m.d.comb += [
            exponent.eq(now.scale - (fmt.bias + 1)),
            to_subnormal.eq(fmt.bias + 1 + bits - now.scale),
        ]
        # So many places shift everything below the guard bit.
        size = (2 * bits + 2).bit_length()
        too_far = to_subnormal[size:-1].any()
        return {
            "sign": now.sign,
            "special": now.special,
            "nan": now.nan,
            "zero": now.zero,
            "zeros": zeros,
            "exponent": exponent,
            "to_subnormal": to_subnormal[:size] | too_far.replicate(size),
            **self._partial_products(now.a, now.b),
        }

    def _partial_products(self, a: Value, b: Value) -> dict[str, Value]:
        """What the multipliers of the FPGA compute."""
        cut = self.multiplier_bits
        if self.format.significand_bits <= cut:
            return {"whole": a * b}
        return {
            "low": a[:cut] * b[:cut],
            "cross_a": a[:cut] * b[cut:],
            "cross_b": a[cut:] * b[:cut],
            "high": a[cut:] * b[cut:],
        }

    def _add(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """The product, its exponent, and how far it is to be shifted."""
        bits, cut = self.format.significand_bits, self.multiplier_bits
        product = Signal(2 * bits)
        if bits <= cut:
            m.d.comb += product.eq(now.whole)
        else:
            upper = Signal(2 * bits - cut)
            m.d.comb += [
                upper.eq(Cat(now.low[cut:], now.high) + (now.cross_a + now.cross_b)),
                product.eq(Cat(now.low[:cut], upper)),
            ]
        normal = Signal()
        places = Signal.like(now.to_subnormal)
        m.d.comb += [
            normal.eq(now.exponent > now.zeros),
            places.eq(Mux(normal, bits - now.zeros, now.to_subnormal)),
        ]
        return {
            "sign": now.sign,
            "special": now.special,
            "nan": now.nan,
            "zero": now.zero,
            "product": product,
            "places": places,
            "normal": normal,
            "exponent": (now.exponent - now.zeros)[: self.format.exponent_bits + 1],
        }

    def _shift(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """The significand of the result, with a place above it and a guard bit below."""
        fmt = self.format
        # Two places more than the product has, so that a shift by the width of a significand
        # leaves the guard bit lowest; less moves the product up, more moves it down.
        value, sticky = shift_right_sticky(m, Cat(Const(0, 2), now.product), now.places)
        infinite = Signal()
        m.d.comb += infinite.eq(now.special | (now.normal & (now.exponent >= fmt.max_exponent - 1)))
        finite_exponent = Mux(now.normal & ~now.zero, now.exponent[: fmt.exponent_bits], 0)
        return {
            "sign": now.sign,
            "nan": now.nan,
            "exponent": Mux(infinite, fmt.max_exponent, finite_exponent),
            # This one overflows if the product has its top bit.
            "largest": now.exponent == fmt.max_exponent - 2,
            "value": Mux(infinite, 0, value[: fmt.significand_bits + 2]),
            "sticky": sticky,
        }

    def _round(self, m: Module, now: SimpleNamespace) -> dict[str, Value]:
        """Takes the significand from under the highest 1, and rounds it."""
        fmt = self.format
        # An overflow takes neither, so nothing but its exponent gets into the result.
        upper, lower = Signal(), Signal()
        m.d.comb += [
            upper.eq(now.value[-1] & ~now.largest),
            lower.eq(~now.value[-1]),
        ]
        value = now.value
        round_upper = value[1] & (value[2] | value[0] | now.sticky)
        round_lower = value[0] & (value[1] | now.sticky)
        fraction, up = Signal(fmt.fraction_bits), Signal()
        m.d.comb += [
            fraction.eq(Mux(upper, value[2:-1], 0) | Mux(lower, value[1:-2], 0)),
            up.eq((upper & round_upper) | (lower & round_lower)),
        ]
        hidden = lower & value[-2]
        magnitude = Signal(fmt.width - 1)
        # The hidden bit counts the exponent up, by 2 from the upper place. The fraction of a NaN
        # is 0 so far.
        m.d.comb += magnitude.eq(
            Cat(fraction, now.exponent)
            + Cat(up, Const(0, fmt.fraction_bits - 2), now.nan, hidden, value[-1])
        )
        return {"result": Cat(magnitude, now.sign)}
