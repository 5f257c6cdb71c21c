"""One-hot vectors: the first of several bits, what such a bit selects, and its number."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Const, Value

from hotline.gen.config import log2

__all__ = ["one_hot_first", "one_hot_number", "one_hot_select"]


def one_hot_first(bits: Value) -> Value:
    """The lowest set bit alone."""
    return Cat(bit & ~bits[:n].any() if n else bit for n, bit in enumerate(bits))


def one_hot_select(one_hot: Value, values: Sequence[Value]) -> Value:
    """The value whose bit is set; 0 if none is."""
    result: Value = Const(0, len(values[0]))
    for n, value in enumerate(values):
        result = result | (value & one_hot[n].replicate(len(value)))
    return result


def one_hot_number(one_hot: Value) -> Value:
    """Which bit is set, of a power of two."""
    bits = log2(len(one_hot))
    return Cat(
        Cat(one_hot[n] for n in range(len(one_hot)) if n >> bit & 1).any() for bit in range(bits)
    )
