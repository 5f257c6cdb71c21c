"""The key hash against the reference vectors and its own inverse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotline.gen.config import Config
from hotline.golden.hash import KeyHash, inverse_perm, perm

VECTORS = json.loads(Path(__file__).with_name("data").joinpath("vectors.json").read_text())


def scalar_perm(x: int, width: int, first: int, rounds: int) -> int:
    """`tracker.md` transcribed line by line, as an independent check."""
    a = width // 2
    b = width - a
    mask_a, mask_b = (1 << a) - 1, (1 << b) - 1

    def rotate(value: int, n: int) -> int:
        n %= b
        return ((value << n) | (value >> (b - n))) & mask_b

    def mix(value: int) -> int:
        inverted = rotate(value, 11) ^ mask_b
        product = rotate(value, 1) & rotate(value, 8)
        return product ^ rotate(value, 2) ^ rotate(value, 7) ^ (rotate(value, 4) & inverted)

    high, low = x >> b, x & mask_b
    for i in range(first, first + rounds):
        constant = (0x9E37 * (2 * i + 1)) & 0xFFFF
        if i % 2 == 0:
            high ^= (mix(low) ^ constant) & mask_a
        else:
            wide = high
            if a != b:
                wide |= ((high >> (3 % a) & 1) ^ (high >> (9 % a) & 1)) << a
            low ^= (mix(wide) ^ constant) & mask_b
    return (high << b) | low


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["config_hash"])
def test_vectors(vector: dict) -> None:
    config = Config.from_dict(vector["configuration"])
    assert f"{config.config_hash:08x}" == vector["config_hash"]
    hash_ = KeyHash(config)
    table = np.array([entry["table"] for entry in vector["hash"]])
    row = np.array([entry["row"] for entry in vector["hash"]])
    keys = hash_.key(table, row)
    assert hash_.z(keys).tolist() == [entry["z"] for entry in vector["hash"]]
    slots = hash_.slots(keys)
    assert slots.tolist() == [entry["slots"] for entry in vector["hash"]]
    tags = hash_.tag(keys)
    for way in range(config.ways):
        assert np.array_equal(hash_.key_of(slots[:, way], tags[:, way]), keys)


@given(st.data())
def test_perm_matches_transcription(data: st.DataObject) -> None:
    width = data.draw(st.integers(2, 42))
    x = data.draw(st.integers(0, (1 << width) - 1))
    first, rounds = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 14))
    y = perm(x, width, first, rounds)
    assert y == scalar_perm(x, width, first, rounds)
    assert 0 <= y < 1 << width
    assert inverse_perm(y, width, first, rounds) == x
    assert perm(np.array([x]), width, first, rounds).tolist() == [y]


@pytest.mark.parametrize("width", range(2, 14))
def test_perm_is_a_bijection(width: int) -> None:
    values = perm(np.arange(1 << width), width, 0, 4)
    assert np.array_equal(np.sort(values), np.arange(1 << width))
    assert np.array_equal(inverse_perm(values, width, 0, 4), np.arange(1 << width))
