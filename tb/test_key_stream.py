"""KeyStream: order, boundaries, errors and rate, over lanes, bus widths and table counts."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.key_stream import KeyStream

#: lanes, data_width, max_tables, table_bits, row_bits, max_sample_keys, addr_width, max_burst_beats
SHAPES = [
    (1, 32, 8, 4, 16, 32, 32, 8),
    (2, 64, 32, 5, 28, 256, 40, 16),
    (16, 512, 40, 6, 28, 256, 48, 16),
]
MORE_SHAPES = [
    (1, 512, 1, 1, 32, 16, 64, 1),
    (2, 32, 40, 6, 32, 64, 32, 4),
    (4, 256, 40, 6, 8, 100, 48, 16),
    (8, 32, 40, 6, 28, 128, 32, 16),
    (16, 128, 100, 10, 9, 65536, 33, 256),
]


def shape(values: tuple[int, ...]) -> Config:
    """Configuration of a row of SHAPES."""
    lanes, width, tables, table_bits, row_bits, longest, address, burst = values
    return preset("datacenter").replace(
        lanes=lanes,
        data_width=width,
        max_tables=tables,
        table_bits=table_bits,
        row_bits=row_bits,
        max_sample_keys=longest,
        addr_width=address,
        max_burst_beats=burst,
        learn_group=1,
        sets=64,
        banks=4,
        dedup_entries=0,
    )


@pytest.mark.parametrize("values", SHAPES, ids=lambda values: "-".join(map(str, values)))
def test_groups_and_rate(values: tuple[int, ...]) -> None:
    run_bench(
        KeyStream(shape(values)),
        "key_stream",
        "cocotb_key_stream",
        testcase=["random_commands", "reset_in_mid_traffic", "line_rate"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("values", MORE_SHAPES, ids=lambda values: "-".join(map(str, values)))
def test_more_groups(values: tuple[int, ...]) -> None:
    run_bench(
        KeyStream(shape(values)),
        "key_stream",
        "cocotb_key_stream",
        testcase=["random_commands", "reset_in_mid_traffic"],
    )
