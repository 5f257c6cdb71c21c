"""Payloads of the streams between the blocks, as functions of the configuration.

Every structure that crosses a block boundary is declared here, once. All of them travel on
`amaranth.lib.stream` streams: payload and valid hold until the transfer, valid never waits for
ready.
"""

from __future__ import annotations

from amaranth import Shape, unsigned
from amaranth.lib import data, enum

from hotline.gen.config import Config

__all__ = [
    "BURST_BITS",
    "HotField",
    "HotOp",
    "Status",
    "TableField",
    "bus_address",
    "count_bits",
    "group_meta",
    "hot_request",
    "hot_response",
    "key_group",
    "learn_context",
    "list_beat",
    "read_beat",
    "read_request",
    "row_entry",
    "table_write",
    "windows",
    "write_beat",
]

#: Bits of a burst length in beats, 1..256.
BURST_BITS = 9


class Status(enum.Enum, shape=8):
    """Status codes of a completion record (spec section 7)."""

    OK = 0
    BAD_OPCODE = 1
    BAD_DESCRIPTOR = 2
    INDEX_RANGE = 3
    BUS_READ = 4
    BUS_WRITE = 5
    ADDR_WINDOW = 6
    NOT_COMMITTED = 7
    LENGTHS = 8


class HotOp(enum.Enum, shape=2):
    """What a group of keys does to the hot table."""

    LOOKUP = 0  #: changes nothing
    UPDATE = 1  #: phase 2 of learning, one update a key in lane order
    LOAD = 2  #: insert where there is a free way, in lane order


class TableField(enum.Enum, shape=2):
    """Field of a table descriptor that a register write changes."""

    BASE_LO = 0
    BASE_HI = 1
    ROWS = 2
    ROW_BYTES = 3


class HotField(enum.Enum, shape=2):
    """Field of the hot buffers that a register write changes."""

    BASE_LO = 0
    BASE_HI = 1
    STRIDE = 2  #: of all GPUs


def hot_write(config: Config) -> data.StructLayout:
    """Write-through of the HOT_* registers, as :func:`table_write`; `gpu` is the instance."""
    return data.StructLayout({"gpu": range(config.gpus), "field": HotField, "value": unsigned(32)})


def table_write(config: Config) -> data.StructLayout:
    """Write-through of the TABLE_* registers, so that a block can keep its own copy.

    Also carries the zeroes of the walk after reset. ``ROWS`` needs up to 33 bits: it is *at
    most* 2**row_bits.
    """
    return data.StructLayout(
        {
            "table": unsigned(config.table_bits),
            "field": TableField,
            "value": unsigned(32),
        }
    )


def bus_address(config: Config) -> Shape:
    """A byte address on its way to the bus.

    One bit more than the bus has: sums of base and offset may run over the end of the address
    space. What lies beyond is in no window, so it is refused, never wrapped round.
    """
    return unsigned(config.addr_width + 1)


def count_bits(config: Config) -> int:
    """Bits of the number of a command's entries, of which each takes a byte of memory at least.

    A greater one than there are addresses may be any that is as great: what the entries are read
    from, or written to, lies beyond the address space, and is refused there.
    """
    return min(32, config.addr_width)


def windows(config: Config) -> data.ArrayLayout:
    """The address windows, bounds inclusive; lo > hi means disabled (section 8)."""
    return data.ArrayLayout(
        data.StructLayout({"lo": config.addr_width, "hi": config.addr_width}), config.windows
    )


def group_meta(config: Config) -> data.StructLayout:
    """Sample boundaries of a group of up to `lanes` keys.

    Lanes below `count` hold keys, in stream order. Lanes below `split` belong to the sample A
    that is open when the group begins, the rest to the next sample B. `end_a` says that A ends
    in this group, `end_b` that B does. Without `end_a`: split = count and there is no B. A
    sample may have no keys in a group, or none at all. `last` marks the last group of the
    command. `error` marks a terminal group without keys (count = 0, last = 1): what is wrong
    stands in the `fault` outputs of the key stream.
    """
    lanes = range(config.lanes + 1)
    return data.StructLayout(
        {"count": lanes, "split": lanes, "end_a": 1, "end_b": 1, "last": 1, "error": 1}
    )


