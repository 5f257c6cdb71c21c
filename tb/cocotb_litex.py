"""cocotb side of test_litex.py: a host on the SoC's bus, and the golden model beside it."""

from __future__ import annotations

import cocotb
import numpy as np
from harness.axi_lite import AxiLiteMaster
from harness.bench import Bench, config
from litex_soc_map import RAM_BYTES, REGISTERS

from hotline.gen.commands import Flag, Opcode
from hotline.golden.accelerator import Hotline
from hotline.golden.descriptor import Descriptor, Regions
from hotline.golden.memory import Memory

TABLES, ROWS, ROW_BYTES, SAMPLES = 3, 24, 20, 16
RING, RECORDS, INDICES, LISTS, GATHERED, TABLE_BASE = 0x100, 0x200, 0x400, 0x1000, 0x3000, 0x6004
_CYCLES = slice(32, 40)
_TIMEOUT = 200_000


def _descriptors() -> list[Descriptor]:
    """Learn, make the directory known, split and gather: all in the ring at once."""
    samples = {
        "count": SAMPLES, "num_tables": TABLES, "num_keys": SAMPLES * TABLES, "indices": INDICES,
    }  # fmt: skip
    commands: list[dict[str, int]] = [
        {"opcode": Opcode.LEARN, **samples, "count": 8, "num_keys": 8 * TABLES},
        {"opcode": Opcode.COMMIT, "lists": LISTS},
        {
            "opcode": Opcode.SPLIT, "flags": Flag.SPLIT_GATHER, **samples, "lists": LISTS,
            "rows": GATHERED,
        },
    ]  # fmt: skip
    return [
        Descriptor(completion=RECORDS + 64 * number, tag=number, **fields)
        for number, fields in enumerate(commands)
    ]


def _image(rng: np.random.Generator) -> np.ndarray:
    image = np.zeros(RAM_BYTES, np.uint8)
    rows = (rng.random((SAMPLES, TABLES)) ** 3 * ROWS).astype("<u4")
    image[INDICES : INDICES + rows.nbytes] = rows.view(np.uint8).ravel()
    size = TABLES * ROWS * ROW_BYTES
    image[TABLE_BASE : TABLE_BASE + size] = rng.integers(0, 256, size, np.uint8)
    for number, descriptor in enumerate(_descriptors()):
        image[RING + 64 * number :][:64] = descriptor.pack()
    return image


def _registers() -> list[tuple[str, int]]:
    writes = []
    for table in range(TABLES):
        writes += [
            ("TABLE_SELECT", table),
            ("TABLE_BASE_LO", TABLE_BASE + table * ROWS * ROW_BYTES),
            ("TABLE_ROWS", ROWS),
            ("TABLE_ROW_BYTES", ROW_BYTES),
        ]
    return [
        *writes,
        ("RING_BASE_LO", RING),
        ("RING_LOG2", 2),
        ("IRQ_ENABLE", 3),
        ("CONTROL", 1),
        ("RING_TAIL", len(_descriptors())),
    ]


def _model(image: np.ndarray) -> tuple[np.ndarray, Hotline]:
    memory = Memory()
    result = image.copy()
    memory.add_region(0, result)
    device = Hotline(config(), memory)
    for name, value in _registers():
        assert device.write_register(device.registers.by_name[name].offset, value) == 0
    device.run()
    return result, device


@cocotb.test
async def splits(dut) -> None:
    bench = Bench(dut)
    host = AxiLiteMaster(bench, "host_")
    await bench.start()
    image = _image(bench.rng)
    expected, model = _model(image)
    words = image.view("<u4")
    for index in np.flatnonzero(words):
        assert await host.write(4 * int(index), int(words[index])) == 0
    offset = {name: register.offset for name, register in model.registers.by_name.items()}
    assert await host.read(REGISTERS + offset["ID"]) == (0x4C544F48, 0)
    for name, value in _registers():
        assert await host.write(REGISTERS + offset[name], value) == 0
    await bench.until(lambda: bool(dut.irq.value), "the interrupt", _TIMEOUT)
    await host.poll(REGISTERS + offset["RING_HEAD"], lambda head: head == len(_descriptors()))

    touched = np.flatnonzero((expected != 0) | (image != 0)) // 4
    found = expected.copy().view("<u4")
    # What neither wrote is looked at here and there: a read takes a dozen cycles.
    for index in sorted({*touched.tolist(), *range(0, len(words), 16)}):
        found[index], response = await host.read(4 * index)
        assert response == 0
    for number in range(len(_descriptors())):
        for memory in (expected, found.view(np.uint8)):
            memory[RECORDS + 64 * number :][_CYCLES] = 0
    different = np.flatnonzero(found.view(np.uint8) != expected)
    assert not len(different), [hex(place) for place in different[:20]]

    # It is a split worth the name: both kinds of samples, and rows that were gathered.
    status, popular, nonpopular, gathered = expected[RECORDS + 128 :][:16].view("<u4")
    assert status & 0xFF == 0 and popular and nonpopular and gathered
    keys = Regions.of(LISTS, SAMPLES, SAMPLES * TABLES).keys
    first = int(expected[keys : keys + 8].view("<u8")[0])
    home = TABLE_BASE + ((first >> 32) * ROWS + (first & 0xFFFFFFFF)) * ROW_BYTES
    row = found.view(np.uint8)[GATHERED : GATHERED + ROW_BYTES]
    assert (row == image[home : home + ROW_BYTES]).all()
