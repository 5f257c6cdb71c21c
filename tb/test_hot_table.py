"""Hot table: every shape against the reference, and the promised rates."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.hot_table import HotTable

_SMALL = preset("ecp5").replace(sets=16, banks=4, row_bits=16)

#: Name, changes to a small `ecp5`.
_SHAPES: dict[str, dict[str, object]] = {
    "lanes1_srrip": {"lanes": 1, "ways": 1, "policy": "srrip", "counter_bits": 2, "data_width": 32},
    "lanes1_ways4": {"lanes": 1, "banks": 1, "data_width": 128},
    "lanes2": {},
    "lanes2_srrip": {"policy": "srrip", "counter_bits": 2, "sets": 64},
    "lanes2_ways8": {"ways": 8, "counter_bits": 4, "sets": 8, "data_width": 256},
    "lanes2_flat": {"sets": 4, "banks": 4, "ways": 2},
    "one_set": {"sets": 1, "banks": 1, "ways": 8, "counter_bits": 2},
    "one_slot": {"sets": 1, "banks": 1, "ways": 1, "lanes": 1},
    "lanes4": {"lanes": 4, "banks": 2, "ways": 2, "data_width": 256},
    "lanes4_srrip": {"lanes": 4, "policy": "srrip", "counter_bits": 4, "ways": 8},
    "lanes8": {"lanes": 8, "banks": 8, "sets": 8, "counter_bits": 3, "data_width": 512},
    "lanes16": {"lanes": 16, "banks": 16, "sets": 64, "data_width": 512},
    "lanes16_aware_one_bank": {"lanes": 16, "banks": 1, "sets": 8, "data_width": 512},
    "lanes16_one_bank": {"lanes": 16, "banks": 1, "sets": 4, "policy": "srrip", "counter_bits": 3},
    "odd_width": {"table_bits": 3, "row_bits": 8, "sets": 8, "banks": 2, "max_tables": 8,
                  "dedup_entries": 0},
}  # fmt: skip


def _config(name: str) -> Config:
    return _SMALL.replace(**_SHAPES[name])


@pytest.mark.parametrize("name", _SHAPES)
def test_sequences(name: str) -> None:
    run_bench(
        HotTable(_config(name)),
        "hot_table",
        "cocotb_hot_table",
        testcase=["sequences", "reset_in_traffic"],
    )


@pytest.mark.parametrize("name", ["lanes2", "lanes4", "lanes16_aware_one_bank"])
def test_sequences_without_pauses(name: str) -> None:
    """Updates of the same sets follow each other as closely as can be."""
    run_bench(
        HotTable(_config(name)),
        "hot_table",
        "cocotb_hot_table",
        testcase="sequences",
        env={"HOT_TABLE_PAUSE": "0"},
    )


@pytest.mark.parametrize(
    ("config", "floors"),
    [
        (
            preset("datacenter"),
            # A key that is in every group: three cycles a group, where entries are forwarded.
            {"RANDOM": "15.5", "EQUAL": "15.99", "UPDATE": "7.0", "COMMON": "4.5"},
        ),
        (
            preset("ecp5").replace(sets=1024, banks=4),
            {"RANDOM": "2", "EQUAL": "2", "UPDATE": "1.0"},
        ),
        # One bank takes one update a cycle; the interlock on equal indices costs some of that.
        (preset("ecp5").replace(sets=1024), {"RANDOM": "2", "EQUAL": "2", "UPDATE": "0.9"}),
        (preset("tiny"), {"RANDOM": "1", "EQUAL": "1", "UPDATE": "0.9"}),
    ],
    ids=["datacenter", "four_banks", "ecp5", "tiny"],
)
def test_throughput(config: Config, floors: dict[str, str]) -> None:
    env = {f"HOT_TABLE_{name}": floor for name, floor in floors.items()}
    run_bench(HotTable(config), "hot_table", "cocotb_hot_table", testcase="throughput", env=env)