def key_group(config: Config) -> data.StructLayout:
    """Up to `lanes` keys and their sample boundaries, from the key stream."""
    return data.StructLayout(
        {
            "key": data.ArrayLayout(config.key_bits, config.lanes),
            "meta": group_meta(config),
        }
    )


def learn_context(config: Config) -> data.StructLayout:
    """What the `sample_aware` update needs to know of the key's sample (tracker.md).

    All keys of an UPDATE group belong to one sample. `hit`: phase-1 outcome by lane. `x_zero`:
    x == 0. `y`: min(y, 3); more changes nothing, since e saturates at 6. `random`: bits 23..8 of
    L, so that u = random ^ (h >> 8)[15:0]. The `srrip` policy ignores all of them.
    """
    return data.StructLayout({"hit": config.lanes, "x_zero": 1, "y": 2, "random": 16})


def hot_request(config: Config) -> data.StructLayout:
    """One group of keys for the hot table."""
    return data.StructLayout(
        {"op": HotOp, "group": key_group(config), "learn": learn_context(config)}
    )


def hot_response(config: Config) -> data.StructLayout:
    """A group with its outcome, in request order.

    `hit` by lane: LOOKUP and UPDATE: the key was present (UPDATE: as the table stood just before
    this update; 0 where the key hit in phase 1 and x != 0, since such an update changes nothing
    and no bank is asked); LOAD: the key was taken (it was present, or has been inserted). `slot`:
    of a key that was hit (LOOKUP), else undefined. `z`: the permuted key. Lanes at or above count:
    hit = 0.
    """
    return data.StructLayout(
        {
            "op": HotOp,
            "key": data.ArrayLayout(config.key_bits, config.lanes),
            "z": data.ArrayLayout(config.key_bits, config.lanes),
            "slot": data.ArrayLayout(config.slot_bits, config.lanes),
            "hit": config.lanes,
            "meta": group_meta(config),
        }
    )


def read_request(config: Config) -> data.StructLayout:
    """One read burst: bus-aligned byte address, 1..max_burst_beats beats, no 4 KiB crossing."""
    return data.StructLayout({"addr": bus_address(config), "beats": BURST_BITS})


def read_beat(config: Config) -> data.StructLayout:
    """A beat of a read port, in request order whatever the bus did.

    `last` ends the burst. `fault` marks every beat of a burst that failed; a burst outside the
    windows is not issued and yields one beat with `fault` and `last`.
    """
    return data.StructLayout({"data": config.data_width, "last": 1, "fault": 1})


def write_beat(config: Config) -> data.StructLayout:
    """A beat for a write channel. `strobe` by 32-bit word. `addr`: bus-aligned byte address of
    the burst's first beat, valid with every beat of the burst; `last` ends the burst, and with
    `row_end` the row."""
    return data.StructLayout(
        {
            "data": config.data_width,
            "strobe": config.data_words,
            "addr": bus_address(config),
            "last": 1,
            "row_end": 1,
        }
    )


def list_beat(config: Config) -> data.StructLayout:
    """A beat of a contiguous region. `strobe` by 32-bit word: all ones except perhaps in the
    final beat of the region, which has `last`. An empty or exactly filled region ends in a
    beat with strobe = 0 and `last`, which is not written."""
    return data.StructLayout({"data": config.data_width, "strobe": config.data_words, "last": 1})


def row_entry(config: Config) -> data.StructLayout:
    """A row for the row mover.

    `row`, `table`: which. `hot`: bit 63 of a `keys` list, a hot row of a SPLIT, or a record of
    FILL; the last two have a `slot`. `bad`: that slot does not exist. `valid` = 0 with `last` = 1
    is the end marker of an otherwise finished list. For POOL alone: `close` ends a bag of rows;
    `zero`, with `valid` = 0, stands for a bag of this table that has none.
    """
    pooled = {"close": 1, "zero": 1} if config.pool else {}
    return data.StructLayout(
        {
            "row": 32,
            "table": 32,
            "slot": config.slot_bits,
            "hot": 1,
            "bad": 1,
            "valid": 1,
            "last": 1,
            **pooled,
        }
    )
