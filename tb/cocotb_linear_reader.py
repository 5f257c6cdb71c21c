"""Linear reader: the bursts it asks for. See test_linear_reader.py."""

from __future__ import annotations

from typing import Any

import cocotb
from harness.bench import Bench, config
from harness.streams import StreamSink

from hotline.rtl.burst import PAGE_BYTES, aligned_beats
from hotline.rtl.interfaces import read_request

CONFIG = config()
BYTES = CONFIG.data_bytes
LIMIT = aligned_beats(CONFIG)


async def start(bench: Bench, addr: int, size: int) -> None:
    """Pulse `start`; addr and bytes are valid in that cycle only."""
    dut = bench.dut
    dut.addr.value, dut.bytes.value, dut.start.value = addr, size, 1
    await bench.cycles(1)
    dut.addr.value, dut.bytes.value, dut.start.value = 0, 1, 0


def done(bench: Bench) -> bool:
    """The block's `done`."""
    return int(bench.dut.done.value) == 1


async def read_region(bench: Bench, sink: StreamSink, addr: int, size: int) -> int:
    """Read a region and check its bursts: no gap, legal, as few as aligned ones allow."""
    await start(bench, addr, size)
    await bench.until(lambda: done(bench), "done")
    place, beats = addr, -(-size // BYTES)
    for item in sink.items:
        assert item["addr"] == place
        assert 1 <= item["beats"] <= CONFIG.max_burst_beats
        place += item["beats"] * BYTES
        assert item["addr"] // PAGE_BYTES == (place - 1) // PAGE_BYTES
    assert place == addr + beats * BYTES
    count = len(sink.items)
    if size:
        first, last = addr // BYTES // LIMIT, (addr // BYTES + beats - 1) // LIMIT
        assert count == last - first + 1
    sink.items.clear()
    await bench.cycles(3)
    assert done(bench) and not sink.items
    return count


@cocotb.test()
@cocotb.parametrize(pause=(0.0, 0.5))
async def regions(dut: Any, pause: float) -> None:
    """Regions of many sizes, from nothing on."""
    bench = Bench(dut, max_cycles=100_000)
    sink = StreamSink(bench, "request", read_request(CONFIG), pause=pause)
    dut.start.value = 0
    await bench.start()
    assert done(bench)
    full = LIMIT * BYTES
    sizes = [0, 1, BYTES - 1, BYTES, BYTES + 1, full - 1, full, full + 1, 5 * full - 3, 64, 0]
    for size in sizes:
        for _ in range(4):
            addr = int(bench.rng.integers(1 << 20)) * 64
            assert (await read_region(bench, sink, addr, size) == 0) == (size == 0)
    await read_region(bench, sink, (1 << CONFIG.addr_width) - 4096, 4096)


@cocotb.test()
async def largest_region(dut: Any) -> None:
    """2**35 bytes: the length does not overflow, one request a cycle."""
    bench = Bench(dut, max_cycles=100_000)
    sink = StreamSink(bench, "request", read_request(CONFIG))
    dut.start.value = 0
    await bench.start()
    await start(bench, 0, 1 << 35)
    await sink.receive(500)
    assert sink.times[499] - sink.times[0] == 499
    assert not done(bench)
