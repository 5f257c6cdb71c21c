"""Clock, reset and per-cycle scheduling of a bench.

With Verilator, ``RisingEdge`` returns after the values of the *next* cycle have settled. So all
agents here keep one discipline: **inputs change just after the rising edge, everything is sampled
at the falling edge**, where the cycle's values are final. Whatever a handshake shows there
happens at the rising edge that follows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import Event, FallingEdge, RisingEdge

from hotline.gen.config import Config

__all__ = ["Bench", "config", "random_generator"]

PERIOD_NS = 10


def config() -> Config:
    """The configuration that ``run_bench`` was given."""
    return Config.from_dict(json.loads(os.environ["HOTLINE_CONFIG"]))


def random_generator(stream: int = 0) -> np.random.Generator:
    """NumPy generator seeded from the run's seed; `stream` gives independent ones."""
    return np.random.default_rng([int(cocotb.RANDOM_SEED), stream])


class Bench:
    """The clock of one design, and the agents that run on it.

    Parameters
    ----------
    dut : cocotb handle
        Top of the simulation.
    clock, reset : str
        Port names.
    active_low : bool
        Polarity of the reset.
    max_cycles : int
        The test fails after this many cycles.

    Members
    -------
    cycle : int
        Rising edges since :meth:`start`.
    rng : numpy.random.Generator
        Seeded from the run's seed.
    """

    def __init__(
        self,
        dut: Any,
        *,
        clock: str = "clk",
        reset: str = "rst",
        active_low: bool = False,
        max_cycles: int = 2_000_000,
    ) -> None:
        self.dut = dut
        self.rng = random_generator()
        self.cycle = 0
        self.max_cycles = max_cycles
        self._clock = getattr(dut, clock)
        self._reset = getattr(dut, reset)
        self._reset_active = 0 if active_low else 1
        self._in_reset = False
        self._drivers: list[Callable[[], None]] = []
        self._samplers: list[Callable[[], None]] = []
        self._waiting: list[tuple[Callable[[], bool], Event]] = []

    # ---- agents -------------------------------------------------------------------------------

    def on_drive(self, function: Callable[[], None]) -> None:
        """Call `function` just after each rising edge: the only place to change inputs."""
        self._drivers.append(function)

    def on_sample(self, function: Callable[[], None]) -> None:
        """Call `function` at each falling edge outside reset: the place to look at handshakes."""
        self._samplers.append(function)

    @property
    def in_reset(self) -> bool:
        """Whether the reset is asserted."""
        return self._in_reset

    # ---- time ---------------------------------------------------------------------------------

    async def start(self, reset_cycles: int = 3) -> None:
        """Start the clock, reset the design, and return just after a rising edge."""
        self._reset.value = self._reset_active
        self._in_reset = True
        for drive in self._drivers:
            drive()
        Clock(self._clock, PERIOD_NS, unit="ns").start()
        cocotb.start_soon(self._run())
        await self.reset(reset_cycles)

    async def reset(self, cycles: int = 3) -> None:
        """Assert the reset for some cycles; may be called in mid-traffic."""
        self._reset.value = self._reset_active
        self._in_reset = True
        await self.cycles(cycles)
        self._reset.value = 1 - self._reset_active
        self._in_reset = False

    async def cycles(self, count: int = 1) -> None:
        """Wait for `count` rising edges. Inputs may be changed on return."""
        for _ in range(count):
            await RisingEdge(self._clock)

    async def sampled(self) -> None:
        """Wait for the next sampling point (falling edge). Only look, do not drive."""
        await FallingEdge(self._clock)

    async def until(self, condition: Callable[[], bool], what: str, limit: int = 100_000) -> None:
        """Wait until `condition()` holds at a sampling point, then to the next rising edge.

        Raises
        ------
        AssertionError
            It did not within `limit` cycles; the message says `what` was awaited.
        """
        end = self.cycle + limit
        event = Event()
        self._waiting.append((lambda: condition() or self.cycle > end, event))
        await event.wait()
        assert self.cycle <= end, f"{what}: not within {limit} cycles"
        await RisingEdge(self._clock)

    async def _run(self) -> None:
        rising, falling = RisingEdge(self._clock), FallingEdge(self._clock)
        while True:
            await falling
            if not self._in_reset:
                for sample in self._samplers:
                    sample()
            if self._waiting:
                done = [item for item in self._waiting if item[0]()]
                self._waiting = [item for item in self._waiting if item not in done]
                for _, event in done:
                    event.set()
            await rising
            self.cycle += 1
            assert self.cycle < self.max_cycles, f"the test ran for {self.max_cycles} cycles"
            for drive in self._drivers:
                drive()
