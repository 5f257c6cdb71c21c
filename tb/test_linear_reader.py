"""LinearReader: every beat of a region once, in legal bursts."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.linear_reader import LinearReader

ECP5 = preset("ecp5")

CASES: dict[str, Config] = {
    "tiny": preset("tiny"),
    "ecp5": ECP5,
    "datacenter": preset("datacenter"),
    "single_beats": ECP5.replace(max_burst_beats=1, addr_width=64),
    "long_bursts": ECP5.replace(max_burst_beats=256, data_width=256),
    "odd_bursts": ECP5.replace(max_burst_beats=7, data_width=128),
}


@pytest.mark.parametrize("name", CASES)
def test_linear_reader(name: str) -> None:
    """Regions of many sizes, the end of the address space, the rate."""
    config = CASES[name]
    run_bench(LinearReader(config), "linear_reader", "cocotb_linear_reader", config=config)
