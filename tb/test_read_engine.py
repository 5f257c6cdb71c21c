"""ReadEngine: order, rate, limits, faults and halt on a rough memory."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.burst import burst_limit
from hotline.rtl.read_engine import ReadEngine, read_buffer_beats

ECP5, DATACENTER = preset("ecp5"), preset("datacenter")

#: Name -> configuration and number of ports.
CASES: dict[str, tuple[Config, int]] = {
    "tiny": (preset("tiny"), 3),
    "ecp5": (ECP5, 3),
    "datacenter": (DATACENTER, 3),
    "one_port": (ECP5, 1),
    "one_id_bit": (ECP5.replace(id_width=1, addr_width=64), 3),
    "many_ids": (ECP5.replace(id_width=8, read_outstanding=3, data_width=128), 2),
    "one_in_flight": (ECP5.replace(read_outstanding=1, data_width=256), 2),
    "single_beats": (ECP5.replace(max_burst_beats=1, read_outstanding=256), 2),
    "narrow": (ECP5.replace(max_burst_beats=1, id_width=1, read_outstanding=16), 3),
    "long_bursts": (ECP5.replace(max_burst_beats=256, data_width=32, addr_width=33), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_read_engine(name: str) -> None:
    """Random traffic, full rate, a stalled port, faults, halt and reset."""
    config, ports = CASES[name]
    engine = ReadEngine(config, [read_buffer_beats(config)] * ports)
    run_bench(engine, "read_engine", "cocotb_read_engine", config=config)


@pytest.mark.parametrize("name", ["tiny", "ecp5"])
def test_random_initial_state(name: str) -> None:
    """The reset suffices: everything else starts with random values."""
    config, ports = CASES[name]
    run_bench(
        ReadEngine(config, [read_buffer_beats(config)] * ports),
        "read_engine",
        "cocotb_read_engine",
        config=config,
        testcase="random_bursts",
        arguments=["--x-initial", "unique"],
        plusargs=["+verilator+rand+reset+2"],
    )


def test_buffer_depth() -> None:
    """The default covers 200 cycles with every preset; bad depths are named."""
    assert read_buffer_beats(ECP5) == read_buffer_beats(DATACENTER) == 512
    least = 4 * burst_limit(ECP5)
    for depth in (least // 2, least + 1):
        message = f"a read buffer must be a power of two of at least {least} beats, not {depth}"
        with pytest.raises(ValueError, match=message):
            ReadEngine(ECP5, [depth])
