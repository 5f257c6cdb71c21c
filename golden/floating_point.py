"""Floating-point sum and product on bit patterns: IEEE-754, round to nearest even, one NaN.

Integers only, so that the model does not depend on the floating-point unit, its rounding mode or
its treatment of subnormals, and generic in the widths of exponent and fraction. Source: IEEE
754-2019, sections 3.4 (formats), 4.3.1 (rounding), 6 (infinity, NaN, sign).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import vectorize
from numba.extending import register_jitable

__all__ = ["BINARY32", "FloatingPoint"]

#: Bits of an exact product, the longest significand here; :func:`_length` is exact up to 53.
_PRODUCT_BITS = 52

#: Low bits that a sum keeps of the operand that was shifted: guard, round and sticky.
_EXTRA_BITS = 3


@register_jitable
def _length(x):  # type: ignore[no-untyped-def]
    """Number of bits of x, 0 for 0."""
    return math.frexp(float(x))[1]


@register_jitable
def _unpack(bits, exponent_bits, fraction_bits):  # type: ignore[no-untyped-def]
    """(significand, shift): the magnitude is significand * 2**shift smallest subnormals."""
    exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    if exponent == 0:
        return fraction, 0
    return fraction | (1 << fraction_bits), exponent - 1


@register_jitable
def _pack(sign, significand, shift, exponent_bits, fraction_bits):  # type: ignore[no-untyped-def]
    """The number nearest to significand * 2**shift smallest subnormals, ties to even."""
    if significand == 0:
        return sign << (exponent_bits + fraction_bits)
    # Bits to drop, so that the rest fits and the exponent is not below that of subnormals.
    drop = max(_length(significand) - (fraction_bits + 1), -shift)
    if drop <= 0:
        kept = significand << -drop
    else:
        # What is dropped entirely is less than half a unit, by however much.
        drop = min(drop, _PRODUCT_BITS + 2)
        kept = significand >> drop
        rest, half = significand & ((1 << drop) - 1), 1 << (drop - 1)
        if rest > half or (rest == half and kept & 1):
            kept += 1
    # The hidden bit, if there is one, adds 1 to the exponent; so does a carry of the rounding.
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    magnitude = min((max(shift + drop, 0) << fraction_bits) + kept, infinity)
    return (sign << (exponent_bits + fraction_bits)) | magnitude


@vectorize
def _add(a, b, exponent_bits, fraction_bits):  # type: ignore[no-untyped-def]
    width = exponent_bits + fraction_bits
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    nan = infinity | (1 << (fraction_bits - 1))
    magnitude_a, magnitude_b = a & ((1 << width) - 1), b & ((1 << width) - 1)
    if magnitude_a < magnitude_b:
        a, b = b, a
        magnitude_a, magnitude_b = magnitude_b, magnitude_a
    sign = a >> width
    subtract = sign != b >> width
    if magnitude_a > infinity or (magnitude_b == infinity and subtract):
        return nan
    if magnitude_a == infinity:
        return a
    big, shift = _unpack(magnitude_a, exponent_bits, fraction_bits)
    small, shift_small = _unpack(magnitude_b, exponent_bits, fraction_bits)
    distance = min(shift - shift_small, fraction_bits + 1 + _EXTRA_BITS)
    big, small = big << _EXTRA_BITS, small << _EXTRA_BITS
    lost = small & ((1 << distance) - 1)
    small = (small >> distance) | (1 if lost else 0)
    total = big - small if subtract else big + small
    if total == 0 and subtract:
        sign = 0
    return _pack(sign, total, shift - _EXTRA_BITS, exponent_bits, fraction_bits)


@vectorize
def _multiply(a, b, exponent_bits, fraction_bits):  # type: ignore[no-untyped-def]
    width = exponent_bits + fraction_bits
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    nan = infinity | (1 << (fraction_bits - 1))
    sign = (a ^ b) >> width
    a, b = a & ((1 << width) - 1), b & ((1 << width) - 1)
    if a > infinity or b > infinity:
        return nan
    if a == infinity or b == infinity:
        return nan if a == 0 or b == 0 else (sign << width) | infinity
    significand_a, shift_a = _unpack(a, exponent_bits, fraction_bits)
    significand_b, shift_b = _unpack(b, exponent_bits, fraction_bits)
    # Two factors of the smallest subnormal, of which the result has one.
    smallest = 2 - (1 << (exponent_bits - 1)) - fraction_bits
    return _pack(
        sign,
        significand_a * significand_b,
        shift_a + shift_b + smallest,
        exponent_bits,
        fraction_bits,
    )


class FloatingPoint:
    """Sum and product in a binary interchange format.

    Operands and results are bit patterns: sign, exponent, fraction from the top. Every NaN result
    is :attr:`nan`, whatever NaN came in.

    Parameters
    ----------
    exponent_bits : int
        2..11.
    fraction_bits : int
        1..25, so that a product fits into the integers used here.

    Members
    -------
    width : int
        Bits of a number.
    infinity, nan : int
        Patterns of plus infinity, and of the one NaN: sign 0, only the top bit of the fraction set.

    Raises
    ------
    ValueError
        A width out of its range.
    """

    def __init__(self, exponent_bits: int, fraction_bits: int) -> None:
        if not 2 <= exponent_bits <= 11:
            raise ValueError(f"exponent_bits must be from 2 to 11, not {exponent_bits}")
        if not 1 <= fraction_bits <= _PRODUCT_BITS // 2 - 1:
            raise ValueError(f"fraction_bits must be from 1 to 25, not {fraction_bits}")
        self.exponent_bits, self.fraction_bits = exponent_bits, fraction_bits
        self.width = 1 + exponent_bits + fraction_bits
        self.infinity = ((1 << exponent_bits) - 1) << fraction_bits
        self.nan = self.infinity | 1 << (fraction_bits - 1)

    def add(self, a: Any, b: Any) -> np.ndarray:
        """Patterns of a + b, element by element: int64, shape as NumPy broadcasts it."""
        return self._apply(_add, a, b)

    def multiply(self, a: Any, b: Any) -> np.ndarray:
        """Patterns of a * b, element by element: int64, shape as NumPy broadcasts it."""
        return self._apply(_multiply, a, b)

    def _apply(self, kernel: Any, a: Any, b: Any) -> np.ndarray:
        a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
        return np.asarray(kernel(a, b, np.int64(self.exponent_bits), np.int64(self.fraction_bits)))


#: IEEE-754 binary32.
BINARY32 = FloatingPoint(8, 23)
