"""Deduplication against the golden model, key by key."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.presets import preset
from hotline.rtl.dedup import Dedup


@pytest.mark.parametrize(
    ("lanes", "dedup_entries"), [(1, 0), (1, 4), (2, 1), (2, 64), (4, 0), (8, 16), (16, 4096)]
)
def test_numbers(lanes: int, dedup_entries: int) -> None:
    config = preset("ecp5").replace(lanes=lanes, dedup_entries=dedup_entries)
    run_bench(Dedup(config), "dedup", "cocotb_dedup")
