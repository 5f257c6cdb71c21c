"""The driver: each error of the device as its exception."""

from __future__ import annotations

import numpy as np
import pytest
from small_device import CONFIG, ROWS, TABLES, random_clicks

from hotline.gen.commands import Flag, Opcode, StatusCode
from hotline.golden.descriptor import Descriptor
from hotline.host import Batch, Device, errors


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
    device.learn(random_clicks(1))
    device.split(random_clicks(2))


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
