"""The command set as data: opcodes, flags, status codes, and what each command uses.

Source: spec section 7. RTL, golden model, driver, C header and documents take it from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hotline.gen.config import Config

__all__ = [
    "COMMANDS",
    "DESCRIPTOR_BYTES",
    "Command",
    "Flag",
    "Opcode",
    "StatusCode",
    "is_built",
    "known_flags",
]

#: Bytes of a descriptor and of a completion record.
DESCRIPTOR_BYTES = 64


class Opcode(IntEnum):
    """Byte 0 of word 0 of a descriptor."""

    NOP = 0x00
    LEARN = 0x01
    COMMIT = 0x02
    SPLIT = 0x03
    SCATTER = 0x04
    LOAD = 0x05
    CLEAR = 0x06
    AGE = 0x07
    GATHER = 0x08
    FILL = 0x09


class StatusCode(IntEnum):
    """Byte 0 of word 0 of a completion record, and ERROR_STATUS."""

    OK = 0
    BAD_OPCODE = 1
    BAD_DESCRIPTOR = 2
    INDEX_RANGE = 3
    BUS_READ = 4
    BUS_WRITE = 5
    ADDR_WINDOW = 6
    NOT_COMMITTED = 7
    LENGTHS = 8


class Flag(IntEnum):
    """Bits of the flags byte; their meaning depends on the opcode."""

    COMMIT_FILL = 1 << 0
    COMMIT_ALL = 1 << 1
    SPLIT_GATHER = 1 << 0
    SPLIT_GATHER_HOT = 1 << 1
    SPLIT_POOL = 1 << 2
    SCATTER_ADD = 1 << 0
    GATHER_LAST = 1 << 0
    FILL_BACK = 1 << 0


@dataclass(frozen=True)
class Command:
    """What a command uses of its descriptor.

    Parameters
    ----------
    flags : int
        Mask of the flags that are always there; see :func:`known_flags`.
    tables, keys, count : bool
        Whether `num_tables`, `num_keys` and `count` mean something.
    indices, lists, rows : bool
        Whether the indices and lengths, the lists, and the rows address are used. The rows of
        SPLIT are used with GATHER only, the lists of GATHER not with LAST.
    """

    flags: int = 0
    tables: bool = False
    keys: bool = False
    count: bool = False
    indices: bool = False
    lists: bool = False
    rows: bool = False


COMMANDS: dict[Opcode, Command] = {
    Opcode.NOP: Command(),
    Opcode.LEARN: Command(tables=True, keys=True, count=True, indices=True),
    Opcode.COMMIT: Command(flags=Flag.COMMIT_FILL | Flag.COMMIT_ALL, lists=True),
    Opcode.SPLIT: Command(
        flags=Flag.SPLIT_GATHER | Flag.SPLIT_GATHER_HOT,
        tables=True,
        keys=True,
        count=True,
        indices=True,
        lists=True,
    ),
    Opcode.SCATTER: Command(tables=True, count=True, lists=True, rows=True),
    Opcode.LOAD: Command(count=True, lists=True),
    Opcode.CLEAR: Command(),
    Opcode.AGE: Command(),
    Opcode.GATHER: Command(flags=Flag.GATHER_LAST, tables=True, count=True, rows=True),
    Opcode.FILL: Command(flags=Flag.FILL_BACK, count=True, lists=True),
}


#: Commands that need the hot table, or hot buffers.
_HOT_TABLE = (
    Opcode.LEARN, Opcode.COMMIT, Opcode.SPLIT, Opcode.LOAD, Opcode.CLEAR, Opcode.AGE, Opcode.FILL,
)  # fmt: skip


def is_built(config: Config, opcode: Opcode) -> bool:
    """Whether the device has the unit for a command; without it: BAD_DESCRIPTOR 0."""
    return config.hot_table or opcode not in _HOT_TABLE


def known_flags(config: Config, opcode: Opcode) -> int:
    """Mask of the flags of a command that the hardware knows; others give BAD_DESCRIPTOR 0."""
    flags = COMMANDS[opcode].flags
    if opcode == Opcode.GATHER and not config.hot_table:
        flags &= ~Flag.GATHER_LAST
    if opcode == Opcode.SPLIT and config.pool:
        flags |= Flag.SPLIT_POOL
    if opcode == Opcode.SCATTER and config.scatter_add:
        flags |= Flag.SCATTER_ADD
    return flags
