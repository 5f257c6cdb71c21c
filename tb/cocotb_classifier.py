"""cocotb side of test_classifier.py: SPLITs through the classifier against its golden model."""

from __future__ import annotations

import cocotb
import numpy as np
from classifier_traffic import Batch, cut_into_groups, list_words, random_batch, skewed_batch
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.golden.classifier import Classifier
from hotline.rtl.interfaces import hot_response, list_beat, row_entry

LISTS = ("popular", "nonpopular", "popular_slots", "nonpopular_slots", "keys")
COUNTS = ("popular_count", "nonpopular_count", "num_keys_out", "hits", "misses", "replacements")


class Device:
    """The classifier with a source at its input and sinks at its outputs."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut, self.config = bench, bench.dut, config()
        self.source = StreamSource(bench, "response", hot_response(self.config))
        self.lists = {name: StreamSink(bench, name, list_beat(self.config)) for name in LISTS}
        self.rows = StreamSink(bench, "rows", row_entry(self.config))
        self.dut.start.value = 0
        self.dut.gather.value = 0
        self.dut.all_rows.value = 0

    def pause(self, source: float, sinks: list[float]) -> None:
        """Probabilities of pauses at the input, and at the six outputs."""
        self.source.pause = source
        for sink, probability in zip([*self.lists.values(), self.rows], sinks, strict=True):
            sink.pause = probability

    def clear(self) -> None:
        """Forget everything, after a reset."""
        self.source.clear()
        for sink in [*self.lists.values(), self.rows]:
            sink.items.clear()

    async def begin(self, gather: bool, all_rows: bool = False) -> None:
        """Wait until the store is clear, then give the start pulse."""
        await self.bench.until(lambda: int(self.dut.ready.value) == 1, "ready", 20_000)
        assert not any(sink.items for sink in self.lists.values()), "output without a command"
        self.dut.gather.value = int(gather)
        self.dut.all_rows.value = int(all_rows)
        self.dut.start.value = 1
        await self.bench.cycles(1)
        self.dut.start.value = 0

    async def split(
        self, batch: Batch, groups: list[dict], gather: bool, all_rows: bool = False
    ) -> int:
        """One command, checked in full. Returns its cycles from the first group to the end."""
        await self.begin(gather, all_rows)
        began = self.bench.cycle
        self.source.send_all(groups)
        await self.bench.until(lambda: int(self.dut.done.value) == 1, "done", 400_000)
        cycles = self.bench.cycle - began
        self.check(batch, gather, all_rows)
        return cycles

    def check(self, batch: Batch, gather: bool, all_rows: bool) -> None:
        """Compare lists, rows and counts with the golden model, and forget them."""
        want = Classifier(self.config).classify(
            batch.offsets, batch.hit, batch.slot, batch.z, all_rows
        )
        keys, hot = batch.key[want.source], batch.hit[want.source]
        table, row = keys >> self.config.row_bits, keys & ((1 << self.config.row_bits) - 1)
        expected = {name: getattr(want, name) for name in LISTS[:-1]}
        expected["keys"] = np.stack([row, table | hot.astype(np.int64) << 31], 1).reshape(-1)
        for name, sink in self.lists.items():
            words = list_words(list(sink.items), self.config)
            assert words == [int(word) for word in expected[name]], name
        rows = [
            (item["row"], item["table"], item["hot"], item["slot"] if item["hot"] else 0)
            for item in self.rows.items
            if item["valid"]
        ]
        if gather:
            slot = np.where(hot, batch.slot[want.source], 0)
            wanted = zip(row, table, hot, slot, strict=True)
            assert rows == [tuple(int(part) for part in entry) for entry in wanted]
            assert len(self.rows.items) == len(rows) + 1
            marker = self.rows.items[-1]
            assert marker["last"] and not marker["valid"]
            assert not any(item["last"] for item in list(self.rows.items)[:-1])
        else:
            assert not self.rows.items
        # Without a store each entry counts as replaced: word 6 equals word 3.
        replaced = want.replacements if self.config.dedup_entries else len(keys)
        numbers = (
            len(want.popular), len(want.nonpopular), len(keys), want.hits, want.misses, replaced,
        )  # fmt: skip
        for name, number in zip(COUNTS, numbers, strict=True):
            assert int(getattr(self.dut, name).value) == number, name
        assert int(self.dut.shared.value) == want.shared
        assert self.source.idle and not int(self.dut.error.value)
        self.clear()


async def _device(dut) -> Device:
    device = Device(Bench(dut))
    await device.bench.start()
    return device


@cocotb.test
async def random_commands(dut) -> None:
    """Batches of every kind, one after the other, with pauses from none to many."""
    device = await _device(dut)
    rng = device.bench.rng
    for number in range(24):
        level = float(rng.choice([0.0, 0.3, 0.8]))
        device.pause(
            float(rng.choice([0.0, 0.5])), [level * bool(rng.integers(2)) for _ in range(6)]
        )
        batch = random_batch(rng, device.config)
        groups = cut_into_groups(rng, batch, device.config, tidy=number % 3 == 0)
        gather = bool(rng.integers(2))
        await device.split(batch, groups, gather, all_rows=gather and bool(rng.integers(2)))


@cocotb.test
async def longest_samples(dut) -> None:
    """The buffer holds the longest sample, however it is cut."""
    device = await _device(dut)
    rng, longest = device.bench.rng, device.config.max_sample_keys
    for single in (False, True, False):
        batch = random_batch(rng, device.config, lengths=[1, longest, 0, longest, longest, 2])
        groups = cut_into_groups(rng, batch, device.config, tidy=True, single=single)
        await device.split(batch, groups, gather=False)


@cocotb.test
async def empty_commands(dut) -> None:
    """No samples at all, and only samples without keys."""
    device = await _device(dut)
    for lengths in ([], [0], [0] * 9):
        batch = random_batch(device.bench.rng, device.config, lengths=lengths)
        groups = cut_into_groups(device.bench.rng, batch, device.config, tidy=True)
        await device.split(batch, groups, gather=True)


@cocotb.test
async def error_and_flush(dut) -> None:
    """An error group ends all; after a flush the next command works and has seen no key."""
    device = await _device(dut)
    rng = device.bench.rng
    for number in range(6):
        batch = random_batch(rng, device.config)
        groups = cut_into_groups(rng, batch, device.config)
        cut = int(rng.integers(len(groups)))
        device.pause(0.2, [0.2] * 6)
        await device.begin(gather=bool(number % 2))
        error = {**groups[0], "hit": 0}
        error["meta"] = dict(count=0, split=0, end_a=0, end_b=0, last=1, error=1)
        device.source.send_all([*groups[:cut], error])
        await device.bench.until(lambda: int(dut.error.value) == 1, "error", 20_000)
        await device.bench.cycles(int(rng.integers(20)))
        assert not int(dut.done.value)
        await device.bench.reset()
        device.clear()
        batch = random_batch(rng, device.config)
        groups = cut_into_groups(rng, batch, device.config)
        await device.split(batch, groups, gather=False)


@cocotb.test
async def rows_wait(dut) -> None:
    """As many rows as the queue holds do not hold up the lists; more of them stop all, and none is
    lost."""
    device = await _device(dut)
    rng, lanes = device.bench.rng, device.config.lanes
    for count, fits in ((64 * lanes // 26, True), (200 * lanes // 26, False)):
        batch = skewed_batch(rng, device.config, samples=count, popular=0.0, cold=26)
        await device.begin(gather=True)
        device.pause(0.0, [0.0] * 5 + [1.0])
        device.source.send_all(cut_into_groups(rng, batch, device.config, tidy=True))
        await device.bench.cycles(2000)
        lists = [sink.items[-1]["last"] if sink.items else 0 for sink in device.lists.values()]
        assert all(lists) is fits, lists
        assert not device.rows.items and not int(dut.done.value)
        device.pause(0.0, [0.0] * 5 + [0.7])
        await device.bench.until(lambda: int(dut.done.value) == 1, "done", 100_000)
        device.check(batch, gather=True, all_rows=False)


@cocotb.test
async def line_rate(dut) -> None:
    """26 one-hot keys a sample: a group a cycle if all is hot, nearly so if most is not.

    If nothing is hot, many lanes get a pass of the store of seen keys a cycle, of which conflicts
    make several of a group; two lanes on a narrow bus a key a cycle.
    """
    device = await _device(dut)
    rng = device.bench.rng
    # Long enough for the latency of the first group to count for little.
    samples = 150 * max(4, device.config.lanes)
    cold_rate = 0.34 if device.config.lanes > 2 else 0.49
    for share, cold, gather, least in (
        (1.0, 2, False, 0.98),
        (0.25, 2, False, 0.95),
        (0.25, 2, True, 0.95),
        (0.0, 26, False, cold_rate),
    ):
        batch = skewed_batch(rng, device.config, samples=samples, popular=share, cold=cold)
        groups = cut_into_groups(rng, batch, device.config, tidy=True)
        cycles = await device.split(batch, groups, gather)
        rate = len(groups) / cycles
        dut._log.info(f"popular {share}, gather {gather}: {rate:.3f} groups a cycle")
        assert rate >= least
