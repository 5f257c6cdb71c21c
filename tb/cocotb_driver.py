"""cocotb side of test_driver.py: the driver on the RTL in cocotb, against the golden model."""

from __future__ import annotations

import cocotb
import numpy as np
import pytest
from cocotb.task import bridge
from harness.bench import config, random_generator

from hotline.golden.descriptor import Descriptor
from hotline.host import Batch, Device, Lookahead, commands
from hotline.host.errors import BadOpcodeError, CommandSkippedError, IndexRangeError

TABLES, ROWS, ROW_BYTES = 3, 40, 36


def _train(device: Device, seed: int) -> np.ndarray:
    """A short training; the tables after it."""
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, 100, (TABLES, ROWS, ROW_BYTES // 4), np.int32)
    batches = [(rng.random((24, TABLES)) ** 4 * ROWS).astype(np.uint32) for _ in range(3)]
    device.use_tables(tables)
    lengths = rng.integers(0, 3, (TABLES, 20))
    values = rng.integers(0, 8, int(lengths.sum()))
    device.learn(Batch.from_kjt("abc", values, lengths))
    device.learn(batches[0])
    device.commit()
    popular = []
    for step in Lookahead(device, batches, count=24, num_keys=24 * TABLES, row_bytes=ROW_BYTES):
        rows = step.rows(ROW_BYTES, np.int32)
        rows += step.number + 1
        popular += step.popular.samples.tolist()
        step.scatter()
    assert 0 < len(popular) < 72
    return tables


def _work(dut: object, seed: int) -> None:
    with Device.open("cocotb", config(), dut=dut, max_cycles=100_000) as device:
        with Device.open("golden", config()) as model:
            assert (_train(device, seed) == _train(model, seed)).all()
        bad = device.submit(Descriptor(opcode=0x77))
        skipped = device.submit(commands.age().after(bad))
        assert device.submit(commands.clear()).result().status == 0
        assert isinstance(bad.exception(), BadOpcodeError)
        assert isinstance(skipped.exception(), CommandSkippedError)
        with pytest.raises(IndexRangeError, match=f"row {ROWS} of table 1 does not exist"):
            device.learn(np.array([[0, ROWS, 0]], np.uint32))
        assert not device.backend.wait_irq(100)


@cocotb.test
async def trains(dut) -> None:
    await bridge(_work)(dut, int(random_generator().integers(1 << 30)))
