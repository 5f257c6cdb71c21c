"""cocotb side of test_learner.py: what the learner asks of the hot table, against `tracker.md`."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
import numpy as np
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.golden.hash import perm
from hotline.rtl.interfaces import HotOp, hot_request, hot_response, key_group
from hotline.rtl.learner import LearnMode

Sample = list[int]


def cut_groups(
    rng: np.random.Generator, samples: list[Sample], lanes: int, error: bool
) -> list[dict]:
    """Legal groups of the key stream with these samples, cut at random."""
    groups: list[dict] = []
    ends = [end for sample in samples for end in ([0] * (len(sample) - 1) + [1] if sample else [2])]
    keys = [key for sample in samples for key in (sample or [None])]
    at = 0
    while at < len(keys):
        taken: list[int] = []
        meta = {"count": 0, "split": 0, "end_a": 0, "end_b": 0, "last": 0, "error": 0}
        size = int(rng.integers(1, lanes + 1)) if rng.random() < 0.5 else lanes
        while at < len(keys) and len(taken) < size:
            if keys[at] is not None:
                taken.append(keys[at])
            end = ends[at]
            at += 1
            if not meta["end_a"]:
                meta["split"] = len(taken)
            if end and not meta["end_a"]:
                meta["end_a"] = 1
                if lanes == 1 or rng.random() < 0.5:
                    break
            elif end:
                meta["end_b"] = 1
                break
        meta["count"] = len(taken)
        groups.append({"key": taken, "meta": meta})
    if error or not groups:
        last = {"count": 0, "split": 0, "end_a": 0, "end_b": 0, "last": 1, "error": int(error)}
        groups.append({"key": [], "meta": last})
    groups[-1]["meta"]["last"] = 1
    return groups


class LearnerBench:
    """The block with a hot table that answers at random, and the registers of `tracker.md`."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.config = dut, config()
        self.bench = Bench(dut)
        self.source = StreamSource(self.bench, "groups", key_group(self.config))
        self.responses = StreamSource(self.bench, "hot_response", hot_response(self.config))
        self.requests = StreamSink(
            self.bench, "hot_request", hot_request(self.config), callback=self._answer
        )
        self.log: list[tuple[dict, int]] = []
        self.mean = self.number = 0
        for name in ("start", "mode", "clear", "abort"):
            getattr(dut, name).value = 0

    def _answer(self, request: dict) -> None:
        count = request["group"]["meta"]["count"]
        bits = int(self.bench.rng.integers(0, 1 << self.config.lanes))
        if self.bench.rng.random() < 0.5:
            bits = (1 << self.config.lanes) - 1
        hit = bits & ((1 << count) - 1)
        self.log.append((request, hit))
        self.responses.send({"op": request["op"], "hit": hit, "meta": request["group"]["meta"]})

    async def start(self, mode: LearnMode) -> None:
        self.log.clear()
        self.dut.mode.value = mode.value
        self.dut.start.value = 1
        await self.bench.cycles()
        self.dut.start.value = 0
        await self.bench.cycles()

    async def run(self, groups: list[dict], mode: LearnMode) -> None:
        await self.start(mode)
        self.source.send_all(groups)
        await self.bench.until(lambda: int(self.dut.done.value) == 1, "done", 50_000)

    def outputs(self) -> tuple[int, int, int]:
        dut = self.dut
        return int(dut.error.value), int(dut.hits.value), int(dut.misses.value)

    def check_learn(
        self, samples: list[Sample], error: bool = False, aborted: bool = False
    ) -> tuple[int, int]:
        """Checks the log of requests; returns hits and misses.

        With `error` the last group of samples must not be applied if it is incomplete. If
        `aborted`, any number of whole groups may be.
        """
        size = self.config.learn_group
        lookups = deque(item for item in self.log if item[0]["op"] == HotOp.LOOKUP.value)
        updates = deque(item for item in self.log if item[0]["op"] == HotOp.UPDATE.value)
        assert len(lookups) + len(updates) == len(self.log)
        order = [request["op"] for request, _ in self.log]
        phases: list[int] = []  # ops in the order that the requests must have
        hits = misses = 0
        for first in range(0, len(samples), size):
            group = samples[first : first + size]
            apply = not error or first + size <= len(samples)
            if aborted and not updates:
                break
            before = len(lookups), len(updates)
            outcome = []
            if self.config.sample_aware:
                for sample in group:
                    flags = self._looked_up(lookups, sample)
                    if flags is None and not apply:
                        return hits, misses  # dropped before it was looked up
                    assert flags is not None
                    outcome.append(flags)
                    hits += sum(flags)
                    misses += len(flags) - sum(flags)
            if apply and self.config.sample_aware:
                for sample, flags in zip(group, outcome, strict=True):
                    self._updated(updates, sample, flags)
            elif apply:
                for sample in group:
                    number, hit = self._applied(updates, sample)
                    hits, misses = hits + hit, misses + number - hit
            phases += [HotOp.LOOKUP.value] * (before[0] - len(lookups))
            phases += [HotOp.UPDATE.value] * (before[1] - len(updates))
        assert order[: len(phases)] == phases
        assert not updates
        assert error or aborted or not lookups
        return hits, misses

    def _looked_up(self, lookups: deque[tuple[dict, int]], sample: Sample) -> list[int] | None:
        """Outcome of phase 1 by key, or None if the sample was not looked up to its end."""
        flags: list[int] = []
        ended = False
        while not ended:
            if not lookups:
                return None
            request, hit = lookups.popleft()
            meta, done = request["group"]["meta"], len(flags)
            keys = request["group"]["key"][: meta["count"]]
            assert keys == sample[done : done + meta["count"]]
            assert meta["split"] == meta["count"] and not meta["error"]
            flags += [hit >> i & 1 for i in range(meta["count"])]
            ended = bool(meta["end_a"])
        assert len(flags) == len(sample)
        return flags

    def _updated(self, updates: deque[tuple[dict, int]], sample: Sample, flags: list[int]) -> None:
        """Phase 2 of `sample_aware`; moves R and n on."""
        lanes = self.config.lanes
        misses = len(flags) - sum(flags)
        x = max(0, misses - (3 * self.mean >> 12))
        word = int(perm((31 << 28) | self.number, 33, 0, 10))
        context = (int(x == 0), min(3, max(0, x - 1)), word >> 8 & 0xFFFF)
        self.mean += misses - (self.mean >> 10)
        self.number += 1
        for done in range(0, len(sample), lanes):
            keys, wanted = sample[done : done + lanes], flags[done : done + lanes]
            if x and all(wanted):
                continue  # this changes nothing, so it is not asked for
            request, _ = updates.popleft()
            learn, meta = request["learn"], request["group"]["meta"]
            assert meta["count"] == len(keys)
            assert request["group"]["key"][: len(keys)] == keys
            assert (learn["x_zero"], learn["y"], learn["random"]) == context
            assert [learn["hit"] >> i & 1 for i in range(len(keys))] == wanted

    def _applied(self, updates: deque[tuple[dict, int]], sample: Sample) -> tuple[int, int]:
        """Updates of `srrip`; returns keys and hits."""
        done = hits = 0
        while done < len(sample):
            request, hit = updates.popleft()
            count = request["group"]["meta"]["count"]
            assert request["group"]["key"][:count] == sample[done : done + count] and count
            done, hits = done + count, hits + hit.bit_count()
        return len(sample), hits


