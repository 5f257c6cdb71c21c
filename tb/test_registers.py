"""The register bank against the golden registers."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.gen.register_map import VERSION, register_map
from hotline.rtl.registers import RegisterBank

#: Nothing is a power of two that need not be one.
RAGGED = preset("ecp5").replace(
    addr_width=37, max_tables=26, max_row_bytes=1000, gpus=3, row_bits=9, pool=True
)
WIDEST = preset("ecp5").replace(
    addr_width=64, row_bits=32, table_bits=8, max_tables=200, max_row_bytes=4096, gpus=8
)


@pytest.mark.parametrize(
    "config",
    [preset("tiny"), preset("ecp5"), RAGGED, WIDEST],
    ids=["tiny", "ecp5", "ragged", "widest"],
)
def test_registers(config: Config) -> None:
    run_bench(RegisterBank(config), "registers", "cocotb_registers")


def test_version_is_that_of_the_package() -> None:
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())
    assert project["project"]["version"] == ".".join(map(str, VERSION))


def test_register_map_follows_the_specification() -> None:
    """Offsets and reset values as section 8 prints them."""
    registers = {register.name: register for register in register_map(preset("ecp5"))}
    offsets = {
        "ID": 0x000, "VERSION": 0x004, "CONFIG_HASH": 0x008, "CAPS": 0x00C, "CONTROL": 0x010,
        "STATUS": 0x014, "IRQ_STATUS": 0x018, "IRQ_ENABLE": 0x01C, "RING_BASE_LO": 0x020,
        "RING_LOG2": 0x028, "RING_TAIL": 0x02C, "RING_HEAD": 0x030, "ERROR_STATUS": 0x034,
        "ERROR_INFO_LO": 0x038, "TABLE_SELECT": 0x040, "TABLE_BASE_LO": 0x044,
        "TABLE_ROWS": 0x04C, "TABLE_ROW_BYTES": 0x050, "GPU_SELECT": 0x058,
        "HOT_BASE_LO": 0x05C, "HOT_STRIDE": 0x064, "WINDOW_SELECT": 0x068,
        "WINDOW_LO_LO": 0x06C, "WINDOW_HI_LO": 0x074, "COUNTERS": 0x080,
        "COUNTERS_SATURATED": 0x084, "BUSY_CYCLES_LO": 0x088, "ROWS_GATHERED_LO": 0x0B0,
        "BANK_STALLS_HI": 0x0E4, "GPU_COUNT": 0x0E8,
    }  # fmt: skip
    assert {name: registers[name].offset for name in offsets} == offsets
    every = [register.offset for register in registers.values()]
    assert every == sorted(set(every))
    for register in registers.values():
        names = [field.name for field in register.fields]
        assert len(set(names)) == len(names)
        mask = 0
        for field in register.fields:
            bits = ((1 << field.width) - 1) << field.low
            assert not mask & bits and bits < 1 << 32
            mask |= bits
