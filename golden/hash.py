"""The key hash: bijective Feistel permutations give bank, index and tag.

Source: spec section 4; `perm`, the ways and the slots are defined by `tracker.md`, "Hash, banks,
ways". Everything is exact integer arithmetic; a key has at most 42 bits, so int64 is enough and
one source serves Python integers, NumPy arrays and numba kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from hotline.gen.config import Config

__all__ = ["Geometry", "KeyHash", "Shape", "feistel", "inverse_perm", "perm", "shape_of"]


class Shape(NamedTuple):
    """Halves of a permutation of `a + b` bits and its rotations, reduced mod b once for all."""

    a: int
    b: int
    r1: int
    r2: int
    r4: int
    r7: int
    r8: int
    r11: int


class Geometry(NamedTuple):
    """Shape of a hot table as a kernel needs it. `skewed`: ways have indices of their own."""

    bank_bits: int
    index_bits: int
    ways: int
    skewed: bool
    key: Shape
    home: Shape


@register_jitable
def shape_of(width: int) -> Shape:
    """Shape of a permutation of `width` >= 2 bits."""
    a = width // 2
    b = width - a
    return Shape(a, b, 1 % b, 2 % b, 4 % b, 7 % b, 8 % b, 11 % b)


@register_jitable
def _rotate(x, amount, b):  # type: ignore[no-untyped-def]
    return ((x << amount) | (x >> (b - amount))) & ((1 << b) - 1)


@register_jitable
def _mix(x, shape):  # type: ignore[no-untyped-def]
    b = shape.b
    return (
        (_rotate(x, shape.r1, b) & _rotate(x, shape.r8, b))
        ^ _rotate(x, shape.r2, b)
        ^ _rotate(x, shape.r7, b)
        ^ (_rotate(x, shape.r4, b) & (_rotate(x, shape.r11, b) ^ ((1 << b) - 1)))
    )


@register_jitable
def feistel(x, shape, first, rounds, backwards):  # type: ignore[no-untyped-def]
    """Rounds first .. first+rounds-1 on `x`; `backwards` undoes them.

    A round is its own inverse, so the inverse is the same rounds in the opposite order.
    """
    a = shape.a
    b = shape.b
    mask_a = (1 << a) - 1
    mask_b = (1 << b) - 1
    high = x >> b
    low = x & mask_b
    for step in range(rounds):
        i = first + rounds - 1 - step if backwards else first + step
        constant = (0x9E37 * (2 * i + 1)) & 0xFFFF
        if i & 1 == 0:
            high = high ^ ((_mix(low, shape) ^ constant) & mask_a)
        elif a == b:
            low = low ^ ((_mix(high, shape) ^ constant) & mask_b)
        else:
            wide = high | ((((high >> (3 % a)) ^ (high >> (9 % a))) & 1) << a)
            low = low ^ ((_mix(wide, shape) ^ constant) & mask_b)
    return (high << b) | low


def perm(x: Any, width: int, first: int, rounds: int) -> Any:
    """`perm` of `tracker.md` on an integer or an integer array of `width`-bit values."""
    return feistel(x, shape_of(width), first, rounds, False)


def inverse_perm(x: Any, width: int, first: int, rounds: int) -> Any:
    """The x with ``perm(x, width, first, rounds)`` equal to the argument."""
    return feistel(x, shape_of(width), first, rounds, True)


class KeyHash:
    """Where keys live in the hot table of a configuration.

    Parameters
    ----------
    config : Config
        Gives key width, banks, sets, ways, and the policy: `srrip` uses one index for all ways.

    Members
    -------
    geometry : Geometry
        The same as plain numbers, for numba kernels.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.geometry = Geometry(
            config.bank_bits,
            config.index_bits,
            config.ways,
            config.sample_aware,
            shape_of(config.key_bits),
            shape_of(config.key_bits - config.bank_bits),
        )

    def key(self, table: Any, row: Any) -> Any:
        """Key integers k = (table << row_bits) | row."""
        return (np.int64(table) << self.config.row_bits) | np.int64(row)

    def split(self, keys: Any) -> tuple[Any, Any]:
        """(table, row) of key integers."""
        return keys >> self.config.row_bits, keys & ((1 << self.config.row_bits) - 1)

    def z(self, keys: Any) -> Any:
        """The permuted key, `perm(k, K, 0, 4)`."""
        return feistel(np.asarray(keys, np.int64), self.geometry.key, 0, 4, False)

    def bank(self, keys: Any) -> Any:
        """Bank of each key, shared by its ways."""
        return self.z(keys) & (self.config.banks - 1)

    def homes(self, keys: Any) -> np.ndarray:
        """h_0 .. h_{ways-1} of each key: int64 [n, ways]."""
        geometry = self.geometry
        h = self.z(np.atleast_1d(keys)) >> geometry.bank_bits
        columns = [h]
        for way in range(1, geometry.ways):
            if geometry.skewed:
                h = feistel(h, geometry.home, 2 + 2 * way, 2, False)
            columns.append(h)
        return np.stack(columns, axis=1)

    def index(self, keys: Any) -> np.ndarray:
        """Index within the bank by way: int64 [n, ways]."""
        return self.homes(keys) & (self.config.bank_depth - 1)

    def tag(self, keys: Any) -> np.ndarray:
        """Tag by way: int64 [n, ways]."""
        return self.homes(keys) >> self.config.index_bits

    def slots(self, keys: Any) -> np.ndarray:
        """Slot in which each way would hold the key: int64 [n, ways]."""
        keys = np.atleast_1d(keys)
        sets = (self.index(keys) << self.config.bank_bits) | self.bank(keys)[:, None]
        return sets * self.config.ways + np.arange(self.config.ways)

    def key_of(self, slots: Any, tags: Any) -> np.ndarray:
        """Keys from where they are found: the permutation's rounds run backwards. int64 [n]."""
        geometry = self.geometry
        slots, tags = np.atleast_1d(slots), np.atleast_1d(tags)
        way, set_ = slots % geometry.ways, slots // geometry.ways
        h = (tags << geometry.index_bits) | (set_ >> geometry.bank_bits)
        q = h.copy()
        if geometry.skewed:
            for w in range(1, geometry.ways):
                chosen = way == w
                q[chosen] = feistel(h[chosen], geometry.home, 4, 2 * w, True)
        z = (q << geometry.bank_bits) | (set_ & (self.config.banks - 1))
        return feistel(z, geometry.key, 0, 4, True)
