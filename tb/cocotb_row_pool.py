"""cocotb side of test_row_pool.py."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from amaranth import unsigned
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.golden.pool import Pool
from hotline.rtl.aligner import aligned_beat
from hotline.rtl.row_pool import pool_place
from hotline.rtl.row_writer import row_place

#: Indices of each table in a sample of the multi-hot Criteo set of MLPerf.
MLPERF = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)


class PoolBench:
    """The unit between its streams, and what it should give."""

    def __init__(self, dut: Any, *, pause: float = 0.0) -> None:
        self.config = config()
        self.bench = bench = Bench(dut)
        self.places = StreamSource(bench, "places", pool_place(self.config), pause=pause)
        self.beats = StreamSource(bench, "beats", aligned_beat(self.config), pause=pause)
        self.weights = StreamSource(bench, "weights", unsigned(32), pause=pause)
        self.sum_places = StreamSink(bench, "sum_places", row_place(self.config), pause=pause)
        self.sums = StreamSink(bench, "sums", aligned_beat(self.config), pause=pause)
        dut.pool.value = 1
        self.vectors: dict[int, bytes] = {}
        self.rows = 0

    def weighted(self, value: bool) -> None:
        """For the bags to come."""
        self.bench.dut.weighted.value = int(value)
        self._weighted = value

    def bag(self, rows: np.ndarray, start: int) -> None:
        """Add the f32 words `rows`, uint32 [count, words], at beat address `start`."""
        count, words = rows.shape
        per_beat = self.config.data_words
        beats = -(-words // per_beat)
        weights = self.bench.rng.standard_normal(count).astype(np.float32)
        if not self._weighted:
            weights[:] = 1
        for number in range(max(count, 1)):
            self.places.send(
                {
                    "start": start,
                    "joins": 0,
                    "words": words,
                    "zero": int(count == 0),
                    "close": int(number >= count - 1),
                    "end": 0,
                }
            )
        for row, weight in zip(rows, weights, strict=True):
            if self._weighted:
                self.weights.send(int(weight.view(np.uint32)))
            for beat in range(beats):
                part = row[beat * per_beat : (beat + 1) * per_beat]
                self.beats.send(
                    {
                        "data": int.from_bytes(part.tobytes(), "little"),
                        "strobe": (1 << len(part)) - 1,
                        "first": int(beat == 0),
                        "last": int(beat == beats - 1),
                        "end": 0,
                    }
                )
        sums = Pool().sums(rows.view(np.uint8), weights, np.zeros(count, np.int64), 1)
        assert start not in self.vectors
        self.vectors[start] = sums.tobytes()
        self.rows += count

    async def finish(self) -> None:
        """End the list; compare everything that has come out."""
        self.places.send({"start": 0, "joins": 0, "words": 0, "zero": 0, "close": 0, "end": 1})
        self.beats.send({"data": 0, "strobe": 0, "first": 0, "last": 0, "end": 1})
        await self.bench.until(
            lambda: bool(self.sums.items) and bool(self.sums.items[-1]["end"]), "the end", 400_000
        )
        assert self.places.idle and self.beats.idle and self.weights.idle
        beats = list(self.sums.items)[:-1]
        self.sums.items.clear()
        places = list(self.sum_places.items)
        self.sum_places.items.clear()
        vector = b""
        for beat in beats:
            assert bool(vector) != bool(beat["first"])
            words = beat["strobe"].bit_count()
            assert beat["strobe"] == (1 << words) - 1 and words
            vector += beat["data"].to_bytes(self.config.data_bytes, "little")[: 4 * words]
            if beat["last"]:
                start = places.pop(0)["start"]
                assert vector == self.vectors.pop(start), f"vector at beat {start}"
                vector = b""
        assert not places
        assert not vector and not self.vectors


def random_rows(rng: np.random.Generator, count: int, words: int) -> np.ndarray:
    """Any bit patterns, or numbers of one size, where the order of the sum matters."""
    if rng.random() < 0.3:
        return rng.integers(0, 1 << 32, (count, words), np.uint32)
    return rng.standard_normal((count, words)).astype(np.float32).view(np.uint32)


@cocotb.test()
@cocotb.parametrize(pause=(0.0, 0.4))
async def bags(dut: Any, pause: float) -> None:
    """Bags of all sizes, empty ones too, of tables with rows of several lengths."""
    pool = PoolBench(dut, pause=pause)
    pool.weighted(False)
    await pool.bench.start()
    rng, longest = pool.bench.rng, pool.config.max_row_bytes // 4
    for trial in range(8):
        pool.weighted(trial % 2 == 1)
        lengths = rng.integers(1, longest + 1, 3)
        # Most tables have rows of one length.
        tables = [int(lengths[0])] * 6 + [int(n) for n in lengths] * (trial % 3 == 0)
        start = 0
        for _ in range(12):
            for words in tables:
                count = int(rng.choice([0, 1, 2, 3, 7, 40], p=[0.2, 0.3, 0.2, 0.15, 0.1, 0.05]))
                pool.bag(random_rows(rng, count, words), start)
                start += 17
        await pool.finish()


@cocotb.test()
async def rate(dut: Any) -> None:
    """MLPerf's bags of 64-byte rows."""
    pool = PoolBench(dut)
    pool.weighted(True)
    await pool.bench.start()
    start = 0
    for _ in range(12):
        for count in MLPERF:
            pool.bag(random_rows(pool.bench.rng, count, 16), start)
            start += 1
    first = pool.bench.cycle
    await pool.finish()
    beats = pool.rows * max(1, 64 // pool.config.data_bytes)
    share = beats / (pool.bench.cycle - first)
    dut._log.info(f"{share:.3f} beats a cycle")
    assert share > (0.95 if pool.config.data_bytes <= 8 else 0.7)


@cocotb.test()
async def without_pool(dut: Any) -> None:
    """Rows pass in the same cycle."""
    pool = PoolBench(dut, pause=0.3)
    pool.weighted(False)
    dut.pool.value = 0
    await pool.bench.start()
    rng, sent = pool.bench.rng, []
    for number in range(100):
        beat = {
            "data": int(rng.integers(1 << 32)),
            "strobe": 1,
            "first": 1,
            "last": 1,
            "end": int(number == 99),
        }
        sent.append(beat)
        pool.beats.send(beat)
    assert await pool.sums.receive(100) == sent
