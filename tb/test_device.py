"""The driver: futures, several commands in flight, errors, and memory used in place."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from system_configs import SYSTEM_CONFIGS

from hotline.gen.commands import Flag, Opcode, StatusCode
from hotline.gen.presets import preset
from hotline.golden.descriptor import Descriptor
from hotline.host import Batch, CommandSkippedError, Device, Lookahead, commands, errors
from hotline.host.backends import BACKENDS, GoldenBackend, open_backend

README = Path(__file__).resolve().parents[1] / "README.md"
CONFIG = SYSTEM_CONFIGS["tiny"]
TABLES, ROWS, ROW_BYTES = 3, 40, 36
HOT_BYTES = 64


@pytest.fixture(params=["golden", "verilator"])
def device(request: pytest.FixtureRequest, seed: int) -> Iterator[Device]:
    """A device with tables of random floats, as `device.tables`."""
    with Device.open(request.param, CONFIG, max_cycles=1_000_000, ring_log2=3) as opened:
        rng = np.random.default_rng(seed)
        opened.tables = rng.random((TABLES, ROWS, ROW_BYTES // 4), np.float32)
        opened.use_tables(opened.tables)
        opened.hot = np.zeros((CONFIG.slots, HOT_BYTES // 4), np.float32)
        opened.use_hot_buffers([opened.hot])
        yield opened


def _clicks(seed: int, count: int = 50) -> np.ndarray:
    """Rows of which some are hot, because small ones are frequent: uint32 [count, TABLES]."""
    rng = np.random.default_rng(seed)
    return (rng.random((count, TABLES)) ** 4 * ROWS).astype(np.uint32)


def _train(device: Device, clicks: np.ndarray) -> np.ndarray:
    """Learn, and fill the hot buffer; the records of COMMIT."""
    device.learn(clicks)
    return device.commit(fill=True)[0]


# ---- in flight -----------------------------------------------------------------------------------


def test_each_command_in_flight_has_its_record(device: Device) -> None:
    futures = [device.submit(Descriptor(opcode=Opcode.NOP, tag=tag)) for tag in range(100, 150)]
    # The ring holds seven, so that the first ones had to end before the last ones went in.
    assert futures[0].finished and not futures[-1].finished
    assert [future.result().tag for future in futures] == list(range(100, 150))
    assert device.in_flight == 0
    assert all(future.exception() is None for future in futures)


def test_done_lets_time_pass(device: Device) -> None:
    future = device.submit(commands.clear())
    for _ in range(1000):
        if future.done():
            break
    assert future.finished and future.result().opcode == Opcode.CLEAR
    assert future.completion == future.result()


def test_locked_registers_are_refused_until_drained(device: Device) -> None:
    device.submit(commands.clear())
    with pytest.raises(errors.RegisterError, match="refused 0x10000 in TABLE_BASE_LO"):
        device.set_table(0, 0x10000, 1, 4)
    device.drain()
    device.set_table(0, 0x10000, 1, 4)


def test_a_failure_hits_its_own_future(device: Device) -> None:
    """The commands behind it run, but not those that need it, nor those that need them."""
    first = device.submit(Descriptor(opcode=Opcode.NOP, tag=1))
    bad = device.submit(Descriptor(opcode=0x77, tag=2))
    on_bad = device.submit(commands.clear().after(first, bad))
    other = device.submit(Descriptor(opcode=Opcode.NOP, tag=3))
    chained = device.submit(commands.age().after(on_bad))
    worse = device.submit(Descriptor(opcode=Opcode.SCATTER, num_tables=99, tag=4))
    last = device.submit(Descriptor(opcode=Opcode.NOP, tag=5))
    assert last.result().tag == 5
    assert (first.result().tag, other.result().tag) == (1, 3)
    assert isinstance(bad.exception(), errors.BadOpcodeError)
    assert isinstance(worse.exception(), errors.BadDescriptorError)
    with pytest.raises(CommandSkippedError, match="CLEAR was not run, because opcode 0x77, which"):
        on_bad.result()
    assert chained.exception().cause is bad.exception()
    late = device.submit(commands.age().after(worse))
    assert late.finished and isinstance(late.exception(), CommandSkippedError)
    # Nothing is lost afterwards: the ring begins again at any position.
    for tag in range(20):
        assert device.submit(Descriptor(opcode=Opcode.NOP, tag=tag)).result().tag == tag


def test_skipped_commands_leave_no_trace(device: Device) -> None:
    before = device.tables.copy()
    rows = device.allocate(ROWS * 64)
    rows.data[:] = 7
    keys = device.allocate(8)
    bad = device.submit(Descriptor(opcode=0x77))
    scatter = device.submit(commands.scatter(1, TABLES, keys.address, rows).after(bad))
    device.drain()
    assert isinstance(scatter.exception(), CommandSkippedError)
    assert (device.tables == before).all()
    device.scatter(1, TABLES, keys.address, rows)
    assert not (device.tables == before).all()


def test_a_result_that_cannot_be_read_stays_with_its_future() -> None:
    device = Device.open("golden", CONFIG)

    def decode(config: object, done: object) -> None:
        raise ZeroDivisionError("unreadable")

    broken = device.submit(commands.Command(Descriptor(opcode=Opcode.NOP), decode))
    after = device.submit(Descriptor(opcode=Opcode.NOP, tag=9))
    assert after.result().tag == 9
    with pytest.raises(ZeroDivisionError, match="unreadable"):
        broken.result()


def test_lists_that_are_too_short() -> None:
    device = Device.open("golden", CONFIG)
    with pytest.raises(ValueError, match="of 5 samples with 15 indices need 384 bytes, .* 64"):
        device.split(_clicks(1, 5), device.allocate(64))


def test_a_hung_device_is_noticed() -> None:
    class Hung(GoldenBackend):
        def wait_irq(self, max_cycles: int) -> bool:
            return False

    device = Device(Hung(CONFIG), max_cycles=123)
    with pytest.raises(TimeoutError, match="AGE did not end in 123 cycles"):
        device.age()
    future = device.submit(commands.clear())
    assert not future.done()
    with pytest.raises(TimeoutError, match="CLEAR did not end in 9 cycles"):
        future.result(9)


def test_runs_until_a_completion() -> None:
    with Device.open("verilator", CONFIG) as device:
        futures = [device.submit(Descriptor(opcode=Opcode.NOP, tag=tag)) for tag in range(3)]
        records = [future.descriptor.completion for future in futures]
        passed = [device.backend.run_until_completion(record, 10_000) for record in records]
        assert min(passed) > 200  # the reads of a descriptor and a write
        assert device.memory.view(records[2], 64)[60] == 1
        assert device.backend.run_until_completion(records[0], 10_000) == 0


# ---- errors --------------------------------------------------------------------------------------


def _unaligned(device: Device) -> None:
    device.submit(
        Descriptor(opcode=Opcode.LOAD, count=1, lists=device.allocate(64).address + 4)
    ).result()


def _window(device: Device) -> None:
    records = device.allocate(64)
    device.set_window(0, 0, records.address - 1)
    device.fill(1, records.address)


def _bus(device: Device, write: bool) -> None:
    keys, rows = device.allocate(64), device.allocate(64)
    address = device.memory.address_of(device.tables[0])
    device.backend.memory.add_error(address, address, read=not write, write=write)
    run = device.scatter if write else device.gather
    run(1, TABLES, keys.address, rows)


def _dirty(device: Device) -> None:
    device.learn(_clicks(1))
    device.split(_clicks(2))


def _too_long(device: Device) -> None:
    keys = CONFIG.max_sample_keys + 1
    device.learn(Batch.from_kjt(1, np.zeros(keys, np.uint32), [keys]))


_FAILURES = {
    StatusCode.BAD_OPCODE: (
        lambda device: device.execute(Descriptor(opcode=0x77)),
        errors.BadOpcodeError,
        r"there is no command 0x77, the commands are 0x00, 0x01",
    ),
    StatusCode.BAD_DESCRIPTOR: (
        _unaligned,
        errors.BadDescriptorError,
        r"word 8, the lists address 0x\w+4 must be a multiple of 64",
    ),
    StatusCode.INDEX_RANGE: (
        lambda device: device.learn(np.array([[1, 2, ROWS]], np.int32)),
        errors.IndexRangeError,
        rf"row {ROWS} of table 2 does not exist",
    ),
    StatusCode.BUS_READ: (
        lambda device: _bus(device, False),
        errors.BusReadError,
        r"the memory answered the read of 0x\w+ with an error",
    ),
    StatusCode.BUS_WRITE: (
        lambda device: _bus(device, True),
        errors.BusWriteError,
        r"the memory answered the write to 0x\w+ with an error",
    ),
    StatusCode.ADDR_WINDOW: (
        _window,
        errors.AddressWindowError,
        r"does not lie in one of the enabled address windows",
    ),
    StatusCode.NOT_COMMITTED: (
        _dirty,
        errors.NotCommittedError,
        r"LEARN or LOAD has changed the hot table since the last COMMIT",
    ),
    StatusCode.LENGTHS: (
        _too_long,
        errors.LengthsError,
        rf"one sample has {CONFIG.max_sample_keys + 1} keys, more than max_sample_keys",
    ),
}


def test_every_error_status_has_its_exception() -> None:
    assert set(_FAILURES) == set(StatusCode) - {StatusCode.OK}


@pytest.mark.parametrize("status", _FAILURES, ids=lambda status: status.name)
def test_error_status(device: Device, status: StatusCode) -> None:
    provoke, kind, message = _FAILURES[status]
    with pytest.raises(kind, match=message) as caught:
        provoke(device)
    assert caught.value.status == status
    assert f"failed with {status.name}: " in str(caught.value)
    device.backend.memory.clear_errors()
    device.set_window(0, 0, (1 << CONFIG.addr_width) - 1)
    assert device.clear().status == StatusCode.OK


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"opcode": Opcode.AGE, "flags": 0x80}, "word 0, flags 0x80: one is unknown"),
        ({"opcode": Opcode.GATHER, "flags": Flag.GATHER_LAST}, "word 0, no SPLIT without"),
        ({"opcode": Opcode.SCATTER}, "word 2, num_tables 0 must be from 1 to max_tables"),
        (
            {"opcode": Opcode.LEARN, "num_tables": 2, "count": 3, "num_keys": 5},
            "word 3, num_keys 5 must be below .* count \\* num_tables = 6 if one-hot",
        ),
    ],
)
def test_bad_descriptors(device: Device, fields: dict[str, int], message: str) -> None:
    with pytest.raises(errors.BadDescriptorError, match=message):
        device.submit(Descriptor(**fields)).result()


def test_a_record_that_cannot_be_written(device: Device) -> None:
    future = device.submit(Descriptor(opcode=Opcode.NOP, completion=0x7000_0000))
    after = device.submit(Descriptor(opcode=Opcode.NOP, tag=3))
    assert isinstance(future.exception(), errors.BusWriteError)
    assert after.result().tag == 3


# ---- set-up --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "there must be from 1 to 8 tables, not 0"),
        ([np.zeros(8, np.float32)], r"table 0 must be \[rows, elements\] .* not \[8\]"),
        ([np.zeros((4, 3), np.uint8)], "must take a multiple of 4 bytes from 4 to 256, not 3"),
        ([np.zeros((4, 65), np.float32)], "must take a multiple of 4 bytes from 4 to 256, not 260"),
        ([np.zeros((4, 8), np.float32).T], "in place must be C-contiguous"),
    ],
)
def test_tables_that_do_not_fit(tables: list[np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Device.open("golden", CONFIG).use_tables(tables)


def test_set_up_that_does_not_fit() -> None:
    device = Device.open("golden", CONFIG)
    with pytest.raises(ValueError, match="there must be from 1 to 1 hot buffers, not 2"):
        device.use_hot_buffers([np.zeros((CONFIG.slots, 16), np.float32)] * 2)
    with pytest.raises(ValueError, match=rf"be \[{CONFIG.slots} slots, .* not float32 \[3, 16\]"):
        device.use_hot_buffers([np.zeros((3, 16), np.float32)])
    with pytest.raises(ValueError, match="a slot must take a multiple of 64 bytes, not 32"):
        device.use_hot_buffers([np.zeros((CONFIG.slots, 8), np.float32)])
    with pytest.raises(ValueError, match="window must be from 0 to 3, not 4"):
        device.set_window(4, 0, 1)
    with pytest.raises(ValueError, match="log2_entries must be from 1 to 15, not 16"):
        Device.open("golden", CONFIG, ring_log2=16)
    with pytest.raises(ValueError, match="there is no register 'TABLES'"):
        device.read("TABLES")
    with pytest.raises(ValueError, match="back-end must be one of golden, .*, not 'board'"):
        open_backend("board", CONFIG)
    with pytest.raises(ValueError, match="preset must be one of tiny"):
        Device.open("golden", "huge")


def test_tables_inside_mapped_memory() -> None:
    device = Device.open("golden", CONFIG)
    wide = np.zeros((2, 8, 64), np.float32)
    address = device.map(wide)
    device.use_tables(wide)
    device.write("TABLE_SELECT", 1)
    assert device.read("TABLE_BASE_LO") == address + wide[0].nbytes
    assert device.memory.address_of(wide[0, :, :16]) is None
    with pytest.raises(ValueError, match="in place must be C-contiguous"):
        device.use_tables([wide[0, :, :16]])


@pytest.mark.parametrize(
    ("register", "message"),
    [
        ("ID", "this is not a Hotline device: ID is 0x7, not 0x4c544f48"),
        ("CONFIG_HASH", "from another configuration: CONFIG_HASH is 0x00000007, not 0x"),
    ],
)
def test_another_device_is_noticed(register: str, message: str) -> None:
    backend = GoldenBackend(CONFIG)
    backend.registers.put(register, 7)
    with pytest.raises(RuntimeError, match=message):
        Device(backend)


def test_a_board_can_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "board", GoldenBackend)
    assert Device.open("board", "tiny").config == preset("tiny")


def test_addresses_are_given_back() -> None:
    device = Device.open("golden", CONFIG)
    buffers = [device.allocate(10_000) for _ in range(3)]
    device.unmap(buffers[1].address)
    assert device.allocate(12_000).address == buffers[1].address
    device.unmap(buffers[0].address)
    with pytest.raises(ValueError, match=f"nothing is mapped at {buffers[0].address:#x}"):
        device.unmap(buffers[0].address)
    assert device.allocate(4096).address == buffers[0].address
    with pytest.raises(ValueError, match=r"do not fit below 2\*\*32, where \d+ bytes are in use"):
        device.memory.map(np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (1 << 33,), (1,)))


# ---- batches -------------------------------------------------------------------------------------


def test_dense_batches_are_used_in_place(device: Device) -> None:
    epoch = _clicks(3, 96)
    address = device.map(epoch)
    _train(device, epoch)
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
    clicks = _clicks(seed)
    _train(device, clicks)
    lengths = rng.integers(0, 4, (TABLES, 60))
    values = (rng.random(int(lengths.sum())) ** 3 * ROWS).astype(np.int64)
    for batch in (Batch.dense(_clicks(seed + 1)), Batch.from_kjt("abc", values, lengths)):
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
    batches = [_clicks(seed, 40) for seed in range(10, 15)]
    records = _train(device, batches[0])
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
    batches = [_clicks(seed, 40) for seed in range(10, 13)]
    _train(device, batches[0][:4])
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


# ---- README --------------------------------------------------------------------------------------


def test_readme() -> None:
    """The lines that it shows run as they are; on the golden model, which needs no build."""
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert 'Device.open("verilator")' in code
    code = code.replace('Device.open("verilator")', 'Device.open("golden")')
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    popular, rows = re.match(r"(\d+) of 512 samples are popular; (\d+) rows", done.stdout).groups()
    assert 0 < int(popular) < 512 and int(rows) > 0
