"""Row mover against a byte-exact model: bus widths, row lengths, alignments, faults, line rate."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.row_mover import RowMover

_BASE = preset("ecp5").replace(max_tables=6, max_row_bytes=256, scatter_add=True)

#: Everything is tried on these.
CONFIGS = {
    "tiny": preset("tiny"),
    "ecp5": _BASE,
    "512": _BASE.replace(
        data_width=512, max_burst_beats=256, max_row_bytes=4096, addr_width=33, row_bits=8
    ),
}

#: Only correctness is tried on these.
ODD_CONFIGS = {
    "32-wide-address": _BASE.replace(data_width=32, addr_width=44),
    "64-long-rows": _BASE.replace(max_row_bytes=4096, max_tables=1, scatter_add=False),
    "128-short-bursts": _BASE.replace(data_width=128, max_burst_beats=3, row_bits=32),
    "64-single-beats": _BASE.replace(
        max_burst_beats=1, id_width=1, read_outstanding=16, max_row_bytes=1024
    ),
    "256-single-beats": _BASE.replace(data_width=256, max_burst_beats=1, addr_width=64),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_row_mover(name: str) -> None:
    config: Config = CONFIGS[name]
    run_bench(RowMover(config), "row_mover", "cocotb_row_mover")


@pytest.mark.parametrize("name", ODD_CONFIGS)
def test_odd_configurations(name: str) -> None:
    config = ODD_CONFIGS[name]
    # A test that is named runs even where it would be skipped.
    adds = ["adds_rows"] if config.scatter_add else []
    run_bench(
        RowMover(config),
        "row_mover",
        "cocotb_row_mover",
        testcase=["moves_rows", "longest_rows", *adds],
    )


def test_random_initial_state() -> None:
    run_bench(
        RowMover(CONFIGS["ecp5"]),
        "row_mover",
        "cocotb_row_mover",
        testcase=["moves_rows", "reset_in_mid_traffic"],
        arguments=["--x-initial", "unique"],
        plusargs=["+verilator+rand+reset+2"],
    )
