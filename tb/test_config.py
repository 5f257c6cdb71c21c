"""Configuration: ranges and their messages, TOML, presets, the canonical form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from hotline.gen.config import Config
from hotline.gen.presets import PRESETS, preset

ECP5 = preset("ecp5")
VECTORS = Path(__file__).parent / "data" / "vectors.json"

#: What is changed in `ecp5`, and the whole message.
MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"table_bits": 0}, "table_bits must be from 1 to 10, not 0"),
    ({"table_bits": 11}, "table_bits must be from 1 to 10, not 11"),
    ({"row_bits": 7}, "row_bits must be from 8 to 32, not 7"),
    ({"row_bits": 33}, "row_bits must be from 8 to 32, not 33"),
    ({"sets": 3}, "sets must be a power of two from 1 to 2147483648, not 3"),
    ({"ways": 3}, "ways must be a power of two from 1 to 8, not 3"),
    ({"ways": 16}, "ways must be a power of two from 1 to 8, not 16"),
    ({"banks": 0}, "banks must be a power of two from 1 to 2147483648, not 0"),
    ({"policy": "lru"}, "policy must be one of srrip, sample_aware, not 'lru'"),
    ({"counter_bits": 1}, "counter_bits must be from 2 to 4, not 1"),
    ({"counter_bits": 5}, "counter_bits must be from 2 to 4, not 5"),
    ({"learn_group": 0}, "learn_group must be from 1 to 64, not 0"),
    ({"learn_group": 65}, "learn_group must be from 1 to 64, not 65"),
    ({"max_sample_keys": 15}, "max_sample_keys must be from 16 to 65536, not 15"),
    ({"lanes": 3}, "lanes must be one of 1, 2, 4, 8, 16, not 3"),
    ({"addr_width": 31}, "addr_width must be from 32 to 64, not 31"),
    ({"addr_width": 65}, "addr_width must be from 32 to 64, not 65"),
    ({"data_width": 96}, "data_width must be one of 32, 64, 128, 256, 512, not 96"),
    ({"id_width": 0}, "id_width must be from 1 to 8, not 0"),
    ({"read_outstanding": 0}, "read_outstanding must be from 1 to 512, not 0"),
    ({"write_outstanding": 513}, "write_outstanding must be from 1 to 512, not 513"),
    ({"max_burst_beats": 257}, "max_burst_beats must be from 1 to 256, not 257"),
    ({"max_tables": 33}, "max_tables must be from 1 to 32, not 33"),
    ({"max_row_bytes": 3}, "max_row_bytes must be from 4 to 4096, not 3"),
    ({"dedup_entries": 3}, "dedup_entries must be a power of two from 1 to 16777216, not 3"),
    ({"gpus": 9}, "gpus must be from 1 to 8, not 9"),
    ({"banks": 8192}, "banks must be at most sets (4096), not 8192"),
    (
        {"table_bits": 1, "row_bits": 8, "max_tables": 2, "sets": 256, "banks": 256,
         "dedup_entries": 0},
        "banks must be at most 2**(table_bits + row_bits - 2) (128), not 256",
    ),
    (
        {"table_bits": 1, "row_bits": 8, "max_tables": 2, "sets": 512, "dedup_entries": 0},
        "sets must be less than 2**(table_bits + row_bits) (512), not 512",
    ),
    (
        {"learn_group": 64, "max_sample_keys": 2048},
        "learn_group * max_sample_keys must be at most 65536, not 131072",
    ),
]  # fmt: skip

WRONG_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"ways": "4"}, "ways must be an integer, not '4'"),
    ({"ways": True}, "ways must be an integer, not True"),
    ({"ways": 4.0}, "ways must be an integer, not 4.0"),
    ({"pool": 1}, "pool must be true or false, not 1"),
    ({"policy": 0}, "policy must be a string, not 0"),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_range(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the message is compared whole)
        ECP5.replace(**changes)
    assert str(error.value) == message


@pytest.mark.parametrize(("changes", "message"), WRONG_TYPES)
def test_type(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as error:
        ECP5.replace(**changes)
    assert str(error.value) == message


def test_smallest_and_largest_shapes_are_legal() -> None:
    ECP5.replace(sets=1, ways=1, banks=1)
    ECP5.replace(table_bits=1, row_bits=8, max_tables=2, sets=256, banks=128, dedup_entries=256)
    ECP5.replace(table_bits=10, row_bits=32, max_tables=1024, sets=1 << 20, banks=1 << 20)


def test_unknown_and_missing_parameters() -> None:
    values = asdict(ECP5)
    with pytest.raises(TypeError, match="^unknown parameter 'way'; the parameters are table_bits,"):
        Config.from_dict({**values, "way": 1})
    del values["ways"]
    with pytest.raises(TypeError, match="^missing parameter 'ways'$"):
        Config.from_dict(values)


def test_toml(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('preset = "tiny"\nways = 2\n')
    assert Config.from_toml(file) == preset("tiny").replace(ways=2)
    file.write_text(
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in asdict(ECP5).items())
    )
    assert Config.from_toml(file) == ECP5
    file.write_text("ways = ")
    with pytest.raises(ValueError, match=r"mine\.toml is not TOML: "):
        Config.from_toml(file)
    file.write_text('preset = "huge"\n')
    with pytest.raises(
        ValueError, match="^preset must be one of tiny, ecp5, datacenter, paper, not 'huge'$"
    ):
        Config.from_toml(file)


def test_canonical_form() -> None:
    text = ECP5.canonical_json()
    assert json.loads(text) == asdict(ECP5)
    assert " " not in text
    assert f"{ECP5.config_hash:08x}" == hashlib.sha256(text.encode()).hexdigest()[:8]


def test_hashes_of_the_published_vectors() -> None:
    for vector in json.loads(VECTORS.read_text()):
        config = Config.from_dict(vector["configuration"])
        assert f"{config.config_hash:08x}" == vector["config_hash"]


@pytest.mark.parametrize("name", ["ecp5", "datacenter", "paper"])
def test_large_presets_keep_the_specification(name: str) -> None:
    config = PRESETS[name]
    assert config.table_bits >= 5
    assert config.row_bits == 28
    assert config.max_tables >= 26
    assert config.max_sample_keys >= 256
    assert config.max_row_bytes >= 1024
    assert 16 <= config.learn_group <= 64


def test_preset_shapes() -> None:
    tiny, ecp5, datacenter, paper = (PRESETS[name] for name in PRESETS)
    assert (tiny.data_width, tiny.addr_width, tiny.lanes, tiny.policy) == (32, 32, 1, "srrip")
    assert tiny.slots >= 512
    assert not (tiny.dedup_entries or tiny.pool or tiny.scatter_add or tiny.perf_counters)
    assert (ecp5.data_width, ecp5.lanes) == (64, 2)
    assert ecp5.slots >= 16 << 10
    assert (datacenter.data_width, datacenter.lanes, datacenter.banks) == (512, 16, 64)
    assert datacenter.slots >= 256 << 10
    assert datacenter.read_outstanding >= 256
    assert (paper.banks, paper.slots, paper.ways, paper.lanes) == (64, 2 << 20, 4, 16)
    assert (paper.policy, paper.counter_bits) == ("srrip", 2)
