"""Row list reader: lists of any length, faults, one entry a cycle."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.presets import preset
from hotline.rtl.row_list_reader import RowListReader


@pytest.mark.parametrize("width", [32, 64, 128, 512])
def test_row_list_reader(width: int) -> None:
    config = preset("ecp5").replace(data_width=width)
    run_bench(RowListReader(config), "row_list_reader", "cocotb_row_list_reader")
