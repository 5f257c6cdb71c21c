"""Values of Amaranth layouts as plain Python data, and back."""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["pack", "unpack", "width"]


def width(shape: Any) -> int:
    """Bits of a shape."""
    return Shape.cast(shape).width


@cache
def _fields(layout: data.Layout) -> list[tuple[Any, Any, int, int]]:
    return [(key, f.shape, f.offset, width(f.shape)) for key, f in layout]


def _layout(shape: Any) -> data.Layout | None:
    if isinstance(shape, data.Layout):
        return shape
    if isinstance(shape, type) and issubclass(shape, data.Struct | data.Union):
        return data.Layout.cast(shape)
    return None


def pack(shape: Any, value: Any) -> int:
    """Bits of `value`: mapping for a struct, sequence for an array, integer or enum member.

    An integer stands for the raw bits at any level. Fields that a mapping leaves out are 0.

    Raises
    ------
    ValueError
        A value does not fit, or a field does not exist.
    """
    layout = _layout(shape)
    if layout is None or isinstance(value, int):
        return _pack_integer(Shape.cast(shape), value)
    fields = _fields(layout)
    if isinstance(value, dict):
        unknown = [key for key in value if key not in {field[0] for field in fields}]
        if unknown:
            raise ValueError(f"no field {unknown[0]!r} in {layout!r}")
        items = value
    else:
        if len(value) > len(fields):
            raise ValueError(f"{len(value)} elements for an array of {len(fields)}")
        items = dict(enumerate(value))
    bits = 0
    for key, inner, offset, _ in fields:
        if key in items:
            bits |= pack(inner, items[key]) << offset
    return bits


def _pack_integer(shape: Shape, value: Any) -> int:
    number = int(value.value if isinstance(value, enum.Enum) else value)
    low = -(1 << shape.width - 1) if shape.signed and shape.width else 0
    if not low <= number < 1 << shape.width:
        raise ValueError(f"{number} does not fit into {shape.width} bits")
    return number & ((1 << shape.width) - 1)


def unpack(shape: Any, bits: int) -> Any:
    """Nested dicts (structs), lists (arrays) and integers (also for enums) from raw bits."""
    layout = _layout(shape)
    if layout is None:
        plain = Shape.cast(shape)
        if plain.signed and plain.width and bits >> (plain.width - 1) & 1:
            return bits - (1 << plain.width)
        return bits
    values = {
        key: unpack(inner, bits >> offset & ((1 << size) - 1))
        for key, inner, offset, size in _fields(layout)
    }
    return list(values.values()) if isinstance(layout, data.ArrayLayout) else values
