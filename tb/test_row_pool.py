"""RowPool: sums of bags, bit for bit as the golden model has them, and their rate."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.presets import preset
from hotline.rtl.row_pool import RowPool

_BASE = preset("ecp5").replace(max_row_bytes=128)

CONFIGS = {
    "64": _BASE,
    "32": _BASE.replace(data_width=32, addr_width=32),
    "256": _BASE.replace(data_width=256),
    "512": preset("datacenter").replace(max_row_bytes=256),
}


@pytest.mark.parametrize(
    "name", ["64", "256", *(pytest.param(name, marks=pytest.mark.slow) for name in ("32", "512"))]
)
def test_row_pool(name: str) -> None:
    config = CONFIGS[name]
    run_bench(RowPool(config), "row_pool", "cocotb_row_pool", config=config)
