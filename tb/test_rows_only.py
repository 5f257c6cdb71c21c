"""A device without a hot table, as it goes on an iCE40: rows move, all else is not built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.pair import Pair, Table

from hotline.fpga.netlist import netlist
from hotline.gen.commands import Flag, Opcode, is_built
from hotline.gen.config import Config, RowsConfig
from hotline.gen.presets import SUBSETS, preset
from hotline.golden.descriptor import Descriptor, StatusCode
from hotline.host.device import CommandError
from hotline.host.verilated import BusTiming

ROWS = preset("tiny_rows")
#: Above the first 64 KiB, which the driver leaves free, and below 128 KiB with ring and record.
MEMORY = 40 << 10


def test_what_is_built() -> None:
    """GATHER, SCATTER and NOP."""
    built = [code for code in Opcode if is_built(ROWS, code)]
    assert built == [Opcode.NOP, Opcode.SCATTER, Opcode.GATHER]
    assert all(is_built(preset("tiny"), code) for code in Opcode)


def test_hash_of_the_specification_stays() -> None:
    """A device of the specification does not know the parameter; another one has it in its hash."""
    tiny = preset("tiny")
    values = json.loads(tiny.canonical_json())
    assert "hot_table" not in values and Config.from_dict(values) == tiny
    without = Config.from_dict(values | {"hot_table": False})
    assert isinstance(without, RowsConfig) and without != tiny
    assert without.config_hash != tiny.config_hash
    for subset in SUBSETS.values():
        assert Config.from_dict(json.loads(subset.canonical_json())) == subset
    with pytest.raises(TypeError, match="^hot_table must be true or false, not 1$"):
        Config.from_dict(values | {"hot_table": 1})


def test_from_toml(tmp_path: Path) -> None:
    """By the preset, or from another one; and back."""
    file = tmp_path / "mine.toml"
    for text in ('preset = "tiny_rows"', 'preset = "tiny"\nhot_table = false'):
        file.write_text(text)
        assert isinstance(Config.from_toml(file), RowsConfig)
    file.write_text('preset = "tiny"')
    assert not isinstance(Config.from_toml(file), RowsConfig)


def test_short_addresses_are_for_these_alone() -> None:
    """The specification begins at 32 bits."""
    with pytest.raises(ValueError, match="^addr_width must be from 32 to 64, not 17$"):
        preset("tiny").replace(addr_width=17)
    with pytest.raises(ValueError, match="^addr_width must be from 16 to 64, not 15$"):
        ROWS.replace(addr_width=15)


def test_rtl_against_golden(seed: int) -> None:
    """GATHER and SCATTER at random; every command that is not built; bad descriptors."""
    _run(seed)


@pytest.mark.slow
def test_netlist(seed: int) -> None:
    """The same with the cells of an iCE40; in them are both buffers of the read engine."""
    mapped = netlist(ROWS, "ice40")
    assert mapped.verilog.count("read_engine.port0.beats") and mapped.cells["SB_RAM40_4K"] >= 8
    _run(seed, verilog=mapped.with_models(), optimise=False)


def _run(seed: int, **options: Any) -> None:
    rng = np.random.default_rng(seed)
    timing = BusTiming.rough(seed)
    pair = Pair(ROWS, rng, size=MEMORY, timing=timing, random_state=True, **options)
    try:
        tables = [(40, 64), (57, 20)]
        for number, (rows, size) in enumerate(tables):
            pair.set_table(number, Table(pair.allocate(rows * size, align=4), rows, size))
        floor = pair.mark
        for _ in range(30):
            pair.release(floor)
            count = int(rng.integers(0, 40))
            table = rng.integers(0, 2, count)
            row = rng.integers(0, np.array([rows for rows, _ in tables])[table])
            if count and rng.random() < 0.2:
                row[rng.integers(count)] += 60  # does not exist
            keys = (table.astype(np.uint64) << np.uint64(32)) + row.astype(np.uint64)
            lists, dense = pair.allocate(max(64, 8 * count)), pair.allocate(max(64, 64 * count))
            pair.put(lists, keys)
            pair.execute(
                Descriptor(
                    opcode=rng.choice([Opcode.GATHER, Opcode.SCATTER]),
                    count=count, num_tables=2, lists=lists, rows=dense,
                )
            )  # fmt: skip
        # A count that needs more bits than an address: the list goes on until its third key.
        pair.release(floor)
        lists, dense = pair.allocate(64), pair.allocate(1 << 10)
        pair.put(lists, np.array([1, 2, 60], np.uint64))
        error = pair.execute(
            Descriptor(
                opcode=Opcode.GATHER, count=(1 << 17) + 2, num_tables=2, lists=lists, rows=dense
            )
        )
        assert isinstance(error, CommandError)
        assert error.status == StatusCode.INDEX_RANGE and error.info == 60
        for code in Opcode:
            if not is_built(ROWS, code):
                error = pair.execute(Descriptor(opcode=code, num_tables=1, lists=lists))
                assert isinstance(error, CommandError)
                assert error.status == StatusCode.BAD_DESCRIPTOR and error.info == 0
        last = Descriptor(opcode=Opcode.GATHER, flags=Flag.GATHER_LAST, num_tables=1, rows=dense)
        for wrong, word in (
            (last, 0),
            (Descriptor(opcode=Opcode.GATHER, num_tables=1, lists=1 << 17, rows=dense), 8),
            (Descriptor(opcode=Opcode.SCATTER, num_tables=1, lists=lists, rows=1 << 40), 10),
            (Descriptor(opcode=Opcode.SCATTER, num_tables=3, lists=lists, rows=dense), 2),
            (Descriptor(opcode=Opcode.GATHER, num_tables=1 << 20 | 2, lists=lists, rows=dense), 2),
            (Descriptor(opcode=Opcode.GATHER, num_tables=2, lists=lists + 8, rows=dense), 8),
            (Descriptor(opcode=Opcode.GATHER, num_tables=2, lists=lists, rows=dense + 32), 10),
        ):
            error = pair.execute(wrong)
            assert isinstance(error, CommandError)
            assert error.status == StatusCode.BAD_DESCRIPTOR and error.info == word
    finally:
        pair.close()
