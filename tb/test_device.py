"""The driver: futures, several commands in flight, set-up."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_device import CONFIG, ROWS, TABLES, random_clicks

from hotline.gen.commands import Opcode
from hotline.gen.presets import preset
from hotline.golden.descriptor import Descriptor
from hotline.host import CommandSkippedError, Device, commands, errors
from hotline.host.backends import BACKENDS, GoldenBackend, open_backend

README = Path(__file__).resolve().parents[1] / "README.md"

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
        device.split(random_clicks(1, 5), device.allocate(64))


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
