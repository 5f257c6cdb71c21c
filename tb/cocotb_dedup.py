"""cocotb side of test_dedup.py: key streams that provoke every hazard of the store."""

from __future__ import annotations

import itertools

import cocotb
import numpy as np
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.golden.classifier import Classifier
from hotline.rtl.dedup import new_keys
from hotline.rtl.pass_splitter import key_segment
from hotline.rtl.word_packer import word_segment


class _Traffic:
    """One command: keys drawn from `universe`, in ragged segments."""

    def __init__(self, bench: Bench, universe: np.ndarray, cold: float, count: int) -> None:
        rng, lanes = bench.rng, config().lanes
        hot = rng.random(universe.shape[0]) >= cold
        picked = rng.integers(0, universe.shape[0], count)
        hot[picked[0]] = False  # else the golden model would take them for a popular sample
        self.z, self.hit = universe[picked], hot[picked]
        self.key = self.z ^ 1
        self.slot = self.z % config().slots
        self.segments = []
        at = 0
        while at < count:
            size = int(min(rng.integers(1, lanes + 1), count - at))
            first = int(rng.integers(lanes - size + 1))
            key, slot, z = [
                [int(n) for n in rng.integers(0, config().slots, lanes)] for _ in range(3)
            ]
            hit = 0
            for lane, number in zip(range(first, first + size), range(at, at + size), strict=True):
                hit |= int(self.hit[number]) << lane
                key[lane], z[lane] = int(self.key[number]), int(self.z[number])
                if self.hit[number]:
                    slot[lane] = int(self.slot[number])
            at += size
            keys = {"key": key, "slot": slot, "z": z, "hit": hit}
            self.segments.append(keys | {"first": first, "count": size, "last": 0})
        self.segments[-1]["last"] = 1


@cocotb.test
@cocotb.parametrize(source=[0.0, 0.5], sink=[0.0, 0.6])
async def as_if_one_by_one(dut, source: float, sink: float) -> None:
    """Few entries, few keys, many conflicts: the same numbers as key by key."""
    bench = Bench(dut)
    driver = StreamSource(bench, "input", key_segment(config()), pause=source)
    words = StreamSink(bench, "words", word_segment(config().lanes, 32), pause=sink)
    new = StreamSink(bench, "new", new_keys(config()), pause=sink)
    dut.start.value = dut.clear.value = 0
    await bench.start()
    entries = max(1, config().dedup_entries)
    shapes = ((2, entries), (3, 1), (8, entries // 2 or 1), (40, 1), (2000, 1))
    for (size, step), all_rows in itertools.product(shapes, (False, True)):
        await bench.until(lambda: not int(dut.busy.value), "store cleared", 20_000)
        dut.all_rows.value = int(all_rows)
        dut.start.value = 1
        await bench.cycles(1)
        dut.start.value = 0
        universe = (np.arange(size, dtype=np.int64) * step) % (1 << config().key_bits)
        traffic = _Traffic(bench, np.unique(universe), 0.5 if all_rows else 0.9, 400)
        driver.send_all(traffic.segments)
        await bench.until(
            lambda: bool(
                words.items and words.items[-1]["last"] and new.items and new.items[-1]["last"]
            ),
            "end of both streams",
        )
        # One sample for the golden model: non-popular if any of its keys is cold.
        want = Classifier(config()).classify(
            np.array([0, 400]), traffic.hit, traffic.slot, traffic.z, all_rows
        )
        entries_wanted = want.nonpopular_slots
        got = [
            word
            for item in words.items
            for word in item["word"][item["first"] : item["first"] + item["count"]]
        ]
        assert got == [int(entry) for entry in entries_wanted]
        keys = [
            (item["key"][lane], item["hot"] >> lane & 1, item["slot"][lane])
            for item in new.items
            for lane in range(config().lanes)
            if item["mask"] >> lane & 1
        ]
        known = zip(traffic.key, traffic.hit, traffic.slot, strict=True)
        rows = [tuple(int(part) for part in key) for key in known]
        assert [key[: 2 + key[1]] for key in keys] == [
            rows[source][: 2 + rows[source][1]] for source in want.source
        ]
        # The count follows the last new key by a cycle.
        await bench.cycles(2)
        assert int(dut.num_keys.value) == len(want.source)
        replaced = want.replacements if config().dedup_entries else len(want.source)
        assert int(dut.replacements.value) == replaced
        words.items.clear()
        new.items.clear()
        dut.clear.value = 1
        await bench.cycles(1)
        dut.clear.value = 0
        await bench.cycles(1)
