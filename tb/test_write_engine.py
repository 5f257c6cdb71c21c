"""WriteEngine: content, rate, limits, faults and halt on a rough memory."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.write_engine import WriteEngine

ECP5 = preset("ecp5")

#: Name -> configuration and number of channels.
CASES: dict[str, tuple[Config, int]] = {
    "tiny": (preset("tiny"), 7),
    "ecp5": (ECP5, 7),
    "datacenter": (preset("datacenter"), 7),
    "one_channel": (ECP5.replace(addr_width=64, write_outstanding=3), 1),
    "one_in_flight": (ECP5.replace(write_outstanding=1, id_width=1, data_width=256), 2),
    "single_beats": (ECP5.replace(max_burst_beats=1, write_outstanding=512), 3),
    "long_bursts": (ECP5.replace(max_burst_beats=256, data_width=32, addr_width=33), 2),
    "odd_bursts": (ECP5.replace(max_burst_beats=7, data_width=128, write_outstanding=5), 5),
}


@pytest.mark.parametrize("name", CASES)
def test_write_engine(name: str) -> None:
    """Random traffic, full rate, an unfinished burst, faults, halt and reset."""
    config, channels = CASES[name]
    run_bench(WriteEngine(config, channels), "write_engine", "cocotb_write_engine", config=config)


@pytest.mark.parametrize("name", ["tiny", "ecp5"])
def test_random_initial_state(name: str) -> None:
    """The reset suffices: everything else starts with random values."""
    config, channels = CASES[name]
    run_bench(
        WriteEngine(config, channels),
        "write_engine",
        "cocotb_write_engine",
        config=config,
        testcase="random_bursts",
        arguments=["--x-initial", "unique"],
        plusargs=["+verilator+rand+reset+2"],
    )
