"""Descriptor, completion record and COMMIT record as C structures (spec section 7)."""

from __future__ import annotations

__all__ = ["COMPLETION", "DESCRIPTOR", "SLOT_RECORD", "StructField", "struct_size"]

#: Name, bits and number of elements.
StructField = tuple[str, int, int]

DESCRIPTOR: tuple[StructField, ...] = (
    ("opcode", 8, 1),
    ("flags", 8, 1),
    ("tag", 16, 1),
    ("count", 32, 1),
    ("num_tables", 32, 1),
    ("num_keys", 32, 1),
    ("indices", 64, 1),
    ("lengths", 64, 1),
    ("lists", 64, 1),
    ("rows", 64, 1),
    ("weights", 64, 1),
    ("completion", 64, 1),
)

COMPLETION: tuple[StructField, ...] = (
    ("status", 8, 1),
    ("opcode", 8, 1),
    ("tag", 16, 1),
    ("popular", 32, 1),
    ("nonpopular", 32, 1),
    ("rows", 32, 1),
    ("hits", 32, 1),
    ("misses", 32, 1),
    ("replacements", 32, 1),
    ("reserved0", 32, 1),
    ("cycles", 64, 1),
    ("info", 64, 1),
    ("reserved1", 32, 3),
    ("done", 32, 1),
)

SLOT_RECORD: tuple[StructField, ...] = (
    ("slot", 32, 1),
    ("table", 32, 1),
    ("row", 32, 1),
    ("reserved", 32, 1),
)


def struct_size(fields: tuple[StructField, ...]) -> int:
    """Bytes of a structure without padding."""
    return sum(bits * count for _, bits, count in fields) // 8
