"""Read engine against the AXI memory model. See test_read_engine.py."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from harness.axi_memory import DECERR, AxiMemory, AxiTiming, ErrorRange
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource, pack

from hotline.rtl.burst import PAGE_BYTES, burst_limit
from hotline.rtl.interfaces import Status, read_beat, read_request, windows

CONFIG = config()
BYTES = CONFIG.data_bytes
LIMIT = burst_limit(CONFIG)
TOP = 1 << CONFIG.addr_width
#: The last pages of the address space: whoever computes past the end of a burst overflows here.
SIZE = 16 * PAGE_BYTES
BASE = TOP - SIZE

Burst = tuple[int, int]


class Setup:
    """Engine, memory with random content, and an agent at each end of every port."""

    def __init__(self, dut: Any, timing: AxiTiming, *, pause: float = 0.0, **memory: Any) -> None:
        self.bench = bench = Bench(dut, max_cycles=200_000)
        self.dut = dut
        self.content = bench.rng.integers(0, 256, SIZE, np.uint8)
        self.memory = AxiMemory(
            bench,
            "axi__",
            [(BASE, self.content)],
            timing=timing,
            max_burst_beats=CONFIG.max_burst_beats,
            max_reads=CONFIG.read_outstanding,
            **memory,
        )
        self.ports = sum(hasattr(dut, f"request__{i}__valid") for i in range(8))
        self.sources = [
            StreamSource(bench, f"request__{i}", read_request(CONFIG), pause=pause)
            for i in range(self.ports)
        ]
        self.sinks = [
            StreamSink(bench, f"data__{i}", read_beat(CONFIG), pause=pause)
            for i in range(self.ports)
        ]
        self.set_windows([(0, TOP - 1)])
        dut.halt.value = 0

    def set_windows(self, enabled: list[Burst]) -> None:
        """Enable these windows (first and last byte); the others are disabled."""
        rest = [{"lo": 1, "hi": 0}] * (4 - len(enabled))
        values = [{"lo": lo, "hi": hi} for lo, hi in enabled] + rest
        self.dut.windows.value = pack(windows(CONFIG), values)

    def random_bursts(self, count: int) -> list[Burst]:
        """Start addresses and lengths of legal bursts, many of them at the end of a page."""
        rng, bursts = self.bench.rng, []
        for _ in range(count):
            beats = int(rng.choice([1, LIMIT, rng.integers(1, LIMIT + 1)]))
            room = PAGE_BYTES // BYTES - beats
            offset = int(rng.choice([0, room, rng.integers(room + 1)])) * BYTES
            page = int(rng.integers(SIZE // PAGE_BYTES))
            bursts.append((BASE + page * PAGE_BYTES + offset, beats))
        return bursts

    def send(self, port: int, bursts: list[Burst]) -> None:
        """Queue requests."""
        self.sources[port].send(*({"addr": addr, "beats": beats} for addr, beats in bursts))

    def check(self, beats: list[dict[str, int]], bursts: list[Burst]) -> None:
        """Compare what a port delivered with the memory."""
        expected = []
        for addr, count in bursts:
            for beat in range(count):
                at = addr - BASE + beat * BYTES
                word = int.from_bytes(self.content[at : at + BYTES].tobytes(), "little")
                expected.append({"data": word, "last": int(beat == count - 1), "fault": 0})
        assert len(beats) == len(expected)
        for number, (beat, wanted) in enumerate(zip(beats, expected, strict=True)):
            assert beat == wanted, f"beat {number}: {beat} instead of {wanted}"

    def status(self, port: int) -> Burst:
        """Fault code and address of a port."""
        code = getattr(self.dut, f"fault_code__{port}").value
        return int(code), int(getattr(self.dut, f"fault_addr__{port}").value)

    async def run(self, bursts: list[list[Burst]]) -> None:
        """Send lists of bursts, one a port, and check what comes back."""
        for port, items in enumerate(bursts):
            self.send(port, items)
        for port, items in enumerate(bursts):
            self.check(await self.sinks[port].receive(sum(b for _, b in items)), items)
        await self.bench.until(lambda: int(self.dut.idle.value) == 1, "idle")
        assert self.memory.idle


@cocotb.test()
@cocotb.parametrize(("pause", (0.0, 0.4)), ("kind", ("rough", "far", "steady")))
async def random_bursts(dut: Any, pause: float, kind: str) -> None:
    """All ports at once; every beat arrives, in order, once."""
    timing = {
        "rough": AxiTiming.rough(),
        "far": AxiTiming(read_latency=(150, 250), reorder=True, interleave=True),
        "steady": AxiTiming(read_latency=1),
    }[kind]
    setup = Setup(dut, timing, pause=pause)
    await setup.bench.start()
    count = max(20, min(150, 1200 // LIMIT))
    await setup.run([setup.random_bursts(count) for _ in range(setup.ports)])
    assert setup.memory.most_reads <= CONFIG.read_outstanding
    assert all(setup.status(port)[0] == Status.OK.value for port in range(setup.ports))


@cocotb.test()
@cocotb.parametrize(beats=(1, 8, 9))
async def full_rate(dut: Any, beats: int) -> None:
    """One beat a cycle at 200 cycles latency, as far as the outstanding bursts allow."""
    latency = 200
    setup = Setup(dut, AxiTiming(read_latency=latency))
    beats = min(beats, LIMIT)
    await setup.bench.start()
    await setup.bench.cycles(4 * CONFIG.read_outstanding + 8)  # the walk after reset
    count = max(200, min(2400 // beats, 10 * CONFIG.read_outstanding))
    pages = SIZE // PAGE_BYTES
    bursts = [(BASE + (n % pages) * PAGE_BYTES + 64 * (n % 8), beats) for n in range(count)]
    start = setup.bench.cycle
    await setup.run([bursts])
    cycles = setup.bench.cycle - start
    # The engine's own pipeline keeps a burst for a few cycles before and after the bus does.
    in_flight = min(CONFIG.read_outstanding * beats, setup_depth(setup) - 2 * LIMIT)
    rate = min(1.0, in_flight / (latency + 24))
    dut._log.info("%d beats in %d cycles, bound on the rate %.3f", count * beats, cycles, rate)
    assert cycles < count * beats / rate + latency + 40


def setup_depth(setup: Setup) -> int:
    """Buffer depth of the ports, which `read_buffer_beats` has chosen."""
    from hotline.rtl.read_engine import read_buffer_beats

    return read_buffer_beats(CONFIG)


@cocotb.test()
async def stalled_port(dut: Any) -> None:
    """A reader that takes nothing holds up its own port only."""
    setup = Setup(dut, AxiTiming(read_latency=(5, 30), reorder=True, interleave=True))
    if setup.ports == 1:
        return
    setup.sinks[0].pause = 1.0
    await setup.bench.start()
    blocked = setup.random_bursts(4000 // LIMIT + 20)
    setup.send(0, blocked)
    for port in range(1, setup.ports):
        bursts = setup.random_bursts(40)
        setup.send(port, bursts)
        setup.check(await setup.sinks[port].receive(sum(b for _, b in bursts)), bursts)
    assert not setup.sinks[0].items
    setup.sinks[0].pause = 0.0
    setup.check(await setup.sinks[0].receive(sum(b for _, b in blocked)), blocked)


@cocotb.test()
@cocotb.parametrize(kind=("bus", "window", "both"))
async def faults(dut: Any, kind: str) -> None:
    """The first fault of a port marks its beats; other ports go on; nothing outside is read."""
    good = SIZE // 4  # first and last quarter: fine; second: bus error; third: no window
    errors = [ErrorRange(BASE + good, BASE + 2 * good - 1, DECERR)]
    timing = AxiTiming((1, 60), reorder=True, interleave=True, r_pause=0.2)
    setup = Setup(dut, timing, pause=0.2, errors=errors)
    # The second window ends in the midst of a page, at a place where a burst can straddle its end.
    inside = BASE + 2 * good - PAGE_BYTES // 2
    setup.set_windows([(BASE + 3 * good, TOP - 1), (BASE, inside - 1)])
    await setup.bench.start()
    victim = int(setup.bench.rng.integers(setup.ports))
    bus = (BASE + good + BYTES, min(LIMIT, 3))
    window = (inside - BYTES + BYTES * (LIMIT == 1), min(LIMIT, 2))
    bad = {"bus": [bus], "window": [window], "both": [bus, window]}[kind]
    setup.bench.rng.shuffle(bad)

    def fine(count: int) -> list[Burst]:
        return [
            (addr if addr < BASE + good else addr % good + BASE, beats)
            for addr, beats in setup.random_bursts(count)
        ]

    before, others = fine(25), [fine(40) for _ in range(setup.ports)]
    for port in range(setup.ports):
        bad_list = [*before, *map(tuple, bad), *fine(5)] if port == victim else others[port]
        setup.send(port, bad_list)
    head = sum(beats for _, beats in before)
    setup.check(await setup.sinks[victim].receive(head), before)
    first = (int(bad[0][0]), int(bad[0][1]))
    is_bus = first == bus
    for number in range(first[1] if is_bus else 1):
        beat = (await setup.sinks[victim].receive(1))[0]
        assert beat["fault"] == 1
        assert beat["last"] == int(not is_bus or number == first[1] - 1)
    code = Status.BUS_READ if is_bus else Status.ADDR_WINDOW
    assert setup.status(victim) == (code.value, first[0])
    for port in range(setup.ports):
        if port != victim:
            total = sum(beats for _, beats in others[port])
            setup.check(await setup.sinks[port].receive(total), others[port])
            assert setup.status(port)[0] == Status.OK.value
    assert window not in setup.memory.reads
    assert all(source.idle for source in setup.sources)


@cocotb.test()
async def halt_and_reset(dut: Any) -> None:
    """After `halt` no new AR; what was issued completes; after reset all is as new."""
    setup = Setup(dut, AxiTiming.rough(), pause=0.1)
    await setup.bench.start()
    for _ in range(3):
        for port in range(setup.ports):
            setup.send(port, setup.random_bursts(60))
        await setup.bench.cycles(int(setup.bench.rng.integers(30, 200)))
        dut.halt.value = 1
        await setup.bench.cycles(1)
        # At most the burst that was on AR already may still be accepted.
        issued = len(setup.memory.reads)
        await setup.bench.until(lambda: int(dut.idle.value) == 1, "idle after halt")
        assert len(setup.memory.reads) <= issued + 1
        assert setup.memory.idle
        await setup.bench.until(lambda: all(s.idle for s in setup.sources), "requests swallowed")
        assert setup.memory.idle
        dut.halt.value = 0
        await setup.bench.reset(2)
        for sink in setup.sinks:
            sink.items.clear()
        await setup.run([setup.random_bursts(20) for _ in range(setup.ports)])
