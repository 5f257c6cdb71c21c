"""Floating-point adder and multiplier: every pair of a small format, corners, random pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from fp_numbers import class_counts, corners, every_pair, random_pairs
from fp_units import FloatUnits
from harness.build import run_bench
from harness.vectors import VectorModel

from hotline.golden.floating_point import BINARY32, FloatingPoint
from hotline.rtl import fp_format
from hotline.rtl.fp_adder import FloatAdder
from hotline.rtl.fp_format import FloatFormat
from hotline.rtl.fp_multiplier import FloatMultiplier

_CHUNK = 250_000


class _Counts:
    """Results by class, of each unit."""

    def __init__(self, units: Iterable[str]) -> None:
        self._found: dict[str, Counter[str]] = {unit: Counter() for unit in units}

    def add(self, unit: str, found: dict[str, int]) -> None:
        """Count the results of a unit."""
        self._found[unit].update(found)

    def __iadd__(self, other: _Counts) -> _Counts:
        for unit, found in other._found.items():
            self.add(unit, found)
        return self

    def assert_covered(self, least: int = 1) -> None:
        """Every class of results has been met so often, by every unit."""
        for unit, found in self._found.items():
            assert min(found.values()) >= least, (unit, found)


class _Checker:
    """All units of a format, simulated side by side, and the model."""

    def __init__(self, format: FloatFormat, split: int) -> None:
        self.format = FloatingPoint(format.exponent_bits, format.fraction_bits)
        component = FloatUnits(format, split)
        self.units = component.units
        self._model = VectorModel(component, f"fp_units_{format.width}")

    def check(
        self, a: np.ndarray, b: np.ndarray, rng: np.random.Generator, stall: float
    ) -> _Counts:
        """Every result of every unit, in each cycle in which it is to be seen.

        `stall` is the share of cycles with `enable` low; their inputs are those of any pair.
        """
        size, drain = a.size, max(latency for _, latency in self.units.values())
        # Cycles that each pair waits for; it enters in the last of them.
        wait = rng.geometric(1 - stall, size) if stall else np.ones(size, np.int64)
        moves = np.zeros(wait.sum() + drain, bool)
        moves[np.cumsum(wait) - 1] = True
        moves[wait.sum() :] = True
        pair = rng.integers(0, size, moves.size)
        pair[moves] = np.minimum(np.arange(size + drain), size - 1)
        result = self._model.run(enable=moves, a=a[pair], b=b[pair])
        entered = np.cumsum(moves) - moves
        counts = _Counts(self.units)
        for name, (operation, latency) in self.units.items():
            shown = entered - latency
            seen = (shown >= 0) & (shown < size)
            shown, got = shown[seen], result[name][seen]
            want = getattr(self.format, operation)(a, b)
            wrong = np.flatnonzero(got != want[shown])
            if wrong.size:
                first = wrong[0]
                i = shown[first]
                raise AssertionError(
                    f"{name}: {wrong.size} wrong, the first is pair {i}: {a[i]:#x} and {b[i]:#x} "
                    f"gave {got[first]:#x}, not {want[i]:#x}"
                )
            assert np.unique(shown).size == size
            counts.add(name, class_counts(self.format, want))
        return counts


@pytest.fixture(scope="module")
def binary32() -> _Checker:
    return _Checker(fp_format.BINARY32, 17)


# ---- bulk: a pair a cycle through Verilator -----------------------------------------------------


@pytest.mark.parametrize(("widths", "split"), [((5, 3), 2), ((4, 4), 1)], ids=["e5m3", "e4m4"])
def test_every_pair_of_a_small_format(widths: tuple[int, int], split: int, seed: int) -> None:
    checker = _Checker(FloatFormat(*widths), split)
    a, b = every_pair(np.arange(1 << checker.format.width))
    checker.check(a, b, np.random.default_rng(seed), 0.1).assert_covered()


def test_corners(binary32: _Checker, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = every_pair(corners(BINARY32))
    for stall in (0.0, 0.5):
        binary32.check(a, b, rng, stall).assert_covered()


@pytest.mark.parametrize("pairs", [1_000_000, 10_000_000], ids=["1M", "10M"])
def test_random_patterns(binary32: _Checker, pairs: int, seed: int) -> None:
    """Uniform patterns: exponents are far apart in most pairs."""
    rng = np.random.default_rng(seed)
    for _ in range(pairs // _CHUNK):
        a, b = rng.integers(0, 1 << BINARY32.width, (2, _CHUNK))
        binary32.check(a, b, rng, 0.0)


@pytest.mark.parametrize("pairs", [1_000_000, 10_000_000], ids=["1M", "10M"])
def test_random_pairs_of_all_kinds(binary32: _Checker, pairs: int, seed: int) -> None:
    """Cancellation, subnormals, limits, ties; a quarter of it with stalls."""
    rng = np.random.default_rng(seed)
    counts = _Counts(binary32.units)
    for number in range(pairs // _CHUNK):
        a, b = random_pairs(BINARY32, rng, _CHUNK)
        counts += binary32.check(a, b, rng, 0.0 if number % 4 else 0.4)
    counts.assert_covered(pairs // 5000)


# ---- bench: enable, latency, reset --------------------------------------------------------------


def test_adder() -> None:
    unit = FloatAdder(fp_format.BINARY32)
    run_bench(unit, "fp_adder", "cocotb_fp_adder", env={"FP_LATENCY": str(unit.latency)})


def test_multiplier() -> None:
    unit = FloatMultiplier(fp_format.BINARY32)
    run_bench(unit, "fp_multiplier", "cocotb_fp_multiplier", env={"FP_LATENCY": str(unit.latency)})


# ---- parameters ---------------------------------------------------------------------------------


def test_messages() -> None:
    with pytest.raises(ValueError, match=r"^exponent_bits must be at least 4, not 3$"):
        FloatFormat(3, 2)
    with pytest.raises(
        ValueError, match=r"^fraction_bits must be from 2 to 12 with 5 exponent bits, not 13$"
    ):
        FloatFormat(5, 13)
    with pytest.raises(ValueError, match=r"^latency must be 3 to 5, not 6$"):
        FloatAdder(fp_format.BINARY32, 6)
    with pytest.raises(ValueError, match=r"^latency must be 4 or 5, not 3$"):
        FloatMultiplier(fp_format.BINARY32, 3)
    with pytest.raises(ValueError, match=r"^multiplier_bits must be at least 1, not 0$"):
        FloatMultiplier(fp_format.BINARY32, multiplier_bits=0)


def test_format() -> None:
    fmt = fp_format.BINARY32
    assert (fmt.width, fmt.significand_bits, fmt.bias, fmt.max_exponent) == (32, 24, 127, 255)
    assert fmt.layout.size == fmt.width
