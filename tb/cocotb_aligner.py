"""cocotb side of test_aligner.py."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.rtl.aligner import aligned_beat, row_shape
from hotline.rtl.interfaces import read_beat


def ceil_div(value: int, by: int) -> int:
    return -(-value // by)


class Align:
    """The aligner, fed with rows at random places."""

    def __init__(self, dut: Any, pause: float = 0.0) -> None:
        self.config = config()
        self.words = self.config.data_words
        self.bench = Bench(dut)
        self.shapes = StreamSource(self.bench, "shapes", row_shape(self.config), pause=pause)
        self.beats = StreamSource(self.bench, "beats", read_beat(self.config), pause=pause)
        self.output = StreamSink(self.bench, "output", aligned_beat(self.config), pause=pause)
        self.expected: list[dict[str, Any]] = []
        self.source_beats = 0

    def _beats(self, content: np.ndarray, offset: int) -> np.ndarray:
        """Words laid out from `offset` on, as [beats, words]; random around them."""
        count = ceil_div(offset + len(content), self.words)
        all_words = self.bench.rng.integers(0, 1 << 32, count * self.words, dtype=np.uint64)
        all_words[offset : offset + len(content)] = content
        return all_words.reshape(count, self.words)

    async def start(self, early: bool = False) -> None:
        self.early = early
        self.bench.dut.early.value = int(early)
        await self.bench.start()

    def add(self, length: int, offset: int, *, fail: int | None = None) -> None:
        """Queue a row of `length` words; `offset` in the destination if `early`, else source."""
        early = self.early
        content = self.bench.rng.integers(0, 1 << 32, length, dtype=np.uint64)
        source, dest = (0, offset) if early else (offset, 0)
        taken, given = self._beats(content, source), self._beats(content, dest)
        self.shapes.send(
            {
                "source": source,
                "dest": dest,
                "final": (dest + length - 1) % self.words,
                "beats": len(taken),
                "tail": int((len(given) != len(taken)) == early),
                "move": 1,
            }
        )
        for i, beat in enumerate(taken):
            data = int.from_bytes(beat.astype("<u4").tobytes(), "little")
            fault = int(fail is not None and i >= fail)
            self.beats.send({"data": data, "last": int(i == len(taken) - 1), "fault": fault})
        self.source_beats += len(taken)
        for i, beat in enumerate(given):
            places = range(i * self.words, (i + 1) * self.words)
            self.expected.append(
                {
                    "words": [
                        int(word) if dest <= place < dest + length else None
                        for word, place in zip(beat, places, strict=True)
                    ],
                    "first": int(i == 0),
                    "last": int(i == len(given) - 1),
                }
            )

    def add_random(self, count: int, longest: int) -> None:
        rng = self.bench.rng
        for _ in range(count):
            self.add(int(rng.integers(1, longest + 1)), int(rng.integers(self.words)))

    def end(self) -> None:
        self.shapes.send({"last": 1})

    async def check(self) -> None:
        """All beats that are due come out, then the end."""
        seen = await self.output.receive(len(self.expected) + 1)
        assert seen.pop()["end"] == 1
        for beat, wanted in zip(seen, self.expected, strict=True):
            assert not beat["end"]
            assert (beat["first"], beat["last"]) == (wanted["first"], wanted["last"])
            words = [
                beat["data"] >> 32 * i & 0xFFFF_FFFF if beat["strobe"] >> i & 1 else None
                for i in range(self.words)
            ]
            assert words == wanted["words"]
        assert self.beats.idle and self.shapes.idle
        self.expected.clear()


@cocotb.test
@cocotb.parametrize(early=[True, False], pause=[0.0, 0.4])
async def shifts(dut, early: bool, pause: float) -> None:
    align = Align(dut, pause)
    await align.start(early)
    for longest in (1, 2 * align.words, 5 * align.words):
        align.add_random(60, longest)
        align.end()
        await align.check()


@cocotb.test
@cocotb.parametrize(early=[True, False])
async def every_place_and_length(dut, early: bool) -> None:
    align = Align(dut)
    await align.start(early)
    for offset in range(align.words):
        for length in {1, align.words - offset, align.words, align.words + 1} - {0}:
            align.add(length, offset)
    align.end()
    await align.check()


@cocotb.test
@cocotb.parametrize(early=[True, False], longest=[1, 2])
async def line_rate(dut, early: bool, longest: int) -> None:
    """No cycle is lost between rows: the busier side moves a beat in every cycle."""
    align = Align(dut)
    await align.start(early)
    align.add_random(150, longest * align.words)
    align.end()
    busiest = max(align.source_beats, len(align.expected))
    await align.check()
    times = align.output.times
    assert times[-1] - times[0] <= busiest + 1


@cocotb.test
@cocotb.parametrize(early=[True, False])
async def failed_beat(dut, early: bool) -> None:
    align = Align(dut, 0.2)
    await align.start(early)
    align.add_random(5, 3 * align.words)
    good = len(align.expected)
    align.add(3 * align.words, 0, fail=1)
    align.end()
    await align.bench.until(lambda: int(dut.read_fault.value) == 1, "fault")
    await align.bench.cycles(30)
    assert good - 2 <= len(align.output.items) <= good + 2
    assert not int(dut.index_fault.value)
    assert not any(beat["end"] for beat in align.output.items)


@cocotb.test
async def bad_entry(dut) -> None:
    align = Align(dut, 0.2)
    await align.start()
    align.add_random(5, 3 * align.words)
    align.shapes.send({"fault": 1})
    align.end()
    await align.bench.until(lambda: int(dut.index_fault.value) == 1, "fault")
    await align.bench.cycles(30)
    assert not int(dut.read_fault.value)
    assert not any(beat["end"] for beat in align.output.items)
    assert align.beats.idle
