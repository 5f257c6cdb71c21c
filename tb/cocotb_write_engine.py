"""Write engine against the AXI memory model. See test_write_engine.py."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from harness.axi_memory import SLVERR, AxiMemory, AxiTiming, ErrorRange
from harness.bench import Bench, config
from harness.streams import StreamSource, pack

from hotline.rtl.burst import PAGE_BYTES, burst_limit
from hotline.rtl.interfaces import Status, windows, write_beat

CONFIG = config()
BYTES, WORDS = CONFIG.data_bytes, CONFIG.data_words
LIMIT = burst_limit(CONFIG)
TOP = 1 << CONFIG.addr_width
#: Pages of each channel, at the end of the address space.
PAGES = 2


class Setup:
    """Engine, memory, and a source at every channel that writes to pages of its own."""

    def __init__(self, dut: Any, timing: AxiTiming, *, pause: float = 0.0, **memory: Any) -> None:
        self.bench = bench = Bench(dut, max_cycles=200_000)
        self.dut = dut
        self.channels = sum(hasattr(dut, f"channel__{i}__valid") for i in range(16))
        size = self.channels * PAGES * PAGE_BYTES
        self.base = TOP - size
        self.content = bench.rng.integers(0, 256, size, np.uint8)
        self.expected = self.content.copy()
        self.memory = AxiMemory(
            bench,
            "axi__",
            [(self.base, self.content)],
            timing=timing,
            max_burst_beats=CONFIG.max_burst_beats,
            max_writes=CONFIG.write_outstanding,
            **memory,
        )
        self.sources = [
            StreamSource(bench, f"channel__{i}", write_beat(CONFIG), pause=pause)
            for i in range(self.channels)
        ]
        self.set_windows([(0, TOP - 1)])
        dut.halt.value = 0

    def set_windows(self, enabled: list[tuple[int, int]]) -> None:
        """Enable these windows (first and last byte); the others are disabled."""
        rest = [{"lo": TOP - 1, "hi": 0}] * (4 - len(enabled))
        values = rest + [{"lo": lo, "hi": hi} for lo, hi in enabled]
        self.dut.windows.value = pack(windows(CONFIG), values)

    def send(self, channel: int, addr: int, beats: int, *, complete: bool = True) -> None:
        """Queue a burst with random data and strobes, and apply it to what is expected."""
        rng = self.bench.rng
        for beat in range(beats):
            data = rng.integers(0, 256, BYTES, np.uint8)
            strobe = int(rng.choice([(1 << WORDS) - 1, 0, rng.integers(1 << WORDS)]))
            last = complete and beat == beats - 1
            payload = {"data": int.from_bytes(data.tobytes(), "little"), "strobe": strobe}
            self.sources[channel].send(payload | {"addr": addr, "last": int(last)})
            at = addr - self.base + beat * BYTES
            if 0 <= at < len(self.expected):
                enabled = np.repeat([strobe >> word & 1 for word in range(WORDS)], 4).astype(bool)
                view = self.expected[at : at + BYTES]
                view[:] = np.where(enabled, data, view)

    def send_random(self, channel: int, count: int) -> None:
        """Queue legal bursts, many of them at the end of a page."""
        rng = self.bench.rng
        for _ in range(count):
            beats = int(rng.choice([1, LIMIT, rng.integers(1, LIMIT + 1)]))
            room = PAGE_BYTES // BYTES - beats
            offset = int(rng.choice([0, room, rng.integers(room + 1)])) * BYTES
            page = channel * PAGES + int(rng.integers(PAGES))
            self.send(channel, self.base + page * PAGE_BYTES + offset, beats)

    @property
    def idle(self) -> bool:
        """The engine's `idle`."""
        return int(self.dut.idle.value) == 1

    @property
    def fault(self) -> tuple[int, int, int]:
        """The engine's fault outputs."""
        dut = self.dut
        return int(dut.fault.value), int(dut.fault_code.value), int(dut.fault_addr.value)

    async def finish(self) -> None:
        """Wait until everything has been written, then compare all memory."""
        await self.bench.until(lambda: all(s.idle for s in self.sources), "all sent")
        await self.bench.cycles(2)
        await self.bench.until(lambda: self.idle, "idle")
        assert self.memory.idle
        assert np.array_equal(self.content, self.expected)


