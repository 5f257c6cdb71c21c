"""The golden command interpreter: results against plain Python, registers, counters."""

from __future__ import annotations

import time

import numpy as np
from golden_host import (
    FULL,
    HOT,
    HOT_SPACING,
    LISTS,
    ROWS,
    SHAPES,
    WEIGHTS,
    GoldenHost,
    small_host,
)
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hotline.gen.presets import preset
from hotline.golden.descriptor import Flag, Opcode, Regions, StatusCode


def random_bags(rng: np.random.Generator, count: int, one_hot: bool) -> list:
    return [
        [rng.integers(0, rows, 1 if one_hot else rng.integers(0, 4)).tolist() for rows, _ in SHAPES]
        for _ in range(count)
    ]


def f32(data: np.ndarray) -> np.ndarray:
    return data.view("<f4")


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_split_gather_scatter(data: st.DataObject) -> None:
    seed, one_hot = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.booleans())
    flags = data.draw(st.sampled_from([0, 1, 3, 5, 7]))
    weighted = data.draw(st.booleans())
    note(f"seed {seed}")
    rng = np.random.default_rng(seed)
    device = small_host(FULL, seed)
    hot = [(t, int(r)) for t, (rows, _) in enumerate(SHAPES) for r in rng.integers(0, rows, 25)]
    loaded = device.load(hot)
    assert loaded.status == StatusCode.OK
    table = {(t, r): slot for slot, t, r, _ in device.device.hot_table.dump().tolist()}
    assert loaded.record.words[0] == sum(key in table for key in hot)
    device.run(Opcode.COMMIT, Flag.COMMIT_ALL | Flag.COMMIT_FILL)
    for (t, r), slot in table.items():
        for gpu in range(2):
            at = HOT + gpu * HOT_SPACING + slot * device.hot_stride
            assert np.array_equal(device.memory.read(at, SHAPES[t][1]), device.row(t, r))

    bags = random_bags(rng, int(rng.integers(0, 30)), one_hot)
    fields = device.samples(bags, one_hot)
    weights = rng.standard_normal(fields["num_keys"]).astype("<f4")
    device.memory.write(WEIGHTS, weights)
    device.low[ROWS : ROWS + 0x20000] = 0xA5
    result = device.run(Opcode.SPLIT, flags, weights=WEIGHTS if weighted else 0, **fields)
    assert result.status == StatusCode.OK
    words = result.record.words

    flat = [[(t, r) for t, bag in enumerate(sample) for r in bag] for sample in bags]
    popular = [i for i, sample in enumerate(flat) if all(key in table for key in sample)]
    cold = [i for i in range(len(flat)) if i not in popular]
    hits = sum(key in table for sample in flat for key in sample)
    assert words[:2] == (len(popular), len(cold))
    assert words[3:5] == (hits, fields["num_keys"] - hits)
    popular_keys = [key for i in popular for key in flat[i]]
    lists = device.lists(fields, words, len(popular_keys))
    assert (lists["popular"], lists["nonpopular"]) == (popular, cold)
    assert lists["popular_slots"] == [table[key] for key in popular_keys]
    mask = (1 << 63) - 1
    named = [(key >> 32 & 0x7FFFFFFF, key & 0xFFFFFFFF) for key in lists["keys"]]
    entries = iter(lists["nonpopular_slots"])
    for i in cold:
        for key in flat[i]:
            entry = next(entries)
            if key in table and not flags & 2:
                assert entry == table[key]
            else:
                assert named[entry - 0x80000000] == key
                assert lists["keys"][entry - 0x80000000] >> 63 == (key in table)
    if words[5] == 0:
        assert len({key & mask for key in lists["keys"]}) == len(lists["keys"])

    stride = device.config.row_stride(64)
    if flags & 4:
        check_pool(device, bags, cold, table, weights if weighted else None, bool(flags & 2))
    elif flags & 1:
        for g, (t, r) in enumerate(named):
            assert np.array_equal(
                device.memory.read(ROWS + g * stride, SHAPES[t][1]), device.row(t, r)
            )
            gap = device.memory.read(ROWS + g * stride + SHAPES[t][1], stride - SHAPES[t][1])
            assert (gap == 0xA5).all()
        check_scatter(device, named, lists["keys"], rng, bool(flags & 2))
    if not flags & 2:
        last = device.run(Opcode.GATHER, Flag.GATHER_LAST, num_tables=3, lists=1, count=99)
    else:
        keys = Regions.of(LISTS, fields["count"], fields["num_keys"]).keys
        fields = {"lists": keys, "count": len(named)}
        last = device.run(Opcode.GATHER, num_tables=3, **fields)
    assert last.status == StatusCode.OK
    assert last.record.words[2] == sum(not key >> 63 for key in lists["keys"])
    for g, (t, r) in enumerate(named):
        if not lists["keys"][g] >> 63:
            assert np.array_equal(
                device.memory.read(ROWS + g * stride, SHAPES[t][1]), device.row(t, r)
            )


