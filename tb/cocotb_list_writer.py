"""List writer: what it hands to the write engine. See test_list_writer.py."""

from __future__ import annotations

from typing import Any

import cocotb
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.rtl.burst import PAGE_BYTES, aligned_beats
from hotline.rtl.interfaces import list_beat, write_beat

CONFIG = config()
BYTES, WORDS = CONFIG.data_bytes, CONFIG.data_words
FULL = (1 << WORDS) - 1


def setup(dut: Any, pause: float) -> tuple[Bench, StreamSource, StreamSink]:
    """Agents at both ends."""
    bench = Bench(dut, max_cycles=100_000)
    source = StreamSource(bench, "input", list_beat(CONFIG), pause=pause)
    sink = StreamSink(bench, "output", write_beat(CONFIG), pause=pause)
    dut.start.value = 0
    return bench, source, sink


async def write_list(
    bench: Bench, source: StreamSource, sink: StreamSink, base: int, words: int, marker: bool
) -> list[tuple[int, int]]:
    """Write a region of some words, check every beat, and return its bursts.

    With `marker` the region ends in a beat with strobe 0, else in its last beat with words.
    """
    bench.dut.base.value = base
    bench.dut.start.value = 1
    await bench.cycles(1)
    bench.dut.start.value = 0
    bench.dut.base.value = 0
    count = -(-words // WORDS)
    beats = [
        {"data": int.from_bytes(bench.rng.bytes(BYTES), "little"), "strobe": FULL, "last": 0}
        for _ in range(count)
    ]
    if words % WORDS:
        beats[-1]["strobe"] = (1 << words % WORDS) - 1
    if marker or not beats:
        source.send(*beats, {"data": 0, "strobe": 0, "last": 1})
    else:
        beats[-1]["last"] = 1
        source.send(*beats)
    got = await sink.receive(count)
    await source.drained()
    bursts, addr, length = [], base, 0
    for number, (beat, wanted) in enumerate(zip(got, beats, strict=True)):
        length += 1
        assert beat["data"] == wanted["data"] and beat["strobe"] == wanted["strobe"]
        assert beat["addr"] == addr, f"beat {number} at {beat['addr']:#x} instead of {addr:#x}"
        assert beat["last"] or number < count - 1
        if beat["last"]:
            bursts.append((addr, length))
            addr, length = addr + length * BYTES, 0
    return bursts


@cocotb.test()
@cocotb.parametrize(pause=(0.0, 0.5))
async def regions(dut: Any, pause: float) -> None:
    """Regions of all small sizes and some long ones, with and without an end marker."""
    bench, source, sink = setup(dut, pause)
    await bench.start()
    limit = aligned_beats(CONFIG)
    sizes = [*range(2 * WORDS + 2), limit * WORDS, limit * WORDS + 1, 3 * limit * WORDS - 1]
    for words in sizes:
        for marker in (False, True):
            if marker and words % WORDS:
                continue  # a partly filled beat is always the last one
            base = int(bench.rng.integers(1 << 20)) * 64
            bursts = await write_list(bench, source, sink, base, words, marker)
            for addr, beats in bursts:
                assert beats <= CONFIG.max_burst_beats
                assert addr // PAGE_BYTES == (addr + beats * BYTES - 1) // PAGE_BYTES
            # As few bursts as aligned ones allow.
            first, last = base // BYTES // limit, (base + 4 * words - 1) // BYTES // limit
            assert len(bursts) == (last - first + 1 if words else 0)
    await bench.cycles(20)
    assert not sink.items


@cocotb.test()
async def end_of_address_space(dut: Any) -> None:
    """A region that ends with the address space."""
    bench, source, sink = setup(dut, 0.2)
    await bench.start()
    beats = 4096 // BYTES
    base = (1 << CONFIG.addr_width) - 4096
    bursts = await write_list(bench, source, sink, base, beats * WORDS, False)
    assert sum(length for _, length in bursts) == beats


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """One beat a cycle."""
    bench, source, sink = setup(dut, 0.0)
    await bench.start()
    await write_list(bench, source, sink, 1 << 16, 500 * WORDS, True)
    assert sink.times[-1] - sink.times[0] == 499
