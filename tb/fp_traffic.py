"""What the benches of the floating-point units share. See test_fp_units.py."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from fp_numbers import corners, every_pair
from harness.bench import Bench

from hotline.golden.floating_point import BINARY32

__all__ = ["FloatTraffic"]

_PAIRS = 1000


class FloatTraffic:
    """A unit, fed with a pair in each enabled cycle, and looked at in every cycle.

    Parameters
    ----------
    dut : cocotb handle
    operation : str
        Method of the model, ``"add"`` or ``"multiply"``.
    result : cocotb handle
        Its output.
    """

    def __init__(self, dut: Any, operation: str, result: Any) -> None:
        self.bench = Bench(dut)
        self._dut, self._result = dut, result
        self._operation = getattr(BINARY32, operation)
        self._latency = int(os.environ["FP_LATENCY"])

    async def start(self) -> None:
        """Start the clock."""
        self._dut.enable.value = self._dut.a.value = self._dut.b.value = 0
        await self.bench.start()

    async def check(self, a: np.ndarray, b: np.ndarray, *, stall: float, reset: float) -> None:
        """Compute all pairs.

        `stall` and `reset` are the probabilities, per cycle, of `enable` being low, and of `rst`
        being high, which must not matter.
        """
        want = [int(number) for number in self._operation(a, b)]
        left, right = ([int(number) for number in side] for side in (a, b))
        rng, dut = self.bench.rng, self._dut
        flight: list[int | None] = [None] * self._latency
        entered = 0
        while entered < len(want) + self._latency:
            moves = rng.random() >= stall
            # What is offered in other cycles must not get in.
            offered = min(entered, len(want) - 1) if moves else int(rng.integers(len(want)))
            dut.enable.value, dut.rst.value = int(moves), int(rng.random() < reset)
            dut.a.value, dut.b.value = left[offered], right[offered]
            await self.bench.sampled()
            if flight[0] is not None:
                got, due = int(self._result.value), want[flight[0]]
                assert got == due, f"pair {flight[0]}: {got:#x}, not {due:#x}"
            await self.bench.cycles(1)
            if moves:
                flight = [*flight[1:], offered]
                entered += 1
        dut.rst.value = 0

    async def corners(self, **disturbance: float) -> None:
        """Corners with each other, in random order."""
        a, b = every_pair(corners(BINARY32))
        order = self.bench.rng.permutation(a.size)[:_PAIRS]
        await self.check(a[order], b[order], **disturbance)
