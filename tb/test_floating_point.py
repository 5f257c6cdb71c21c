"""The integer model of sum and product against NumPy, and against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from fp_numbers import CLASSES, class_counts, classes, corners, every_pair, random_pairs
from hypothesis import given
from hypothesis import strategies as st

from hotline.golden.floating_point import BINARY32, FloatingPoint
from hotline.golden.pool import NAN, add_f32

_UFUNCS = {"add": np.add, "multiply": np.multiply}
_OPERATIONS = tuple(_UFUNCS)

_CHUNK = 500_000

_PATTERNS = st.one_of(
    st.integers(0, (1 << 32) - 1), st.sampled_from([int(n) for n in corners(BINARY32)])
)


def _numpy(operation: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What NumPy's float32 makes of the patterns, all NaN mapped to one."""
    a, b = (side.astype(np.uint32).view(np.float32) for side in (a, b))
    with np.errstate(all="ignore"):
        result = _UFUNCS[operation](a, b)
    return np.where(np.isnan(result), np.uint32(NAN), result.view(np.uint32)).astype(np.int64)


def _check_binary32(operation: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = getattr(BINARY32, operation)(a, b)
    wrong = np.flatnonzero(result != _numpy(operation, a, b))
    shown = [(hex(a[i]), hex(b[i]), hex(result[i])) for i in wrong[:5]]
    assert not wrong.size, f"{wrong.size} wrong: {shown}"
    return result


# ---- against NumPy ------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", _OPERATIONS)
def test_corners(operation: str) -> None:
    a, b = every_pair(corners(BINARY32))
    result = _check_binary32(operation, a, b)
    met = len(CLASSES) * classes(BINARY32, a) + classes(BINARY32, b)
    assert np.unique(met).size == len(CLASSES) ** 2
    assert min(class_counts(BINARY32, result).values()) > 0
    assert (result[classes(BINARY32, result) >= CLASSES.index("signalling")] == NAN).all()


@pytest.mark.parametrize("operation", _OPERATIONS)
def test_ten_million_random_patterns(operation: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10_000_000 // _CHUNK):
        a, b = rng.integers(0, 1 << 32, (2, _CHUNK))
        _check_binary32(operation, a, b)


@pytest.mark.parametrize("operation", _OPERATIONS)
def test_random_pairs_of_all_kinds(operation: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [random_pairs(BINARY32, rng, _CHUNK) for _ in range(4)]
    result = np.concatenate([_check_binary32(operation, *pair) for pair in pairs])
    counts = class_counts(BINARY32, result)
    assert min(counts.values()) > result.size // 5000, counts


def test_agrees_with_the_units_of_the_device() -> None:
    a, b = every_pair(corners(BINARY32))
    left, right = (side.astype("<u4").view(np.uint8) for side in (a, b))
    assert np.array_equal(add_f32(left, right).view("<u4"), BINARY32.add(a, b))


# ---- against exact arithmetic -------------------------------------------------------------------


def _value(fmt: FloatingPoint, pattern: int) -> Fraction:
    """Value of a finite pattern; that of infinity is where the next exponent would begin."""
    exponent = pattern >> fmt.fraction_bits
    fraction = Fraction(pattern % (1 << fmt.fraction_bits), 1 << fmt.fraction_bits)
    bias = (1 << (fmt.exponent_bits - 1)) - 1
    if exponent == 0:
        return fraction * Fraction(2) ** (1 - bias)
    return (1 + fraction) * Fraction(2) ** (exponent - bias)


def _slow(fmt: FloatingPoint, operation: str) -> np.ndarray:
    """Result of every pair of patterns: IEEE-754 by its words, from the table of all values.

    Values and exact results of a small format are exact in float64 as well, which is asserted.
    """
    size = 1 << fmt.width
    table = [_value(fmt, pattern) for pattern in range(fmt.infinity + 1)]
    exact_table = np.array([float(value) for value in table])
    assert all(Fraction(float(value)) == value for value in table)
    assert operation == "multiply" or 2 * table[-1] / table[1] < 1 << 53
    sign = np.arange(size) >> (fmt.width - 1)
    magnitude = np.arange(size) % (size // 2)
    finite = magnitude < fmt.infinity
    values = np.zeros(size)
    values[finite] = exact_table[magnitude[finite]] * np.where(sign[finite], -1, 1)
    values[magnitude == fmt.infinity] = np.where(sign[magnitude == fmt.infinity], -1, 1) * np.inf
    values[magnitude > fmt.infinity] = np.nan
    with np.errstate(invalid="ignore"):
        exact = _UFUNCS[operation](*every_pair(values))
    # The two neighbours, and the nearer one; of two that are equally near the even one.
    distance = np.minimum(np.abs(exact), exact_table[-1])
    above = np.searchsorted(exact_table, np.nan_to_num(distance))
    below = np.maximum(above - 1, 0)
    to_below, to_above = distance - exact_table[below], exact_table[above] - distance
    even = np.where(below % 2 == 0, below, above)
    nearest = np.where(to_below < to_above, below, np.where(to_above < to_below, above, even))
    result = nearest | np.signbit(exact).astype(np.int64) << (fmt.width - 1)
    return np.where(np.isnan(exact), fmt.nan, result)


@pytest.mark.parametrize("operation", _OPERATIONS)
@pytest.mark.parametrize("widths", [(5, 3), (4, 4), (5, 2)])
def test_every_pair_of_a_small_format(widths: tuple[int, int], operation: str) -> None:
    fmt = FloatingPoint(*widths)
    a, b = every_pair(np.arange(1 << fmt.width))
    result = getattr(fmt, operation)(a, b)
    wrong = np.flatnonzero(result != _slow(fmt, operation))
    shown = [(hex(a[i]), hex(b[i]), hex(result[i])) for i in wrong[:5]]
    assert not wrong.size, f"{wrong.size} of {a.size} wrong: {shown}"
    assert min(class_counts(fmt, result).values()) > 0


def test_binary16_is_that_of_numpy(seed: int) -> None:
    fmt = FloatingPoint(5, 10)
    a, b = random_pairs(fmt, np.random.default_rng(seed), 200_000)
    for operation in _OPERATIONS:
        with np.errstate(all="ignore"):
            sides = (side.astype(np.uint16).view(np.float16) for side in (a, b))
            result = _UFUNCS[operation](*sides)
        want = np.where(np.isnan(result), fmt.nan, result.view(np.uint16))
        assert np.array_equal(getattr(fmt, operation)(a, b), want)


# ---- properties ---------------------------------------------------------------------------------


@given(_PATTERNS, _PATTERNS)
def test_commutes(a: int, b: int) -> None:
    assert BINARY32.add(a, b) == BINARY32.add(b, a)
    assert BINARY32.multiply(a, b) == BINARY32.multiply(b, a)


@given(_PATTERNS)
def test_neutral_elements(a: int) -> None:
    number = NAN if a & 0x7FFFFFFF > BINARY32.infinity else a
    assert BINARY32.add(a, 0x80000000) == number
    assert BINARY32.add(a, 0) == (0 if number == 0x80000000 else number)
    assert BINARY32.multiply(a, 0x3F800000) == number


@given(_PATTERNS, _PATTERNS)
def test_signs(a: int, b: int) -> None:
    """Negating both operands negates a sum that is not zero; negating one, a product."""
    minus = 1 << 31
    total, negated = BINARY32.add(a, b), BINARY32.add(a ^ minus, b ^ minus)
    assert negated == total ^ minus or total == negated == NAN or total == negated == 0
    product, negated = BINARY32.multiply(a, b), BINARY32.multiply(a ^ minus, b)
    assert negated == product ^ minus or product == negated == NAN


def test_messages() -> None:
    with pytest.raises(ValueError, match=r"^exponent_bits must be from 2 to 11, not 12$"):
        FloatingPoint(12, 10)
    with pytest.raises(ValueError, match=r"^fraction_bits must be from 1 to 25, not 52$"):
        FloatingPoint(11, 52)