def random_samples(rng: np.random.Generator, config_: Any, count: int) -> list[Sample]:
    limit = config_.max_sample_keys
    samples = []
    for _ in range(count):
        size = int(rng.choice([0, 1, int(rng.integers(0, 30)), limit], p=[0.1, 0.1, 0.75, 0.05]))
        size = min(size, limit)
        samples.append([int(key) for key in rng.integers(0, 1 << config_.key_bits, size)])
    return samples


@cocotb.test
@cocotb.parametrize(pause=[0.0, 0.4])
async def random_commands(dut, pause: float) -> None:
    """LEARN and LOAD, also with an error at the end; R and n go on from one to the next."""
    t = LearnerBench(dut)
    await t.bench.start()
    rng = t.bench.rng
    for trial in range(6):
        if pause:
            t.source.pause, t.requests.pause, t.responses.pause = rng.choice([0.0, pause, 0.8], 3)
        error = bool(rng.random() < 0.3)
        count = int(rng.integers(0, 2 * t.config.learn_group + 3))
        if rng.random() < 0.25:
            keys = [[int(key)] for key in rng.integers(0, 1 << t.config.key_bits, count)]
            await t.run(cut_groups(rng, keys, 1, error), LearnMode.LOAD)
            sent = [request["group"]["key"][0] for request, _ in t.log]
            assert [sent] == [[key for [key] in keys]]
            assert all(request["op"] == HotOp.LOAD.value for request, _ in t.log)
            assert int(dut.taken.value) == sum(hit.bit_count() for _, hit in t.log)
            assert int(dut.error.value) == error
            continue
        samples = random_samples(rng, t.config, count)
        await t.run(cut_groups(rng, samples, t.config.lanes, error), LearnMode.LEARN)
        hits, misses = t.check_learn(samples, error)
        assert int(dut.error.value) == error
        assert error or t.outputs()[1:] == (hits, misses)
        if trial % 3 == 2:
            dut.clear.value = 1
            await t.bench.cycles()
            dut.clear.value = 0
            t.mean = t.number = 0


@cocotb.test
async def abort(dut) -> None:
    """Phase 2 is finished or not begun, the block goes idle, and works again."""
    t = LearnerBench(dut)
    await t.bench.start()
    rng = t.bench.rng
    for _ in range(6):
        samples = random_samples(rng, t.config, 2 * t.config.learn_group + 1)
        groups = cut_groups(rng, samples, t.config.lanes, False)
        await t.start(LearnMode.LEARN)
        t.source.send_all(groups)
        await t.bench.cycles(int(rng.integers(1, 200)))
        dut.abort.value = 1
        await t.bench.until(lambda: int(dut.idle.value) == 1, "idle", 20_000)
        dut.abort.value = 0
        t.source.clear()
        t.check_learn(samples, aborted=True)
        # An abort keeps R and n, but how many groups without updates were applied is not known.
        t.mean = t.number = 0
        await t.bench.reset(2)
        await t.bench.cycles(2)


@cocotb.test
async def rate(dut) -> None:
    """26 one-hot tables in aligned groups, and a hot table without latency."""
    t = LearnerBench(dut)
    await t.bench.start()
    lanes, count = t.config.lanes, 4 * t.config.learn_group
    samples = [[i * 32 + j for j in range(26)] for i in range(count)]
    keys = [key for sample in samples for key in sample]
    groups = []
    for sample in samples:
        for at in range(0, len(sample), lanes):
            part = sample[at : at + lanes]
            meta = {"count": len(part), "split": len(part), "end_a": int(at + lanes >= len(sample))}
            groups.append({"key": part, "meta": meta | {"last": 0}})
    groups[-1]["meta"]["last"] = 1
    begin = t.bench.cycle
    await t.run(groups, LearnMode.LEARN)
    speed = len(keys) / (t.bench.cycle - begin)
    print(f"{speed:.2f} keys a cycle")
    t.check_learn(samples)
    assert speed >= {2: 0.8, 16: 5.0}[lanes]
