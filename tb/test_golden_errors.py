"""The golden command interpreter: errors against section 7 of the spec."""

from __future__ import annotations

import numpy as np
import pytest
from golden_host import (
    COMPLETION,
    FULL,
    HOT,
    INDICES,
    LENGTHS,
    LISTS,
    ROWS,
    SMALL,
    TABLES,
    GoldenHost,
    small_host,
)

from hotline.golden.descriptor import Completion, Descriptor, Opcode, StatusCode


def fails(device: GoldenHost, status: StatusCode, info: int, opcode: int, **fields: int) -> None:
    """The command ends in `status`, writes nothing but its record, and the next one works."""
    before = device.low.copy(), device.high.copy()
    result = device.run(opcode, **fields)
    assert (result.status, result.info) == (status, info)
    assert Completion.unpack(device.memory.read(COMPLETION, 64)) == Completion(
        status=status, opcode=opcode, info=info
    )
    assert device.get("ERROR_STATUS") == status
    assert device.get("ERROR_INFO_HI") << 32 | device.get("ERROR_INFO_LO") == info
    assert device.get("STATUS") & 3 == 2
    assert device.get("IRQ_STATUS") == 3
    device.set("IRQ_STATUS", 3)
    device.set("CONTROL", 5)
    before[0][COMPLETION : COMPLETION + 64] = device.low[COMPLETION : COMPLETION + 64]
    before[0][0x1000:0x1200] = device.low[0x1000:0x1200]
    assert np.array_equal(device.low, before[0])
    assert np.array_equal(device.high, before[1])
    device.memory.clear_errors()
    assert device.run(Opcode.NOP).status == StatusCode.OK
    assert device.get("ERROR_STATUS") == status
    device.set("IRQ_STATUS", 3)


@pytest.mark.parametrize(
    ("info", "opcode", "fields"),
    [
        (0, Opcode.NOP, {"flags": 1}),
        (0, Opcode.SPLIT, {"flags": 2}),
        (0, Opcode.SPLIT, {"flags": 5}),
        (0, Opcode.SPLIT, {"flags": 8, "num_tables": 0}),
        (0, Opcode.SCATTER, {"flags": 1}),
        (0, Opcode.GATHER, {"flags": 1}),
        (2, Opcode.LEARN, {"num_tables": 0}),
        (2, Opcode.GATHER, {"num_tables": 5}),
        (3, Opcode.SPLIT, {"num_keys": 1 << 31, "lengths": 64}),
        (3, Opcode.SPLIT, {"num_keys": 7, "count": 2}),
        (3, Opcode.LEARN, {"num_keys": 0, "count": 1 << 31, "num_tables": 2}),
        (4, Opcode.LEARN, {"indices": INDICES + 32}),
        (6, Opcode.LEARN, {"lengths": 1 << 40}),
        (8, Opcode.COMMIT, {"lists": 4}),
        (10, Opcode.SPLIT, {"rows": 4, "flags": 1}),
    ],
)
def test_bad_descriptor(info: int, opcode: Opcode, fields: dict[str, int]) -> None:
    defaults = {"num_tables": 3, "num_keys": 3 * fields.get("count", 0)}
    fails(small_host(), StatusCode.BAD_DESCRIPTOR, info, opcode, **defaults | fields)


def test_unused_words_are_ignored() -> None:
    device = small_host()
    junk = {"indices": 1, "lists": 1, "rows": 1, "weights": 1, "lengths": 1, "num_tables": 99}
    for opcode in (Opcode.NOP, Opcode.CLEAR, Opcode.AGE):
        assert device.run(opcode, **junk, count=9, num_keys=1 << 31).status == StatusCode.OK
    split = {"count": 0, "num_tables": 1, "rows": 1, "weights": 1}
    assert device.run(Opcode.SPLIT, **split).status == StatusCode.OK
    assert device.run(Opcode.GATHER, 1, count=9, lists=1, num_tables=1).status == StatusCode.OK


