"""Soft reset, run = 0 and the ring, on the RTL alone: what has no counterpart without time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from system_configs import SYSTEM_CONFIGS

from hotline.gen.commands import Opcode
from hotline.gen.register_map import register_map
from hotline.golden.descriptor import Completion, Descriptor
from hotline.host.backends import RtlBackend
from hotline.host.device import Device, Samples

_RUN, _SOFT_RESET = 1, 2


@pytest.fixture
def rtl() -> Iterator[RtlBackend]:
    with RtlBackend(SYSTEM_CONFIGS["tiny"], random_state=True) as backend:
        yield backend


def _offset(backend: RtlBackend, name: str) -> int:
    return next(r.offset for r in register_map(backend.config) if r.name == name)


def _enqueue(device: Device, tail: int, descriptor: Descriptor) -> None:
    """Put a descriptor into the ring and do not wait for it."""
    descriptor.completion = device.record.address
    device.ring.data[64 * (tail - 1) : 64 * tail] = descriptor.pack()
    device.write("RING_TAIL", tail)


def _gather(device: Device, rows: int) -> Descriptor:
    """A GATHER that takes thousands of cycles."""
    table = device.allocate(64 * rows)
    table.data[:] = np.random.default_rng(1).integers(0, 256, len(table.data), np.uint8)
    device.set_table(0, table.address, rows, 64)
    keys, target = device.allocate(8 * rows), device.allocate(64 * rows)
    keys.data[: 8 * rows] = np.arange(rows, dtype=np.uint64).view(np.uint8)
    return Descriptor(
        opcode=Opcode.GATHER, count=rows, num_tables=1, lists=keys.address, rows=target.address
    )


@pytest.mark.parametrize("cycles", [5, 60, 300, 1000, 2500])
def test_soft_reset_in_mid_traffic(rtl: RtlBackend, cycles: int) -> None:
    device = Device(rtl)
    _enqueue(device, 1, _gather(device, 400))
    rtl.run(cycles)
    assert device.read("STATUS") & 1
    device.write("CONTROL", _SOFT_RESET)
    for _ in range(2000):
        if not device.read("CONTROL") & _SOFT_RESET:
            break
    else:
        pytest.fail("the soft reset does not end")
    # It has let every burst end, written no record, and reset all registers.
    assert rtl.bus_idle
    assert not device.record.data.any()
    for name in ("RING_TAIL", "RING_HEAD", "RING_BASE_LO", "IRQ_ENABLE", "ERROR_STATUS"):
        assert device.read(name) == 0, name
    assert device.read("RING_LOG2") == 1
    device.write("TABLE_SELECT", 0)
    assert device.read("TABLE_ROWS") == 0
    # And it works again.
    rtl.memory.regions.clear()
    fresh = Device(rtl)
    descriptor = _gather(fresh, 30)
    done = fresh.execute(descriptor)
    assert done.words[2] == 30
    table, target = rtl.memory.regions[2][1], rtl.memory.regions[4][1]
    assert (table[: 64 * 30] == target[: 64 * 30]).all()


def test_soft_reset_forgets_the_hot_table(rtl: RtlBackend) -> None:
    device = Device(rtl)
    device.set_table(0, device.allocate(640).address, 10, 64)
    indices = device.allocate(64)
    samples = Samples.place(np.array([3, 9], np.uint32), 1, None, indices, indices)
    device.learn(samples)
    assert device.read("STATUS") & 4
    device.write("CONTROL", _SOFT_RESET)
    while device.read("CONTROL") & _SOFT_RESET:
        pass
    rtl.memory.regions.clear()
    fresh = Device(rtl)
    assert not fresh.read("STATUS") & 4
    records, _ = fresh.commit(fresh.allocate(16 * rtl.config.slots), everything=True)
    assert len(records) == 0


def test_run_zero_stops_after_the_current_descriptor(rtl: RtlBackend) -> None:
    device = Device(rtl)
    slow = _gather(device, 200)
    slow.completion = device.record.address
    device.ring.data[:64] = slow.pack()
    device.ring.data[64:128] = Descriptor(
        opcode=Opcode.NOP, tag=7, completion=device.record.address
    ).pack()
    device.write("RING_TAIL", 2)
    rtl.run(400)
    device.write("CONTROL", 0)
    rtl.run(100_000)
    assert device.read("RING_HEAD") == 1
    assert not device.read("STATUS") & 1
    assert Completion.unpack(device.record.data).opcode == Opcode.GATHER
    device.write("IRQ_STATUS", 3)
    device.write("CONTROL", _RUN)
    assert rtl.wait_irq(10_000)
    rtl.run(10)
    assert Completion.unpack(device.record.data).tag == 7
    assert device.read("RING_HEAD") == 2


def test_registers_are_locked_while_busy(rtl: RtlBackend) -> None:
    device = Device(rtl)
    _enqueue(device, 1, _gather(device, 200))
    rtl.run(100)
    for name in ("RING_BASE_LO", "RING_LOG2", "TABLE_ROWS", "HOT_STRIDE", "WINDOW_LO_LO"):
        assert rtl.write_register(_offset(rtl, name), 64) == 2, name
    for name, value in (("IRQ_ENABLE", 1), ("TABLE_SELECT", 1), ("COUNTERS", 1), ("CONTROL", 1)):
        assert rtl.write_register(_offset(rtl, name), value) == 0, name
    assert rtl.wait_irq(100_000)
