"""Netlists of the whole accelerator against the golden model, command by command."""

from __future__ import annotations

import numpy as np
import pytest
from harness.pair import Pair
from harness.traffic import Traffic
from system_configs import SYSTEM_CONFIGS

from hotline.fpga.netlist import netlist
from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.host.verilated import BusTiming

#: Mapped and compiled within two minutes.
_SMALLEST = SYSTEM_CONFIGS["tiny"].replace(
    sets=16, table_bits=2, row_bits=8, max_tables=4, max_sample_keys=16, max_row_bytes=64,
    read_outstanding=1, write_outstanding=1, max_burst_beats=1,
)  # fmt: skip


def _run(config: Config, family: str, seed: int, commands: int, memory: int) -> dict[str, int]:
    """Random commands on the netlist; all memory, records and registers as the model's."""
    mapped = netlist(config, family)
    rng = np.random.default_rng(seed)
    pair = Pair(
        config, rng, memory, timing=BusTiming.rough(seed), random_state=True,
        verilog=mapped.with_models(), optimise=False,
    )  # fmt: skip
    try:
        traffic = Traffic(
            pair, rng, tables=int(rng.integers(2, min(8, config.max_tables) + 1)), rows=40,
            row_bytes=min(100, config.max_row_bytes),
        )  # fmt: skip
        for _ in range(commands):
            traffic.any_command()
    finally:
        pair.close()
    return mapped.cells


@pytest.mark.slow
def test_smallest(seed: int) -> None:
    cells = _run(_SMALLEST, "ecp5", seed, 60, 1 << 21)
    assert cells["DP16KD"] and cells["LUT4"] and cells["TRELLIS_FF"]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["ecp5", "ice40"])
def test_tiny(family: str, seed: int) -> None:
    cells = _run(preset("tiny"), family, seed, 60, 1 << 21)
    assert cells["DP16KD" if family == "ecp5" else "SB_RAM40_4K"]


@pytest.mark.slow
def test_ecp5(seed: int) -> None:
    cells = _run(preset("ecp5"), "ecp5", seed, 60, 1 << 24)
    assert cells["DP16KD"] and cells["MULT18X18D"]
