"""cocotb side of test_word_packer.py."""

from __future__ import annotations

import os

import cocotb
from classifier_traffic import list_words
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.rtl.interfaces import list_beat
from hotline.rtl.word_packer import word_segment


def _segments(bench: Bench, inputs: int, bits: int, full: bool) -> tuple[list[dict], list[int]]:
    """Random segments of a list, and the 32-bit words that it consists of."""
    segments, words = [], []
    for number in range(60):
        count = inputs if full else int(bench.rng.integers(inputs + 1))
        first = int(bench.rng.integers(min(inputs - count, inputs - 1) + 1))
        word = [int.from_bytes(bench.rng.bytes(bits // 8), "little") for _ in range(inputs)]
        last = int(number == 59)
        segments.append({"word": word, "first": first, "count": count, "last": last})
        for value in word[first : first + count]:
            words += [value >> 32 * n & 0xFFFFFFFF for n in range(bits // 32)]
    return segments, words


@cocotb.test
@cocotb.parametrize(source=[0.0, 0.5], sink=[0.0, 0.5])
async def packs(dut, source: float, sink: float) -> None:
    """Several lists, one right behind the other; full segments at line rate."""
    bench = Bench(dut)
    inputs, bits = int(os.environ["PACKER_INPUTS"]), int(os.environ["PACKER_BITS"])
    driver = StreamSource(bench, "input", word_segment(inputs, bits), pause=source)
    taker = StreamSink(bench, "output", list_beat(config()), pause=sink)
    await bench.start()
    lists = [_segments(bench, inputs, bits, full=number == 1) for number in range(5)]
    for segments, _ in lists:
        driver.send_all(segments)
    for _, words in lists:
        beats = await taker.receive(len(words) // config().data_words + 1)
        assert list_words(beats, config()) == words
    assert not taker.items
    if source == sink == 0.0:
        # Full segments: one cycle a segment or a beat, whichever is more, and one to close the
        # list. Ragged ones have no such bound: where a block is several beats, nothing but a small
        # queue evens them out.
        before, full = (len(words) // config().data_words + 1 for _, words in lists[:2])
        cycles = taker.times[before + full - 1] - taker.times[before - 1]
        assert cycles <= max(full, len(lists[1][0])) + 2, cycles
