"""Binary floating-point formats of IEEE-754: widths, fields, classes of numbers."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Cat, Value
from amaranth.hdl import ValueLike
from amaranth.lib import data

__all__ = ["BINARY32", "FloatFormat"]

_MIN_EXPONENT_BITS = 4
_MIN_FRACTION_BITS = 2


@dataclass(frozen=True)
class FloatFormat:
    """A format with subnormals, infinities and NaN.

    Parameters
    ----------
    exponent_bits : int
        At least 4.
    fraction_bits : int
        From 2 to `bias` - 3: so the product of two subnormals is less than half of the smallest
        one, and a multiplier need not normalise both its operands.

    Raises
    ------
    ValueError
        A width out of its range.
    """

    exponent_bits: int
    fraction_bits: int

    def __post_init__(self) -> None:
        if self.exponent_bits < _MIN_EXPONENT_BITS:
            raise ValueError(
                f"exponent_bits must be at least {_MIN_EXPONENT_BITS}, not {self.exponent_bits}"
            )
        limit = self.bias - 3
        if not _MIN_FRACTION_BITS <= self.fraction_bits <= limit:
            raise ValueError(
                f"fraction_bits must be from {_MIN_FRACTION_BITS} to {limit} "
                f"with {self.exponent_bits} exponent bits, not {self.fraction_bits}"
            )

    # ---- widths -------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Bits of a number."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def significand_bits(self) -> int:
        """Bits of a fraction with its hidden bit on top."""
        return 1 + self.fraction_bits

    @property
    def bias(self) -> int:
        """Exponent field of 1.0."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def max_exponent(self) -> int:
        """Exponent field of infinities and NaN; no finite number has it."""
        return (1 << self.exponent_bits) - 1

    @property
    def layout(self) -> data.StructLayout:
        """Fields of a number."""
        return data.StructLayout(
            {"fraction": self.fraction_bits, "exponent": self.exponent_bits, "sign": 1}
        )

    # ---- fields -------------------------------------------------------------------------------

    def view(self, number: ValueLike) -> data.View:
        """The fields of `number`."""
        return data.View(self.layout, number)

    def is_special(self, number: data.View) -> Value:
        """Infinity or NaN."""
        return number.exponent.all()

    def is_normal(self, number: data.View) -> Value:
        """The hidden bit: neither zero nor subnormal."""
        return number.exponent.any()

    def scale(self, number: data.View) -> Value:
        """Exponent by which the significand counts: that of zero and subnormals is 1, not 0."""
        return Cat(number.exponent[0] | ~self.is_normal(number), number.exponent[1:])

    def significand(self, number: data.View) -> Value:
        """Fraction with the hidden bit on top."""
        return Cat(number.fraction, self.is_normal(number))


#: IEEE-754 binary32, the numbers of embedding rows.
BINARY32 = FloatFormat(8, 23)