def check_pool(
    device: GoldenHost, bags: list, cold: list[int], table: dict, weights: object, all_rows: bool
) -> None:
    stride = device.config.row_stride(64)
    position = 0
    starts = []
    for sample in bags:
        starts.append(position)
        position += sum(len(bag) for bag in sample)
    for n, i in enumerate(cold):
        position = starts[i]
        for t, bag in enumerate(bags[i]):
            total = np.zeros(SHAPES[t][1] // 4, np.float32)
            for r in bag:
                weight = np.float32(1) if weights is None else weights[position]
                position += 1
                if all_rows or (t, r) not in table:
                    with np.errstate(all="ignore"):
                        total = total + f32(device.row(t, r)) * weight
            total.view(np.uint32)[np.isnan(total)] = 0x7FC00000
            got = device.memory.read(ROWS + (n * 3 + t) * stride, SHAPES[t][1])
            assert np.array_equal(got, total.view(np.uint8))


def check_scatter(
    device: GoldenHost, named: list, keys: list[int], rng: np.random.Generator, hot: bool
) -> None:
    """SCATTER ADD with a repeated row, then plain SCATTER, against a plain loop."""
    pairs = [*keys, *keys[:2]]
    stride = device.config.row_stride(64)
    for flags in (Flag.SCATTER_ADD, 0):
        rows = rng.integers(0, 256, (len(pairs), stride), dtype=np.uint8)
        device.memory.write(0x80000, np.array(pairs, "<u8"))
        device.memory.write(0xD0000, rows)
        image = {key: device.row(*key) for key in named}
        for pair, (t, r), row in zip(pairs, [*named, *named[:2]], rows, strict=True):
            if pair >> 63:
                continue
            new = row[: SHAPES[t][1]]
            if flags:
                with np.errstate(all="ignore"):
                    total = f32(image[t, r]) + f32(new)
                total.view(np.uint32)[np.isnan(total)] = 0x7FC00000
                new = total.view(np.uint8)
            image[t, r] = new
        fields = {"lists": 0x80000, "rows": 0xD0000, "count": len(pairs), "num_tables": 3}
        result = device.run(Opcode.SCATTER, flags, **fields)
        assert result.status == StatusCode.OK
        assert result.record.words[2] == sum(not pair >> 63 for pair in pairs)
        assert all(np.array_equal(device.row(*key), value) for key, value in image.items())


def test_fill_and_back() -> None:
    device = small_host(FULL)
    records = [(3, 0, 5), (9, 1, 200), (3, 0, 6)]
    device.memory.write(LISTS, np.array([(*record, 0) for record in records], "<u4"))
    result = device.run(Opcode.FILL, count=3)
    assert result.record.words == (3, 0, 3, 0, 0, 0)
    for gpu in range(2):
        at = HOT + gpu * HOT_SPACING
        assert np.array_equal(device.memory.read(at + 3 * device.hot_stride, 64), device.row(0, 6))
    device.memory.write(HOT + 9 * device.hot_stride, np.arange(12, dtype=np.uint8))
    assert device.run(Opcode.FILL, Flag.FILL_BACK, count=3).status == StatusCode.OK
    assert device.row(1, 200).tolist() == list(range(12))
    assert np.array_equal(device.row(0, 5), device.row(0, 6))
    device.memory.write(LISTS + 16, np.array([64, 1, 2, 0], "<u4"))
    bad = device.run(Opcode.FILL, count=3)
    assert (bad.status, bad.info) == (StatusCode.INDEX_RANGE, (1 << 32) + 2)


def test_registers() -> None:
    device = small_host()
    write = device.device.write_register
    offset = device.offset
    assert device.get("ID") == 0x4C544F48
    assert device.get("CONFIG_HASH") == device.config.config_hash
    refused = [
        (offset("ID"), 0, 15),
        (offset("RING_BASE_LO"), 32, 15),
        (offset("RING_BASE_LO"), 64, 7),
        (offset("RING_LOG2"), 0, 15),
        (offset("RING_LOG2"), 16, 15),
        (offset("RING_TAIL"), 8, 15),
        (offset("TABLE_SELECT"), 4, 15),
        (offset("TABLE_ROW_BYTES"), 6, 15),
        (offset("TABLE_ROW_BYTES"), 0, 15),
        (offset("TABLE_ROW_BYTES"), 1028, 15),
        (offset("TABLE_ROWS"), (1 << 28) + 1, 15),
        (offset("TABLE_BASE_LO"), 2, 15),
        (offset("GPU_COUNT"), 0, 15),
        (offset("GPU_COUNT"), 3, 15),
        (offset("HOT_STRIDE"), 32, 15),
        (offset("HOT_STRIDE"), 0, 15),
        (offset("COUNTERS"), 0, 15),
        (0x0EC, 0, 15),
        (0xFFC, 0, 15),
    ]
    for at, value, strobe in refused:
        before = device.device.read_register(at)
        assert write(at, value, strobe) == 2, hex(at)
        assert device.device.read_register(at) == before
    assert device.device.read_register(offset("COUNTERS")) == (0, 2)
    assert device.device.read_register(0x0EC) == (0, 2)
    device.set("RING_TAIL", 2)
    assert device.get("STATUS") == 1
    for name in ("RING_BASE_LO", "TABLE_ROWS", "WINDOW_LO_LO", "GPU_COUNT", "HOT_BASE_HI"):
        assert write(offset(name), 0) == 2
    device.set("TABLE_SELECT", 1)
    device.set("IRQ_ENABLE", 1)
    device.set("CONTROL", 0)
    assert device.get("STATUS") == 0
    assert device.device.run() == []
    device.set("CONTROL", 1)
    assert len(device.device.run(limit=1)) == 1
    assert device.device.irq
    assert device.get("STATUS") == 1
    device.set("CONTROL", 2)
    assert device.get("RING_LOG2") == 1
    assert device.get("CONTROL") == device.get("RING_BASE_LO") == device.get("IRQ_STATUS") == 0


def test_counters() -> None:
    device = small_host()
    device.load([(0, 1), (1, 2), (2, 3)])
    fields = device.samples([[[1], [2], [3]], [[1], [9], [3]], [[5], [9], [3]]], one_hot=True)
    result = device.run(Opcode.SPLIT, Flag.SPLIT_GATHER, **fields)
    assert result.record.words == (1, 2, 2, 6, 3, 0)
    device.run(Opcode.GATHER, Flag.GATHER_LAST, num_tables=3)
    device.set("COUNTERS", 3)
    names = ("SAMPLES", "POPULAR", "KEYS", "HITS", "ROWS_GATHERED", "ROWS_SHARED")
    assert [device.get(f"{name}_LO") for name in names] == [3, 1, 9, 6, 4, 1]
    device.set("COUNTERS", 1)
    assert device.get("SAMPLES_LO") == 0
    assert result.read_beats == 5 + 8 + 3
    assert result.write_beats == 1 + 1 + 2 + 3 + 2 + 8 + 2


def test_speed() -> None:
    """A SPLIT with GATHER of 10 000 samples in well under a second."""
    config = preset("datacenter")
    device = GoldenHost(config, [(1000, 64)] * 26, low_bytes=0x2000000)
    rng = np.random.default_rng(3)
    indices = 0x200000
    device.memory.write(indices, (rng.zipf(1.3, 260_000) % 1000).astype("<u4"))
    device.load([(t, r) for t in range(26) for r in range(50)])
    fields = {"num_tables": 26, "rows": 0x1000000, "lists": 0x400000, "indices": indices}
    device.run(Opcode.SPLIT, 1, count=1, num_keys=26, **fields)
    start = time.process_time()
    result = device.run(Opcode.SPLIT, 1, count=9000, num_keys=234_000, **fields)
    seconds = time.process_time() - start
    print(f"SPLIT with GATHER {seconds:.3f} s, record {result.record}")
    assert result.status == StatusCode.OK
    assert seconds < 1