@cocotb.test()
@cocotb.parametrize(("pause", (0.0, 0.5)), ("rough", (False, True)))
async def random_bursts(dut: Any, pause: float, rough: bool) -> None:
    """All channels at once; every byte is where it belongs, no other has changed."""
    timing = AxiTiming.rough() if rough else AxiTiming(write_latency=1)
    setup = Setup(dut, timing, pause=pause)
    await setup.bench.start()
    for channel in range(setup.channels):
        setup.send_random(channel, max(6, min(60, 400 // LIMIT)))
    await setup.finish()
    assert setup.fault[0] == 0
    assert setup.memory.most_writes <= CONFIG.write_outstanding


@cocotb.test()
@cocotb.parametrize(beats=(1, 8), spread=(False, True))
async def full_rate(dut: Any, beats: int, spread: bool) -> None:
    """One W beat a cycle as far as the outstanding bursts allow, from one channel or all."""
    latency = 20
    beats = min(beats, LIMIT)
    setup = Setup(dut, AxiTiming(write_latency=latency))
    await setup.bench.start()
    count = 1200 // beats
    for number in range(count):
        channel = number % setup.channels if spread else 0
        offset = number % (PAGE_BYTES // 64) * 64 % (PAGE_BYTES - beats * BYTES + 1)
        offset -= offset % BYTES
        setup.send(channel, setup.base + channel * PAGES * PAGE_BYTES + offset, beats)
    start = setup.bench.cycle
    await setup.finish()
    cycles = setup.bench.cycle - start
    rate = min(1.0, CONFIG.write_outstanding * beats / (latency + beats + 8))
    dut._log.info("%d beats in %d cycles, bound on the rate %.3f", count * beats, cycles, rate)
    # The first bursts of all channels come in side by side, beat by beat.
    assert cycles < count * beats / rate + latency + 40 + setup.channels * beats


@cocotb.test()
async def unfinished_burst(dut: Any) -> None:
    """A channel that stalls within a burst, or with a full buffer, holds up nobody else."""
    setup = Setup(dut, AxiTiming(write_latency=10))
    if LIMIT == 1 or setup.channels == 1:
        return
    await setup.bench.start()
    setup.send(0, setup.base, LIMIT - 1, complete=False)
    for channel in range(1, setup.channels):
        setup.send_random(channel, 20)
    await setup.bench.until(lambda: all(s.idle for s in setup.sources), "all sent")
    await setup.bench.cycles(300)
    assert setup.memory.idle and not setup.idle
    data = {"data": 0, "strobe": 0, "addr": setup.base, "last": 1}
    setup.sources[0].send(data)
    await setup.finish()


@cocotb.test()
@cocotb.parametrize(kind=("bus", "window"))
async def faults(dut: Any, kind: str) -> None:
    """The fault is reported with its address, the engine stops, nothing outside is written."""
    timing = AxiTiming(write_latency=(1, 60), w_pause=0.2, aw_pause=0.2)
    setup = Setup(dut, timing, pause=0.2)
    bench, base = setup.bench, setup.base
    page = base + PAGE_BYTES  # page 1 of channel 0
    inside = page + PAGE_BYTES // 2
    bad = inside - BYTES + BYTES * (LIMIT == 1)
    beats = min(LIMIT, 2)
    if kind == "bus":
        setup.memory.errors.append(ErrorRange(inside, inside + BYTES - 1, SLVERR))
    else:
        end = setup.base + setup.channels * PAGES * PAGE_BYTES
        setup.set_windows([(inside + BYTES, end - 1), (base, inside - 1)])
    await bench.start()
    for channel in range(setup.channels):
        for _ in range(30):
            if channel == 0:
                setup.send(0, base, min(LIMIT, 4))
            else:
                setup.send_random(channel, 1)
    setup.send(0, bad, beats)
    for _ in range(10):
        setup.send(0, base, LIMIT)
    await bench.until(lambda: setup.fault[0] == 1, "fault")
    code = Status.BUS_WRITE if kind == "bus" else Status.ADDR_WINDOW
    assert setup.fault == (1, code.value, bad)
    await bench.until(lambda: setup.idle, "idle")
    assert setup.memory.idle
    written = len(setup.memory.writes)
    await bench.until(lambda: all(s.idle for s in setup.sources), "swallowed")
    await bench.cycles(100)
    assert setup.idle and len(setup.memory.writes) == written
    assert ((bad, beats) in setup.memory.writes) == (kind == "bus")
    assert setup.fault == (1, code.value, bad)


@cocotb.test()
@cocotb.parametrize(behind=(0, 1, 2, 3))
async def lone_fault(dut: Any, behind: int) -> None:
    """Nothing holds up a burst outside the windows: its verdict is there in time, and neither it
    nor a good one `behind` cycles later is issued."""
    setup = Setup(dut, AxiTiming(write_latency=1))
    bad = setup.base + PAGE_BYTES
    setup.set_windows([(setup.base, bad - 1)])
    await setup.bench.start()
    await setup.bench.cycles(20)
    setup.sources[0].send({"data": 0, "strobe": 1, "addr": bad, "last": 1})
    await setup.bench.cycles(behind)
    setup.send(0, setup.base, 1)
    await setup.bench.until(lambda: setup.fault[0] == 1, "fault")
    await setup.bench.cycles(50)
    assert setup.fault == (1, Status.ADDR_WINDOW.value, bad)
    assert setup.idle and not setup.memory.writes


@cocotb.test()
async def last_answer_fails(dut: Any) -> None:
    """The engine is not idle before the fault of its last burst stands."""
    setup = Setup(dut, AxiTiming(write_latency=3))
    setup.memory.errors.append(ErrorRange(setup.base, setup.base, SLVERR))
    await setup.bench.start()
    setup.send(0, setup.base, 1)
    await setup.bench.until(lambda: not setup.idle, "busy")
    await setup.bench.until(lambda: setup.idle or setup.fault[0] == 1, "idle or fault")
    assert setup.fault == (1, Status.BUS_WRITE.value, setup.base)


@cocotb.test()
async def halt_and_reset(dut: Any) -> None:
    """After `halt` no new AW; what was issued completes; after reset all is as new."""
    setup = Setup(dut, AxiTiming.rough(), pause=0.1)
    await setup.bench.start()
    for _ in range(3):
        for channel in range(setup.channels):
            setup.send_random(channel, 20)
        await setup.bench.cycles(int(setup.bench.rng.integers(20, 150)))
        dut.halt.value = 1
        await setup.bench.cycles(1)
        issued = len(setup.memory.writes)
        await setup.bench.until(lambda: setup.idle, "idle after halt")
        assert setup.memory.idle
        assert len(setup.memory.writes) <= issued + 1
        await setup.bench.until(lambda: all(s.idle for s in setup.sources), "swallowed")
        assert setup.memory.idle and setup.idle
        dut.halt.value = 0
        await setup.bench.reset(2)
        setup.expected = setup.content.copy()
        for channel in range(setup.channels):
            setup.send_random(channel, 8)
        await setup.finish()
