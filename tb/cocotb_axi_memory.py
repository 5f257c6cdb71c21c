"""cocotb side of test_axi_memory.py: the stand-in copies blocks through the memory model."""

from __future__ import annotations

import cocotb
import numpy as np
import stand_in
from harness.axi_lite import AxiLiteMaster
from harness.axi_memory import SLVERR, AxiMemory, AxiTiming, ErrorRange
from harness.bench import Bench, config

SOURCE, TARGET = 0x1000_0000, 0x2000_0000


async def _copy(dut, bursts: int, timing: AxiTiming, errors=()) -> tuple[AxiMemory, Bench, int]:
    bench = Bench(dut, clock="aclk", reset="aresetn", active_low=True)
    size = 4096
    source = bench.rng.integers(0, 256, size, dtype=np.uint8)
    target = np.zeros(size, np.uint8)
    memory = AxiMemory(
        bench,
        "m_axi_",
        [(SOURCE, source), (TARGET, target)],
        timing=timing,
        errors=errors,
        max_burst_beats=config().max_burst_beats,
    )
    master = AxiLiteMaster(bench, pause=0.3)
    await bench.start()
    await master.write64(stand_in.SOURCE, SOURCE)
    await master.write64(stand_in.TARGET, TARGET)
    assert await master.write(stand_in.COUNT, bursts) == 0
    assert await master.write(stand_in.CONTROL, 1) == 0
    begin = bench.cycle
    await bench.until(lambda: int(dut.irq.value) == 1, "irq")
    cycles = bench.cycle - begin
    status, response = await master.read(stand_in.STATUS)
    assert response == 0 and not status & 1 and memory.idle
    count = bursts * stand_in.BEATS * memory.data_bytes
    if not errors:
        assert status == 0
        assert np.array_equal(source[:count], target[:count])
        assert not target[count:].any()
    else:
        assert status == 2
    assert memory.read_beats == memory.write_beats == bursts * stand_in.BEATS
    return memory, bench, cycles


@cocotb.test
@cocotb.parametrize(reorder=[False, True], interleave=[False, True], pause=[0.0, 0.4])
async def copies(dut, reorder: bool, interleave: bool, pause: float) -> None:
    timing = AxiTiming((2, 50), (1, 30), reorder, interleave, *[pause] * 5)
    memory, _, _ = await _copy(dut, 24, timing)
    assert memory.most_reads > 1
    assert (memory.read_stalls > 0) == (pause > 0)


@cocotb.test
async def latency_is_that_of_the_specification(dut) -> None:
    memory, _, cycles = await _copy(dut, 1, AxiTiming())
    assert memory.reads == [(SOURCE, stand_in.BEATS)]
    # AR, 200 cycles to the first of four beats, one to register W, 20 to B for each round of
    # writes that may be in flight, a few to the irq.
    rounds = -(-stand_in.BEATS // config().write_outstanding)
    least = 200 + 4 + 1 + 20 * rounds
    assert least <= cycles <= least + 8


@cocotb.test
async def errors_and_holes_are_answered(dut) -> None:
    wide = stand_in.BEATS * config().data_bytes
    bad = ErrorRange(SOURCE + wide, SOURCE + wide, SLVERR)
    await _copy(dut, 4, AxiTiming(10, 5), [bad])


@cocotb.test
async def outside(dut) -> None:
    bench = Bench(dut, clock="aclk", reset="aresetn", active_low=True)
    memory = AxiMemory(bench, "m_axi_", [], timing=AxiTiming(10, 5))
    master = AxiLiteMaster(bench)
    await bench.start()
    await master.write(stand_in.COUNT, 1)
    await master.write(stand_in.CONTROL, 1)
    await master.poll(stand_in.STATUS, lambda value: value == 2)
    assert len(memory.outside) == 1 + stand_in.BEATS


@cocotb.test
async def broken_on_purpose(dut) -> None:
    """Only run with a faulty stand-in."""
    await _copy(dut, 4, AxiTiming(5, 5, w_pause=0.5))
