"""Bad input of every kind that spec section 7 names: its status, nothing else written, and the
next descriptor works."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from error_scene import Scene
from harness.pair import Table

from hotline.gen.commands import Flag, Opcode, StatusCode
from hotline.golden.descriptor import Completion, Descriptor
from hotline.host.device import CommandError

CONFIGS = ("ecp5_small", "tiny", pytest.param("wide_aware", marks=pytest.mark.slow))


@pytest.fixture(params=CONFIGS)
def scene(request: pytest.FixtureRequest, seed: int) -> Iterator[Scene]:
    scene = Scene(request.param, seed)
    yield scene
    scene.pair.close()


def test_bad_opcode(scene: Scene) -> None:
    for opcode in (0x0A, 0x10, 0xFF):
        scene.fails(Descriptor(opcode=opcode), StatusCode.BAD_OPCODE, opcode)


def test_flags_and_units_not_built(scene: Scene) -> None:
    for opcode in (Opcode.NOP, Opcode.LEARN, Opcode.LOAD, Opcode.CLEAR, Opcode.AGE):
        scene.fails(Descriptor(opcode=opcode, flags=1), StatusCode.BAD_DESCRIPTOR, 0)
    for opcode, flags in (
        (Opcode.COMMIT, 4),
        (Opcode.SPLIT, 8 if scene.config.pool else Flag.SPLIT_GATHER | Flag.SPLIT_POOL),
        (Opcode.SPLIT, Flag.SPLIT_GATHER_HOT),
        (Opcode.SPLIT, Flag.SPLIT_POOL),
        (Opcode.SPLIT, 0x80),
        (Opcode.SCATTER, 2 if scene.config.scatter_add else Flag.SCATTER_ADD),
        (Opcode.GATHER, 2),
        (Opcode.FILL, 2),
    ):
        bad = Descriptor(opcode=opcode, flags=int(flags), count=1, num_tables=1)
        scene.fails(bad, StatusCode.BAD_DESCRIPTOR, 0)


def test_gather_last_without_split(scene: Scene) -> None:
    last = Descriptor(opcode=Opcode.GATHER, flags=1, num_tables=4)
    # Nothing has been split yet.
    error = scene.pair.execute(last)
    assert isinstance(error, CommandError)
    assert (error.status, error.info) == (StatusCode.BAD_DESCRIPTOR, 0)
    # A SPLIT that fails takes away the right to follow the one before.
    assert isinstance(scene.traffic.split(8, False, one_hot=True), Completion)
    bad = scene.samples(Opcode.SPLIT)
    scene.poke(bad.indices, 5, 1000, np.uint32)
    assert isinstance(scene.pair.execute(bad), CommandError)
    scene.fails(last, StatusCode.BAD_DESCRIPTOR, 0)
    # The keys of a SPLIT with GATHER_HOT are not those of the cold rows alone.
    assert isinstance(scene.traffic.split(8, True, gather_hot=True, one_hot=True), Completion)
    scene.fails(last, StatusCode.BAD_DESCRIPTOR, 0)


def test_tables_and_keys(scene: Scene) -> None:
    for opcode in (Opcode.LEARN, Opcode.SPLIT):
        good = scene.samples(opcode)
        for tables in (0, scene.config.max_tables + 1, 1 << 31):
            good.num_tables, before = tables, good.num_tables
            scene.fails(good, StatusCode.BAD_DESCRIPTOR, 2)
            good.num_tables = before
        for keys in (0, good.num_keys - 1, good.num_keys + 1, 1 << 31):
            good.num_keys, before = keys, good.num_keys
            scene.fails(good, StatusCode.BAD_DESCRIPTOR, 3)
            good.num_keys = before
        bags = scene.samples(opcode, one_hot=False)
        bags.num_keys = 1 << 31
        scene.fails(bags, StatusCode.BAD_DESCRIPTOR, 3)
    for opcode in (Opcode.GATHER, Opcode.SCATTER):
        good = scene.move(opcode)
        good.num_tables = 0
        scene.fails(good, StatusCode.BAD_DESCRIPTOR, 2)


def test_addresses(scene: Scene) -> None:
    fields = {"indices": 4, "lengths": 6, "lists": 8, "rows": 10, "completion": 14}
    used = {
        Opcode.LEARN: ("indices", "lengths"),
        Opcode.SPLIT: ("indices", "lengths", "lists", "rows"),
        Opcode.GATHER: ("lists", "rows"),
        Opcode.SCATTER: ("lists", "rows"),
        Opcode.LOAD: ("lists",),
        Opcode.FILL: ("lists",),
        Opcode.COMMIT: ("lists",),
        Opcode.NOP: ("completion",),
    }
    for opcode, names in used.items():
        for name in names:
            if opcode in (Opcode.LEARN, Opcode.SPLIT):
                good = scene.samples(opcode, one_hot=False)
            else:
                good = scene.move(opcode)
            address = getattr(good, name) or scene.pair.allocate(64)
            bad_ones = [address + 4, address + 32]
            if scene.config.addr_width < 64:
                bad_ones.append(address + (1 << scene.config.addr_width))
            for bad in bad_ones:
                setattr(good, name, bad)
                scene.fails(good, StatusCode.BAD_DESCRIPTOR, fields[name])


def test_lowest_word_wins(scene: Scene) -> None:
    bad = scene.samples(Opcode.SPLIT)
    bad.rows += 4
    bad.lists += 4
    scene.fails(bad, StatusCode.BAD_DESCRIPTOR, 8)
    bad.num_keys += 1
    scene.fails(bad, StatusCode.BAD_DESCRIPTOR, 3)
    bad.flags = 0xF0
    scene.fails(bad, StatusCode.BAD_DESCRIPTOR, 0)
    bad.opcode = 0x77
    scene.fails(bad, StatusCode.BAD_OPCODE, 0x77)


def test_not_committed(scene: Scene) -> None:
    scene.traffic.learn(3, one_hot=True)
    scene.fails(scene.samples(Opcode.SPLIT), StatusCode.NOT_COMMITTED, 0)
    # A command that fails its own checks leaves the directory dirty all the same.
    bad = scene.samples(Opcode.LEARN)
    scene.poke(bad.indices, 0, 1 << 20, np.uint32)
    assert isinstance(scene.pair.execute(bad), CommandError)
    scene.fails(scene.samples(Opcode.SPLIT), StatusCode.NOT_COMMITTED, 0)


@pytest.mark.parametrize("opcode", [Opcode.LEARN, Opcode.SPLIT])
def test_index_range(scene: Scene, opcode: Opcode) -> None:
    rng = scene.traffic.rng
    for one_hot in (True, False):
        for _ in range(3):
            bad = scene.samples(opcode, one_hot=one_hot, count=40)
            position = int(rng.integers(bad.num_keys))
            scene.poke(bad.indices, position, int(rng.integers(40, 1 << 32)), np.uint32)
            scene.fails(bad, StatusCode.INDEX_RANGE)
    bad = scene.samples(opcode)
    scene.poke(bad.indices, 6, scene.pair.tables[2].rows, np.uint32)
    scene.fails(bad, StatusCode.INDEX_RANGE, (2 << 32) + scene.pair.tables[2].rows)


@pytest.mark.parametrize("opcode", [Opcode.GATHER, Opcode.SCATTER, Opcode.LOAD])
def test_list_range(scene: Scene, opcode: Opcode) -> None:
    limit = scene.config.max_tables if opcode == Opcode.LOAD else 4
    for key in ((limit << 32) + 0, (1 << 62) + 1, (1 << 32) + 30, (2 << 32) + 0xFFFFFFFF):
        bad = scene.move(opcode)
        scene.poke(bad.lists, 7, key, np.uint64)
        scene.fails(bad, StatusCode.INDEX_RANGE, key)


@pytest.mark.parametrize("opcode", [Opcode.LEARN, Opcode.SPLIT])
def test_lengths(scene: Scene, opcode: Opcode) -> None:
    good = scene.samples(opcode, one_hot=False, count=32)
    # The sum stays below num_keys, or passes it in some sample.
    good.num_keys += 1
    scene.fails(good, StatusCode.LENGTHS, good.num_keys - 1)
    good.num_keys -= 2
    scene.fails(good, StatusCode.LENGTHS)
    good.num_keys = 5
    scene.fails(good, StatusCode.LENGTHS)
    longest = scene.config.max_sample_keys
    bad = scene.samples(opcode, one_hot=False, count=32)
    scene.poke(bad.lengths, 4 * 9, longest + 1, np.uint16)
    scene.fails(bad, StatusCode.LENGTHS)
    # A bad index in an earlier sample comes first, one in the same sample does not.
    scene.poke(bad.indices, 0, 1 << 30, np.uint32)
    scene.pair.put(bad.lengths, np.array([1, 0, 0, 0], np.uint16))
    scene.fails(bad, StatusCode.INDEX_RANGE, 1 << 30)
    scene.poke(bad.lengths, 1, longest, np.uint16)
    scene.fails(bad, StatusCode.LENGTHS, longest + 1)


@pytest.mark.parametrize("back", [False, True])
def test_fill_range(scene: Scene, back: bool) -> None:
    """A bad slot, table or row of a record, up to the largest words."""
    tables, slots = scene.config.max_tables, scene.config.slots
    for word, value in (
        (0, slots), (0, 0xFFFFFFFF), (1, tables), (1, 0xFFFFFFFF), (2, 30), (2, 0xFFFFFFFF),
    ):  # fmt: skip
        bad = scene.traffic.records(12, back)
        scene.poke(bad.lists, 4 * 7 + word, value, np.uint32)
        _, table, row, _ = scene.pair.get(bad.lists + 16 * 7, 4).tolist()
        scene.fails(bad, StatusCode.INDEX_RANGE, (table << 32) + row)


def test_hot_buffer_errors(scene: Scene) -> None:
    """Bus errors and windows on the way to and from the hot buffers, and in the records."""
    pair, traffic = scene.pair, scene.traffic
    stride, first = traffic.hot_stride, traffic.hot_bases[0]
    for back in (False, True):
        bad = traffic.records(12, back)
        scene.break_bus(bad.lists)
        scene.fails(bad, StatusCode.BUS_READ, bad.lists)
        bad = traffic.records(12, back)
        scene.poke(bad.lists, 4 * 5, 9, np.uint32)
        scene.break_bus(first + 9 * stride)
        status = StatusCode.BUS_READ if back else StatusCode.BUS_WRITE
        scene.fails(bad, status, first + 9 * stride)
        bad = traffic.records(12, back)
        scene.poke(bad.lists, 4 * 5, 9, np.uint32)
        pair.window(0, 0, first + 9 * stride - 1)
        pair.window(1, first + 10 * stride, (1 << scene.config.addr_width) - 1)
        scene.fails(bad, StatusCode.ADDR_WINDOW, first + 9 * stride)
        pair.window(1, 1, 0)


def test_bus_errors(scene: Scene) -> None:
    for opcode in (Opcode.LEARN, Opcode.SPLIT):
        for field in ("indices", "lengths"):
            bad = scene.samples(opcode, one_hot=False)
            scene.break_bus(getattr(bad, field))
            scene.fails(bad, StatusCode.BUS_READ, getattr(bad, field))
    for opcode in (Opcode.GATHER, Opcode.SCATTER, Opcode.LOAD):
        bad = scene.move(opcode)
        scene.break_bus(bad.lists)
        scene.fails(bad, StatusCode.BUS_READ, bad.lists)
    bad = scene.move(Opcode.SCATTER)
    scene.break_bus(bad.rows)
    scene.fails(bad, StatusCode.BUS_READ, bad.rows)
    bad = scene.move(Opcode.GATHER)
    scene.break_bus(bad.rows)
    scene.fails(bad, StatusCode.BUS_WRITE, bad.rows)
    for opcode in (Opcode.GATHER, Opcode.SCATTER):
        home = scene.pair.tables[0].base
        scene.break_bus(home)
        bad = scene.move(opcode)
        scene.poke(bad.lists, 3, 0, np.uint64)
        status = StatusCode.BUS_READ if opcode == Opcode.GATHER else StatusCode.BUS_WRITE
        scene.fails(bad, status, same_info=False)
    if scene.config.scatter_add:
        home = scene.pair.tables[0].base
        bad = scene.move(Opcode.SCATTER)
        bad.flags = int(Flag.SCATTER_ADD)
        scene.poke(bad.lists, 3, 0, np.uint64)
        scene.break_bus(home)
        scene.fails(bad, StatusCode.BUS_READ, home & -scene.config.data_bytes)
        scene.pair.add_error(home, home + 3, read=False)
        scene.fails(bad, StatusCode.BUS_WRITE, home & -scene.config.data_bytes)
    bad = scene.samples(Opcode.SPLIT)
    scene.break_bus(bad.lists)
    scene.fails(bad, StatusCode.BUS_WRITE, same_info=False)
    lists = scene.pair.allocate(16 * scene.config.slots)
    scene.break_bus(lists)
    bad = Descriptor(opcode=Opcode.COMMIT, flags=int(Flag.COMMIT_ALL), lists=lists)
    scene.fails(bad, StatusCode.BUS_WRITE, lists)


def test_pool_errors(scene: Scene) -> None:
    """The address of the weights, their region, a row, and a sum that cannot be written."""
    if not scene.config.pool:
        return
    pair = scene.pair

    def pooled() -> Descriptor:
        descriptor = scene.samples(Opcode.SPLIT, count=40)
        descriptor.flags = int(Flag.SPLIT_GATHER | Flag.SPLIT_POOL | Flag.SPLIT_GATHER_HOT)
        descriptor.rows = pair.allocate(descriptor.num_keys * scene.traffic.stride)
        descriptor.weights = pair.allocate(4 * descriptor.num_keys)
        return descriptor

    bad = pooled()
    bad.weights += 4
    scene.fails(bad, StatusCode.BAD_DESCRIPTOR, 12)
    if scene.config.addr_width < 64:
        bad.weights += (1 << scene.config.addr_width) - 4
        scene.fails(bad, StatusCode.BAD_DESCRIPTOR, 12)
    # The first and the last weight, whether any row needs them or not.
    for end in (0, 4 * pooled().num_keys - 4):
        bad = pooled()
        scene.break_bus(bad.weights + end)
        scene.fails(bad, StatusCode.BUS_READ, same_info=False)
    bad = pooled()
    pair.window(0, 0, bad.weights - 1)
    scene.fails(bad, StatusCode.ADDR_WINDOW, bad.weights)
    # Without hot rows every sample needs its rows from the tables.
    assert isinstance(pair.execute(Descriptor(opcode=Opcode.CLEAR)), Completion)
    bad = pooled()
    home = pair.tables[0].base
    scene.break_bus(home)
    scene.poke(bad.indices, 0, 0, np.uint32)
    scene.fails(bad, StatusCode.BUS_READ, home & -scene.config.data_bytes)
    bad = pooled()
    scene.break_bus(bad.rows)
    scene.fails(bad, StatusCode.BUS_WRITE, bad.rows)
    # Weights are nobody's without POOL.
    good = scene.samples(Opcode.SPLIT)
    good.weights = 4
    assert isinstance(pair.execute(good), Completion)


def test_failed_commit_keeps_its_marks(scene: Scene) -> None:
    scene.traffic.learn(20, one_hot=True)
    lists = scene.pair.allocate(16 * scene.config.slots)
    scene.pair.add_error(lists, lists + 3)
    error = scene.pair.execute(Descriptor(opcode=Opcode.COMMIT, lists=lists))
    assert isinstance(error, CommandError)
    scene.pair.clear_errors()
    assert isinstance(scene.pair.execute(scene.samples(Opcode.SPLIT)), CommandError)
    done = scene.traffic.commit()
    assert isinstance(done, Completion)
    assert done.words[0] > 0


def test_failed_fill_of_a_commit(scene: Scene) -> None:
    """A row that the tables no longer have, and a hot buffer that cannot be written."""
    pair, traffic = scene.pair, scene.traffic
    lists = pair.allocate(16 * scene.config.slots)
    flags = Flag.COMMIT_ALL | Flag.COMMIT_FILL
    bad = Descriptor(opcode=Opcode.COMMIT, flags=flags, lists=lists)
    done = pair.execute(bad)
    assert isinstance(done, Completion)
    slot, table, row, _ = pair.get(lists, 4 * done.words[0])[-4:].tolist()
    target = traffic.hot_bases[0] + slot * traffic.hot_stride
    scene.break_bus(target)
    scene.fails(bad, StatusCode.BUS_WRITE, target)
    whole = pair.tables[table]
    pair.set_table(table, Table(whole.base, row, whole.row_bytes))
    error = pair.execute(bad)
    assert isinstance(error, CommandError)
    assert error.status == StatusCode.INDEX_RANGE
    pair.set_table(table, whole)
    assert isinstance(pair.execute(bad), Completion)


def test_windows(scene: Scene) -> None:
    """A window that ends just before a region, for each region that a command touches."""
    pair = scene.pair
    cases: list[tuple[Opcode, str, bool]] = [
        (Opcode.LEARN, "indices", True),
        (Opcode.LEARN, "lengths", True),
        (Opcode.SPLIT, "lists", False),
        (Opcode.SPLIT, "rows", True),
        (Opcode.GATHER, "rows", True),
        (Opcode.SCATTER, "rows", True),
        (Opcode.LOAD, "lists", True),
    ]
    for opcode, field, exact in cases:
        bags = opcode == Opcode.LEARN
        bad = (
            scene.samples(opcode, one_hot=not bags)
            if opcode in (Opcode.LEARN, Opcode.SPLIT)
            else scene.move(opcode)
        )
        first = getattr(bad, field)
        # Everything but this region, in two windows.
        pair.window(0, 0, first - 1)
        pair.window(1, first + 64, (1 << scene.config.addr_width) - 1)
        scene.fails(bad, StatusCode.ADDR_WINDOW, first if exact else None, same_info=exact)
        pair.window(1, 1, 0)


def test_record_that_cannot_be_written(scene: Scene) -> None:
    pair = scene.pair
    target = pair.allocate(64)
    pair.add_error(target, target + 63, read=False)
    scene.fails(Descriptor(opcode=Opcode.NOP, completion=target), StatusCode.BUS_WRITE, target)
    # The first error stays.
    pair.add_error(target, target + 63, read=False)
    scene.fails(Descriptor(opcode=0x33, completion=target), StatusCode.BAD_OPCODE, 0x33)
    pair.window(0, 0, target - 1)
    scene.fails(Descriptor(opcode=Opcode.NOP, completion=target), StatusCode.ADDR_WINDOW, target)


def test_ring_that_cannot_be_read(scene: Scene) -> None:
    ring = scene.pair.rtl.device.ring
    scene.pair.add_error(ring.address, ring.address + len(ring.data) - 1, write=False)
    scene.fails(Descriptor(opcode=Opcode.NOP), StatusCode.BUS_READ)