def test_stream_errors() -> None:
    device = small_host()
    bags = [[[1, 2], [3], []], [[4], [299], [6]], [[], [], []], [[49], [5, 6], [0]]]
    fields = device.samples(bags)
    for opcode in (Opcode.LEARN, Opcode.SPLIT):
        device.run(Opcode.CLEAR)
        fails(device, StatusCode.BAD_OPCODE, 10, 10)
        short, long = fields | {"num_keys": 5}, fields | {"num_keys": 11}
        fails(device, StatusCode.LENGTHS, 6, opcode, **short)
        device.run(Opcode.CLEAR)
        fails(device, StatusCode.LENGTHS, 10, opcode, **long)
        device.run(Opcode.CLEAR)
        device.memory.write(INDICES + 16, np.array([300], "<u4"))
        fails(device, StatusCode.INDEX_RANGE, (1 << 32) + 300, opcode, **fields)
        device.run(Opcode.CLEAR)
        device.memory.write(INDICES + 16, np.array([299], "<u4"))
        device.memory.add_error(INDICES + 20, INDICES + 20)
        fails(device, StatusCode.BUS_READ, INDICES, opcode, **fields)
        device.run(Opcode.CLEAR)
        device.memory.add_error(LENGTHS, LENGTHS)
        fails(device, StatusCode.BUS_READ, LENGTHS, opcode, **fields)
        device.run(Opcode.CLEAR)
        device.memory.write(LENGTHS + 6, np.array([257], "<u2"))
        fails(device, StatusCode.LENGTHS, 259, opcode, **fields)
        device.run(Opcode.CLEAR)
        device.memory.write(LENGTHS + 6, np.array([1], "<u2"))
    assert device.run(Opcode.SPLIT, **fields).status == StatusCode.OK


def test_failed_learn_keeps_whole_groups() -> None:
    device = small_host()
    bags = [[[i % 50], [i % 300], [i % 7]] for i in range(7)]
    fields = device.samples(bags, one_hot=True)
    device.memory.write(INDICES + 12 * 5 + 8, np.array([7], "<u4"))
    fails(device, StatusCode.INDEX_RANGE, (2 << 32) + 7, Opcode.LEARN, **fields)
    assert device.device.hot_table.learned_samples == 4
    assert device.device.hot_table.dirty
    fails(device, StatusCode.NOT_COMMITTED, 0, Opcode.SPLIT, **fields)
    device.memory.add_error(LISTS, LISTS)
    fails(device, StatusCode.BUS_WRITE, LISTS, Opcode.COMMIT)
    assert device.get("STATUS") == 4
    records = len(device.device.hot_table.peek())
    assert device.run(Opcode.COMMIT).record.words[0] == records > 0
    assert device.get("STATUS") == 0


def test_failed_load_keeps_earlier_keys() -> None:
    device = small_host()
    keys = np.array([5, (1 << 32) + 6, (4 << 32) + 1, 7], "<u8")
    device.memory.write(LISTS, keys)
    fails(device, StatusCode.INDEX_RANGE, (4 << 32) + 1, Opcode.LOAD, count=4)
    assert len(device.device.hot_table.dump()) == 2
    assert device.device.hot_table.dirty


