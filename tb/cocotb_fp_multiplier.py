"""Floating-point multiplier: the pipeline. See test_fp_units.py."""

from __future__ import annotations

from typing import Any

import cocotb
from fp_traffic import FloatTraffic


@cocotb.test
@cocotb.parametrize(stall=[0.0, 0.5])
async def corners(dut: Any, stall: float) -> None:
    """A result each enabled cycle, after exactly the latency; held while disabled."""
    traffic = FloatTraffic(dut, "multiply", dut.product)
    await traffic.start()
    await traffic.corners(stall=stall, reset=stall / 5)
