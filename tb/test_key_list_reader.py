"""Key list reader: lists of any length, faults, one entry a cycle."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.presets import preset
from hotline.rtl.key_list_reader import KeyListReader


@pytest.mark.parametrize("width", [32, 64, 128, 512])
def test_key_list_reader(width: int) -> None:
    config = preset("ecp5").replace(data_width=width)
    run_bench(KeyListReader(config), "key_list_reader", "cocotb_key_list_reader")
