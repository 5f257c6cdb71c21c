"""Aligner: every offset and length, line rate, faults."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.presets import preset
from hotline.rtl.aligner import Aligner


@pytest.mark.parametrize("width", [32, 64, 128, 512])
def test_aligner(width: int) -> None:
    config = preset("ecp5").replace(data_width=width)
    run_bench(Aligner(config), "aligner", "cocotb_aligner")