def test_row_faults() -> None:
    device = small_host()
    keys = np.array([5, (1 << 32) + 6, (2 << 32) + 6], "<u8")
    device.memory.write(LISTS, keys)
    usual = {"count": 3, "num_tables": 3}
    home = device.bases[1] + 6 * 12
    for opcode, status in ((Opcode.GATHER, 4), (Opcode.SCATTER, 5)):
        device.memory.add_error(home, home)
        fails(device, StatusCode(status), home // 8 * 8, opcode, **usual)
        device.memory.write(LISTS + 8, np.array([(3 << 32) + 6], "<u8"))
        fails(device, StatusCode.INDEX_RANGE, (3 << 32) + 6, opcode, **usual)
        device.memory.write(LISTS + 8, np.array([(1 << 32) + 6], "<u8"))
        device.set_wide("WINDOW_HI", ROWS + 63)
        device.set("WINDOW_SELECT", 1)
        device.set_wide("WINDOW_LO", TABLES)
        device.set_wide("WINDOW_HI", HOT)
        device.set("WINDOW_SELECT", 0)
        # Row 0 of the dense buffer has no gap behind it, so that its write burst goes on.
        burst = ROWS if opcode == Opcode.GATHER else ROWS + 64
        fails(device, StatusCode.ADDR_WINDOW, burst, opcode, **usual)
        device.set_wide("WINDOW_HI", (1 << device.config.addr_width) - 1)
        assert device.run(opcode, **usual).status == StatusCode.OK


def test_records_that_cannot_be_written() -> None:
    device = small_host()
    for address, status, info in (
        (COMPLETION + 4, StatusCode.BAD_DESCRIPTOR, 14),
        (0x80000000, StatusCode.BUS_WRITE, 0x80000000),
    ):
        result = device.run(Opcode.NOP, completion=address)
        assert (result.record, result.status, result.info) == (None, status, info)
        assert device.get("IRQ_STATUS") == 2
        device.set("IRQ_STATUS", 2)
        device.set("CONTROL", 5)
    result = device.run(99, completion=0x80000000)
    assert (result.record, result.status, result.info) == (None, StatusCode.BAD_OPCODE, 99)
    device.set("CONTROL", 5)
    device.set_wide("RING_BASE", 0x80000000)
    assert device.get("RING_HEAD") == device.get("RING_TAIL") == 0
    device.set("RING_TAIL", 1)
    (result,) = device.device.run()
    assert (result.descriptor, result.record, result.status) == (None, None, StatusCode.BUS_READ)
    assert device.get("RING_HEAD") == 1


def test_one_hot_sample_that_is_too_long() -> None:
    config = SMALL.replace(max_tables=20, max_sample_keys=16)
    device = GoldenHost(config, [(9, 16)] * 20)
    fields = {"count": 1, "num_tables": 17, "num_keys": 17}
    device.memory.add_error(INDICES, INDICES)
    fails(device, StatusCode.LENGTHS, 17, Opcode.LEARN, **fields)
    assert device.run(Opcode.LEARN, num_tables=17).status == StatusCode.OK


def test_gather_last_needs_a_split_that_succeeded() -> None:
    device = small_host(FULL)
    fields = device.samples([[[1], [2], [3]]], one_hot=True)
    gather = {"num_tables": 3}
    fails(device, StatusCode.BAD_DESCRIPTOR, 0, Opcode.GATHER, flags=1, **gather)
    device.run(Opcode.SPLIT, **fields)
    assert device.run(Opcode.GATHER, 1, **gather).record.words[2] == 3
    device.run(Opcode.SPLIT, 3, **fields)
    fails(device, StatusCode.BAD_DESCRIPTOR, 0, Opcode.GATHER, flags=1, **gather)
    device.run(Opcode.SPLIT, **fields)
    fails(device, StatusCode.BAD_DESCRIPTOR, 2, Opcode.SPLIT, **fields | {"num_tables": 0})
    fails(device, StatusCode.BAD_DESCRIPTOR, 0, Opcode.GATHER, flags=1, **gather)


def test_ring_stops_at_an_error_and_resumes() -> None:
    device = small_host()
    for tag, opcode in enumerate((Opcode.NOP, 77, Opcode.AGE, Opcode.CLEAR)):
        device.push(Descriptor(opcode=opcode, tag=tag, completion=COMPLETION + 64 * tag))
    first = device.device.run()
    assert [result.status for result in first] == [StatusCode.OK, StatusCode.BAD_OPCODE]
    assert (device.get("RING_HEAD"), device.get("STATUS")) == (2, 2)
    assert device.device.run() == []
    device.set("CONTROL", 5)
    assert device.get("STATUS") == 1
    assert [result.record.tag for result in device.device.run()] == [2, 3]
    assert (device.get("RING_HEAD"), device.get("STATUS")) == (4, 0)
    for tag in range(4):
        assert Completion.unpack(device.memory.read(COMPLETION + 64 * tag, 64)).tag == tag
