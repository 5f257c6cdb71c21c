"""Floating-point operands for tests: corners, random pairs of all kinds, and what they cover."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hotline.golden.floating_point import FloatingPoint

__all__ = ["CLASSES", "class_counts", "classes", "corners", "every_pair", "random_pairs"]

#: Classes of numbers, in the order of :func:`classes`.
CLASSES = ("zero", "subnormal", "normal", "infinity", "signalling", "quiet")

Pairs = tuple[np.ndarray, np.ndarray]


def corners(fmt: FloatingPoint) -> np.ndarray:
    """Patterns at which something changes, of both signs: int64 [n]."""
    fraction, one = fmt.fraction_bits, ((1 << (fmt.exponent_bits - 1)) - 1) << fmt.fraction_bits
    unit = 1 << fraction
    starts = [
        unit,  # the smallest normal number
        2 * unit,
        one - (fraction + 1) * unit,  # half a unit of 1.0, and what is below
        one - unit,
        one,
        one + unit,
        one + (fraction + 1) * unit,
        one >> fraction + 1 << fraction,  # whose square is about the smallest normal number
        fmt.infinity - 2 * unit,
        fmt.infinity - unit,
    ]
    values = {0, 1, 2, 3, unit >> 1, (unit >> 1) - 1, (unit >> 1) + 1, one + (unit >> 1)}
    for start in starts:
        values |= {start - 2, start - 1, start, start + 1, start + 2}
    values |= {fmt.infinity - 2, fmt.infinity - 1, fmt.infinity}
    values |= {fmt.infinity + 1, fmt.nan - 1, fmt.nan, fmt.nan + 1, fmt.infinity + unit - 1}
    magnitudes = np.array(sorted(values), np.int64)
    return np.concatenate([magnitudes, magnitudes | 1 << (fmt.width - 1)])


def every_pair(patterns: np.ndarray) -> Pairs:
    """Each with each, itself included."""
    a, b = np.meshgrid(patterns, patterns, indexing="ij")
    return a.ravel(), b.ravel()


def random_pairs(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    """`count` pairs, as many of each kind, mixed."""
    kinds: list[Callable[[FloatingPoint, np.random.Generator, int], Pairs]] = [
        _any, _near, _opposite, _product_near_limits, _both_small, _sparse, _with_corner, _ends,
    ]  # fmt: skip
    parts = [kind(fmt, rng, -(-count // len(kinds))) for kind in kinds]
    a, b = (np.concatenate(side) for side in zip(*parts, strict=True))
    order = rng.permutation(len(a))[:count]
    return a[order], b[order]


def _any(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    a, b = rng.integers(0, 1 << fmt.width, (2, count))
    return a, b


def _with_exponent(fmt: FloatingPoint, number: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """`number` with another exponent field, the nearest that there is; never that of infinity."""
    mask = (1 << fmt.exponent_bits) - 1
    field = np.clip(exponent, 0, mask - 1)
    return (number & ~(mask << fmt.fraction_bits)) | (field << fmt.fraction_bits)


def _near(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    """Exponents so close that both operands count in a sum."""
    a, b = _any(fmt, rng, count)
    exponent = rng.integers(0, 1 << fmt.exponent_bits, count)
    reach = rng.integers(1, fmt.fraction_bits + 5, count)
    other = exponent + rng.integers(-reach, reach + 1)
    return _with_exponent(fmt, a, exponent), _with_exponent(fmt, b, other)


def _opposite(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    """Sums in which leading bits cancel, to zero every now and then."""
    a, _ = _any(fmt, rng, count)
    reach = 1 << rng.integers(0, fmt.fraction_bits + 2, count)
    magnitude = (a & ((1 << (fmt.width - 1)) - 1)) + rng.integers(-reach, reach + 1)
    magnitude = np.clip(magnitude, 0, fmt.infinity)
    return a, magnitude | (~a & 1 << (fmt.width - 1))


def _product_near_limits(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    """Products about the smallest normal number, the smallest subnormal, the largest number."""
    a, b = _any(fmt, rng, count)
    exponent = rng.integers(0, 1 << fmt.exponent_bits, count)
    bias = (1 << (fmt.exponent_bits - 1)) - 1
    wanted = rng.choice([1, 1, -fmt.fraction_bits, 2 * bias], count) + rng.integers(-3, 4, count)
    other = wanted + bias - exponent
    return _with_exponent(fmt, a, exponent), _with_exponent(fmt, b, other)


def _both_small(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    """Sums of subnormals and of what is little more; products of a subnormal and anything."""
    a, b = _any(fmt, rng, count)
    exponents = rng.integers(-2, 4, (2, count))
    other = np.where(rng.random(count) < 0.5, exponents[1], b >> fmt.fraction_bits)
    mask = (1 << fmt.exponent_bits) - 1
    # Fractions of all lengths: subnormals have no hidden bit to set their size.
    a >>= rng.integers(0, 2, count) * rng.integers(0, fmt.fraction_bits + 1, count)
    return _with_exponent(fmt, a, exponents[0]), _with_exponent(fmt, b, other & mask)


def _sparse(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    """Few bits in the fractions: results that are exact, and ties."""
    a, b = _near(fmt, rng, count)
    fraction = (1 << fmt.fraction_bits) - 1
    sides = []
    for side in (a, b):
        bits = rng.integers(0, fmt.fraction_bits, (2, count))
        # Either the ones of two places, or all above one of them.
        few = np.where(bits[0] % 2, 1 << bits[0] | 1 << bits[1], fraction >> bits[1] << bits[1])
        sides.append((side & ~fraction) | few)
    return sides[0], sides[1]


def _with_corner(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    a, b = _any(fmt, rng, count)
    corner = rng.choice(corners(fmt), count)
    left = rng.random(count) < 0.5
    return np.where(left, corner, a), np.where(left, b, corner)


def _ends(fmt: FloatingPoint, rng: np.random.Generator, count: int) -> Pairs:
    """The ends of the classes among themselves: -0 is only the sum of two of its kind."""
    normal = 1 << fmt.fraction_bits
    ends = np.array([0, 1, normal - 1, normal, fmt.infinity - 1, fmt.infinity, fmt.nan])
    a, b = rng.choice(ends, (2, count)) | rng.integers(0, 2, (2, count)) << (fmt.width - 1)
    return a, b


def classes(fmt: FloatingPoint, patterns: np.ndarray) -> np.ndarray:
    """Position in `CLASSES` of each pattern."""
    magnitude = patterns & ((1 << (fmt.width - 1)) - 1)
    limits = [1, 1 << fmt.fraction_bits, fmt.infinity, fmt.infinity + 1, fmt.nan]
    return np.searchsorted(limits, magnitude, side="right")


def class_counts(fmt: FloatingPoint, patterns: np.ndarray) -> dict[str, int]:
    """How many there are of each class and sign, as ``"-zero"``; NaN is ``"nan"``."""
    found = np.bincount(
        2 * classes(fmt, patterns) + (patterns >> (fmt.width - 1)), minlength=2 * len(CLASSES)
    )
    named = {
        f"{sign}{name}": int(found[2 * number + negative])
        for number, name in enumerate(CLASSES[:4])
        for negative, sign in enumerate("+-")
    }
    return {**named, "nan": int(found[8:].sum())}
