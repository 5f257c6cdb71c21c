"""Classifier against its golden model: lists, row numbers, counts, errors, line rate."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.classifier import Classifier

FUNCTIONAL = ["random_commands", "longest_samples", "empty_commands", "error_and_flush"]


def _config(lanes: int, data_width: int, dedup_entries: int, max_sample_keys: int = 40) -> Config:
    return preset("ecp5").replace(
        lanes=lanes,
        data_width=data_width,
        dedup_entries=dedup_entries,
        max_sample_keys=max_sample_keys,
    )


@pytest.mark.parametrize(
    ("lanes", "data_width", "dedup_entries", "max_sample_keys"),
    [
        (1, 32, 0, 40),
        (1, 64, 4, 16),
        (1, 128, 1, 40),
        (2, 32, 64, 40),
        (2, 512, 1, 16),
        (4, 64, 4, 40),
        (4, 256, 4096, 30),
        (8, 128, 64, 40),
        (8, 32, 0, 40),
        (16, 512, 64, 40),
        (16, 32, 4096, 17),
    ],
)
def test_random_batches(
    lanes: int, data_width: int, dedup_entries: int, max_sample_keys: int
) -> None:
    config = _config(lanes, data_width, dedup_entries, max_sample_keys)
    run_bench(Classifier(config), "classifier", "cocotb_classifier", testcase=FUNCTIONAL)


@pytest.mark.parametrize("name", ["tiny", "ecp5"])
def test_presets(name: str) -> None:
    run_bench(
        Classifier(preset(name)), "classifier", "cocotb_classifier", testcase="random_commands"
    )


@pytest.mark.parametrize(("lanes", "data_width"), [(2, 64), (16, 512)])
def test_line_rate(lanes: int, data_width: int) -> None:
    config = _config(lanes, data_width, 4096, 256)
    run_bench(Classifier(config), "classifier", "cocotb_classifier", testcase="line_rate")


def test_rows_wait() -> None:
    config = _config(4, 64, 4096)
    run_bench(Classifier(config), "classifier", "cocotb_classifier", testcase="rows_wait")


def test_random_initial_state() -> None:
    """Nothing relies on registers or memories that start at zero."""
    run_bench(
        Classifier(_config(4, 64, 64)),
        "classifier",
        "cocotb_classifier",
        testcase=["random_commands", "error_and_flush"],
        arguments=["--x-initial", "unique"],
        plusargs=["+verilator+rand+reset+2"],
    )
