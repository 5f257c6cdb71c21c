"""The whole RTL against the golden model: random command sequences on many configurations."""

from __future__ import annotations

import numpy as np
import pytest
from harness.pair import Pair
from harness.traffic import Traffic
from system_configs import SYSTEM_CONFIGS

from hotline.host.verilated import BusTiming

#: What every test run tries; the others take minutes to compile.
_QUICK = ("tiny", "ecp5_small")


@pytest.mark.parametrize(
    "name",
    [
        name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in SYSTEM_CONFIGS
    ],
)
def test_random_commands(name: str, seed: int) -> None:
    config = SYSTEM_CONFIGS[name]
    rng = np.random.default_rng(seed)
    pair = Pair(config, rng, timing=BusTiming.rough(seed), random_state=True)
    try:
        tables = int(rng.integers(2, min(8, config.max_tables) + 1))
        traffic = Traffic(
            pair, rng, tables=tables, rows=40, row_bytes=min(100, config.max_row_bytes)
        )
        for _ in range(60):
            traffic.any_command()
    finally:
        pair.close()
