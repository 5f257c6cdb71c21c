"""pytest set-up shared by all tests: the harness is importable, here and inside the simulator."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hotline.host import Device

# cocotb's Python inherits sys.path from this process, so the benches are found by their names.
#: Left to `make regress`, as patterns of test names: the same benches on more shapes, each of which
#: costs a build of up to minutes.
_SLOW = (
    "test_classifier.py::test_line_rate[[]16-512]",
    "test_classifier.py::test_random_batches[[]1-128*",
    "test_classifier.py::test_random_batches[[]2-512*",
    "test_classifier.py::test_random_batches[[]8-128*",
    "test_classifier.py::test_random_batches[[]?-256*",
    "test_classifier.py::test_random_batches[[]*-32-*",
    "test_classifier.py::test_presets[[]ecp5]",
    "test_classifier.py::test_random_batches[[]16-512*",
    "test_dedup.py::test_numbers[[]16-*",
    "test_dedup.py::test_numbers[[]2-1]",
    "test_dedup.py::test_numbers[[]4-0]",
    "test_dedup.py::test_numbers[[]8-16]",
    "test_fp_units.py::*[[]10M]",
    "test_gather_dma.py::test_gather_dma[[]512]",
    "test_hot_table.py::test_sequences[[]lanes?_ways4]",
    "test_hot_table.py::test_sequences[[]*_srrip]",
    "test_hot_table.py::test_sequences[[]lanes8]",
    "test_hot_table.py::test_sequences[[]lanes2_ways8]",
    "test_hot_table.py::test_sequences[[]lanes16*",
    "test_hot_table.py::test_throughput[[]datacenter]",
    "test_hot_table.py::test_sequences[[]one_set]",
    "test_hot_table.py::test_throughput[[]four_banks]",
    "test_key_stream.py::test_groups_and_rate[[]16-512*",
    "test_read_engine.py::test_read_engine[[]*a*n*]",
    "test_read_engine.py::test_read_engine[[]long_bursts]",
    "test_read_engine.py::test_read_engine[[]one_in_flight]",
    "test_registers.py::test_registers[[]widest]",
    "test_registers.py::test_registers[[]ragged]",
    "test_row_mover.py::test_odd_configurations*",
    "test_row_mover.py::test_row_mover[[]512]",
    "test_top.py::*[[]ecp5_small]",
    "test_top.py::*[[]wide_aware]",
    "test_verilated.py::*datacenter*",
    "test_write_engine.py::test_write_engine[[]*a*e*]",
    "test_write_engine.py::test_write_engine[[]o*]",
    "test_write_engine.py::test_write_engine[[]long_bursts]",
)

_HERE = str(Path(__file__).resolve().parent)
if _HERE not in sys.path:
    sys.path.insert(0, _HERE)


@pytest.fixture
def seed() -> int:
    """``HOTLINE_SEED``, or 1; printed, and shown when a test fails."""
    from harness.build import default_seed

    value = default_seed()
    print(f"seed {value}")
    return value


@pytest.fixture(params=["golden", "verilator"])
def device(request: pytest.FixtureRequest, seed: int) -> Iterator[Device]:
    """:func:`small_device.small_device`, golden and simulated."""
    from small_device import small_device

    with small_device(request.param, seed) as opened:
        yield opened


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what only `make regress` runs."""
    for item in items:
        if any(fnmatch.fnmatch(item.nodeid, f"*{pattern}") for pattern in _SLOW):
            item.add_marker(pytest.mark.slow)
