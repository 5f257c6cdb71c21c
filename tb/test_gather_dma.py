"""Gather DMA on a memory that reorders, interleaves and fails."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.presets import preset
from hotline.rtl.gather_dma import GatherDMA

_BASE = preset("ecp5").replace(max_tables=6, max_row_bytes=256)

CONFIGS = {
    "tiny": preset("tiny"),
    "ecp5": _BASE,
    "128": _BASE.replace(data_width=128, addr_width=64, id_width=1),
    "512": preset("datacenter").replace(max_tables=5, max_row_bytes=256),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_gather_dma(name: str) -> None:
    run_bench(GatherDMA(CONFIGS[name]), "gather_dma", "cocotb_gather_dma")
