"""The driver: batches and their results, memory used in place, look-ahead."""

from __future__ import annotations

import numpy as np
import pytest
from small_device import CONFIG, ROW_BYTES, ROWS, TABLES, random_clicks, train

from hotline.gen.commands import Opcode
from hotline.golden.descriptor import Descriptor
from hotline.host import Batch, CommandSkippedError, Device, Lookahead, errors


def test_dense_batches_are_used_in_place(device: Device) -> None:
    epoch = random_clicks(3, 96)
    address = device.map(epoch)
    train(device, epoch)
    lists = device.allocate(Device.list_bytes(17, 17 * TABLES))
    regions = len(device.backend.memory.regions)
    samples = device.place(epoch[32:64])
    assert samples.indices == address + 32 * TABLES * 4
    assert len(device.backend.memory.regions) == regions
    # Neither a multiple of 64 bytes long, nor at one: a mapping of its own, but no copy.
    odd = device.place(epoch[33:50])
    view = device.memory.view(odd.indices, 17 * TABLES * 4)
    assert np.shares_memory(view, epoch)
    split = device.split(odd, lists)
    assert sorted([*split.popular, *split.nonpopular]) == list(range(17))
    device.release(odd)
    assert len(device.backend.memory.regions) == regions


def test_micro_batches_are_ready_for_an_embedding_bag(device: Device, seed: int) -> None:
    """Sums of bags over hot buffer and gathered rows are those over the tables."""
    rng = np.random.default_rng(seed)
    clicks = random_clicks(seed)
    train(device, clicks)
    lengths = rng.integers(0, 4, (TABLES, 60))
    values = (rng.random(int(lengths.sum())) ** 3 * ROWS).astype(np.int64)
    for batch in (Batch.dense(random_clicks(seed + 1)), Batch.from_kjt("abc", values, lengths)):
        rows = device.allocate(len(batch.indices) * 64)
        split = device.split(batch, rows=rows)
        stride, entries = CONFIG.row_stride(ROW_BYTES), len(split.keys)
        gathered = rows.data[: entries * stride].reshape(entries, stride)
        memory = np.concatenate(
            [device.hot[:, : ROW_BYTES // 4], gathered[:, :ROW_BYTES].view(np.float32)]
        )
        bags = np.ones((batch.count, TABLES), int) if batch.lengths is None else batch.lengths
        begins = np.cumsum(bags) - bags.reshape(-1)
        parts = split.popular_batch(), split.nonpopular_batch()
        assert len(parts[0]) and len(parts[1])
        assert not parts[0].gathered.any() and parts[1].gathered.any()
        for part in parts:
            offsets = part.offsets
            columns = part.by_table()
            for n, sample in enumerate(part.samples):
                for t in range(TABLES):
                    begin = begins[sample * TABLES + t]
                    wanted = batch.indices[begin : begin + bags[sample, t]]
                    place = n * TABLES + t
                    flat = part.indices[offsets[place] : offsets[place + 1]]
                    assert (memory[flat] == device.tables[t, wanted]).all()
                    indices, starts = columns[t]
                    end = starts[n + 1] if n + 1 < len(starts) else len(indices)
                    assert (indices[starts[n] : end] == flat).all()


def test_weights_travel_with_their_indices() -> None:
    """POOL of a weighted batch in TorchRec's order: sums of the bags, by hand."""
    config = CONFIG.replace(pool=True)
    tables = np.arange(2 * 8 * 4, dtype=np.float32).reshape(2, 8, 4)
    with Device.open("golden", config) as device:
        device.use_tables(tables)
        batch = Batch.from_kjt("ab", [3, 1, 7, 2], [2, 0, 1, 1], [0.5, 2.0, 4.0, 8.0])
        rows = device.allocate(64 * 4)
        device.split(batch, rows=rows, pool=True)
    sums = rows.data[: 4 * 16].view(np.float32).reshape(2, 2, 4)
    assert (sums[0, 0] == 0.5 * tables[0, 3] + 2 * tables[0, 1]).all()
    assert (sums[0, 1] == 4 * tables[1, 7]).all() and (sums[1, 1] == 8 * tables[1, 2]).all()
    assert not sums[1, 0].any()


def test_look_ahead(device: Device) -> None:
    """Order in the ring, and the same tables as one mini-batch after the other."""
    batches = [random_clicks(seed, 40) for seed in range(10, 15)]
    records = train(device, batches[0])
    hot = {(table, row) for _, table, row, _ in records.tolist()}
    expected = device.tables.copy()
    order = []
    submit = device._ring.submit

    def spy(descriptor: Descriptor, *rest: object) -> object:
        order.append(Opcode(descriptor.opcode).name)
        return submit(descriptor, *rest)

    device._ring.submit = spy
    regions = len(device.backend.memory.regions)
    for step in Lookahead(device, batches, count=40, num_keys=40 * TABLES, row_bytes=ROW_BYTES):
        clicks = batches[step.number]
        popular = [all((t, row) in hot for t, row in enumerate(s)) for s in clicks.tolist()]
        assert step.popular.samples.tolist() == np.flatnonzero(popular).tolist()
        rows = step.rows(ROW_BYTES)
        pairs = [(int(key) >> 32, int(key) & 0xFFFFFFFF) for key in step.split.keys]
        for row, (table, number) in zip(rows, pairs, strict=True):
            assert (row == expected[table, number]).all()
        rows += 1
        for row, (table, number) in zip(rows, pairs, strict=True):
            expected[table, number] = row
        step.scatter()
    assert (device.tables == expected).all()
    middle = ["SPLIT", "SCATTER", "GATHER"] * 3
    assert order == ["SPLIT", "GATHER", *middle, "SPLIT", "SCATTER", "GATHER", "SCATTER"]
    assert len(device.backend.memory.regions) == regions


def test_look_ahead_stops_at_a_failure(device: Device) -> None:
    batches = [random_clicks(seed, 40) for seed in range(10, 13)]
    train(device, batches[0][:4])
    steps = iter(Lookahead(device, batches, count=40, num_keys=120, row_bytes=ROW_BYTES))
    step = next(steps)
    step.rows(ROW_BYTES)
    address = device.memory.address_of(device.tables[0])
    device.backend.memory.add_error(address, address + device.tables.nbytes - 1, read=False)
    step.scatter()
    late = next(steps)
    with pytest.raises(errors.BusWriteError, match="SCATTER failed with BUS_WRITE"):
        late.rows(ROW_BYTES)
    assert isinstance(late.gather.exception(), CommandSkippedError)
    steps.close()
    assert device.in_flight == 0
    with pytest.raises(ValueError, match="has 40 samples with 120 indices, there is room for 39"):
        next(iter(Lookahead(device, batches, count=39, num_keys=120, row_bytes=ROW_BYTES)))
