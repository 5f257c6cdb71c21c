"""Bench of the hot table against a reference: random sequences, and throughput."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource
from hot_table_reference import HotTableReference

from hotline.gen.config import Config
from hotline.rtl.hot_table import Sweep
from hotline.rtl.interfaces import HotOp, hot_request, hot_response, list_beat

#: Actions of a random sequence.
STEPS = int(os.environ.get("HOT_TABLE_STEPS", "60"))


class HotTableBench:
    """The design, its reference, and the answers that are due."""

    def __init__(self, dut: Any, *, pause: float = 0.0) -> None:
        self.config = config()
        self.bench = Bench(dut)
        self.rng = self.bench.rng
        self.dut = dut
        self.model = HotTableReference(self.config)
        self.due: list[dict[str, Any]] = []
        self.answered = 0
        self.stalls = 0
        self.requests = StreamSource(self.bench, "request", hot_request(self.config), pause=pause)
        self.sweeps = StreamSource(self.bench, "sweep", 2)
        self.responses = StreamSink(
            self.bench,
            "response",
            hot_response(self.config),
            pause=pause,
            callback=self._check,
        )
        self.beats = StreamSink(self.bench, "records", list_beat(self.config), pause=pause)
        self.sweep_count = 0
        self.bench.on_sample(self._sample)
        dut.scan.value = 0
        dut.scan_all.value = 0

    def _sample(self) -> None:
        self.stalls += int(self.dut.bank_stall.value)
        self.sweep_count += int(self.dut.sweep_done.value)

    def _check(self, got: dict[str, Any]) -> None:
        want = self.due[self.answered]
        count = want["meta"]["count"]
        where = f"group {self.answered}"
        assert got["op"] == want["op"].value and got["meta"] == want["meta"], where
        assert got["key"][:count] == want["key"], where
        assert got["z"][:count] == [int(z) for z in want["z"]], where
        assert got["hit"] == want["hit"], f"{where}: hit {got['hit']:b}, not {want['hit']:b}"
        if want["op"] is HotOp.LOOKUP:
            for lane in range(count):
                if want["hit"] >> lane & 1:
                    assert got["slot"][lane] == want["slot"][lane], where
        self.answered += 1

    def group(self, op: HotOp, keys: list[int], learn: dict[str, int] | None = None) -> None:
        """Queue a group, and what its answer must be."""
        learn = learn or {}
        count = len(keys)
        meta = {"count": count, "split": int(self.rng.integers(count + 1))}
        meta |= {n: int(self.rng.integers(2)) for n in ("end_a", "end_b", "last", "error")}
        filler = [
            int(self.rng.integers(1 << self.config.key_bits))
            for _ in range(count, self.config.lanes)
        ]
        self.requests.send(
            {"op": op, "group": {"key": [*keys, *filler], "meta": meta}, "learn": learn}
        )
        hits, slots = 0, []
        for lane, key in enumerate(keys):
            slot = self.model.find(key)
            hit = slot is not None
            if op is HotOp.LOAD:
                hit = self.model.load(key)
            elif op is HotOp.UPDATE:
                phase_1 = bool(learn.get("hit", 0) >> lane & 1)
                context = [learn.get(n, 0) for n in ("x_zero", "y", "random")]
                hit = self.model.update(key, phase_1, bool(context[0]), *context[1:])
                # Nothing can change: no bank is asked.
                hit &= not (self.config.sample_aware and phase_1 and not context[0])
            hits |= hit << lane
            slots.append(slot)
        z = self.model.hash.z(np.array(keys, np.int64)).tolist()
        self.due.append({"op": op, "meta": meta, "key": keys, "z": z, "hit": hits, "slot": slots})

    async def answers(self, limit: int = 100_000) -> None:
        """Wait for all answers."""
        await self.bench.until(lambda: self.answered == len(self.due), "answers", limit)

    async def sweep(self, kind: Sweep) -> None:
        """A sweep after all requests so far; later ones may be queued at once."""
        await self.requests.drained()
        before = self.sweep_count
        self.sweeps.send(kind.value)
        await self.bench.until(lambda: self.sweep_count > before, "sweep")
        {"CLEAR": self.model.clear, "AGE": self.model.age, "UNMARK": self.model.unmark}[kind.name]()

    async def scan(self, everything: bool) -> int:
        """A scan; checks its records. Returns the cycles that it took."""
        await self.requests.drained()
        begin = self.bench.cycle
        self.dut.scan.value = 1
        self.dut.scan_all.value = int(everything)
        await self.bench.cycles(1)
        self.dut.scan.value = 0
        done = self.dut.scan_done
        await self.bench.until(lambda: bool(int(done.value)), "scan", 2_000_000)
        words = list_words(self.config, list(self.beats.items))
        self.beats.items.clear()
        records = [tuple(words[n : n + 4]) for n in range(0, len(words), 4)]
        assert records == self.model.records(everything)
        assert int(self.dut.record_count.value) == len(records)
        return self.bench.cycle - begin

    def learn(self) -> dict[str, int]:
        """A random learn context, with the low bits of `random` often zero."""
        mask = int(self.rng.choice([0xFFFF, 0xFF00, 0xC000]))
        return {
            "hit": int(self.rng.integers(1 << self.config.lanes)),
            "x_zero": int(self.rng.random() < 0.7),
            "y": int(self.rng.choice([0, 0, 0, 1, 2, 3])),
            "random": int(self.rng.integers(1 << 16)) & mask,
        }

    def keys(self, pool: list[int], count: int) -> list[int]:
        return [pool[int(self.rng.integers(len(pool)))] for _ in range(count)]


def list_words(config: Config, beats: list[dict[str, int]]) -> list[int]:
    """Words of a region, from its beats; checks where it ends."""
    words: list[int] = []
    full = (1 << config.data_words) - 1
    assert beats and beats[-1]["last"]
    for number, beat in enumerate(beats):
        last = number == len(beats) - 1
        assert beat["last"] == int(last)
        count = beat["strobe"].bit_count()
        assert beat["strobe"] == (1 << count) - 1
        assert beat["strobe"] < full if last else beat["strobe"] == full
        words += [beat["data"] >> 32 * n & 0xFFFFFFFF for n in range(count)]
    return words


def key_pool(bench: HotTableBench, size: int) -> list[int]:
    """Keys for a sequence; small pools hit and collide often."""
    bits = bench.config.key_bits
    return [int(bench.rng.integers(1 << bits)) for _ in range(size)]


@cocotb.test()
async def sequences(dut: Any) -> None:
    """Random groups of all kinds, sweeps and scans, with random back-pressure."""
    pause = float(os.environ.get("HOT_TABLE_PAUSE", "0.3"))
    bench = HotTableBench(dut, pause=pause)
    await bench.bench.start()
    lanes = bench.config.lanes
    pools = [key_pool(bench, min(3 * bench.config.slots, 4000)), key_pool(bench, 12)]
    for step in range(STEPS):
        pool = pools[int(bench.rng.random() < 0.3)]
        op = HotOp(int(bench.rng.choice([0, 1, 1, 1, 2])))
        for _ in range(int(bench.rng.integers(1, 60))):
            if bench.rng.random() < 0.1:
                op = HotOp(int(bench.rng.integers(3)))
            count = lanes if bench.rng.random() < 0.6 else int(bench.rng.integers(lanes + 1))
            bench.group(op, bench.keys(pool, count), bench.learn())
        action = bench.rng.random()
        if action < 0.15:
            await bench.sweep(Sweep.AGE)
        elif action < 0.25:
            await bench.sweep(Sweep.UNMARK)
        elif action < 0.28:
            await bench.sweep(Sweep.CLEAR)
        elif action < 0.5 or step == STEPS - 1:
            await bench.scan(everything=bool(step % 2))
        if step == STEPS // 2:
            await bench.answers()
    await bench.answers()
    await bench.scan(everything=True)


@cocotb.test()
async def reset_in_traffic(dut: Any) -> None:
    """A reset in mid-traffic empties the table."""
    bench = HotTableBench(dut, pause=0.2)
    await bench.bench.start()
    pool = key_pool(bench, 50)
    for _ in range(40):
        bench.group(HotOp.LOAD, bench.keys(pool, bench.config.lanes))
    await bench.requests.drained()
    await bench.bench.reset()
    bench.due, bench.answered = [], 0
    bench.model.clear()
    for _ in range(10):
        bench.group(HotOp.LOOKUP, bench.keys(pool, bench.config.lanes))
    await bench.answers()
    await bench.scan(everything=True)


async def rate(bench: HotTableBench, op: HotOp, groups: list[list[int]]) -> float:
    """Keys a cycle, over the whole of a long run of groups."""
    await bench.answers()
    for keys in groups:
        bench.group(op, keys, {"x_zero": 1})
    bench.responses.times.clear()
    await bench.answers()
    times = bench.responses.times
    return sum(map(len, groups[1:])) / (times[-1] - times[0])


@cocotb.test()
async def throughput(dut: Any) -> None:
    """Keys a cycle without back-pressure, against the floors in the environment."""
    bench = HotTableBench(dut)
    await bench.bench.start()
    lanes = bench.config.lanes
    pool = key_pool(bench, 4000)
    for first in range(0, 2000, lanes):
        bench.group(HotOp.LOAD, pool[first : first + lanes])
    count = 1200
    random_groups = [bench.keys(pool, lanes) for _ in range(count)]
    equal_groups = [[pool[n // 50]] * lanes for n in range(count)]
    common_groups = [[pool[0], *keys[1:]] for keys in random_groups]
    rates = {
        "RANDOM": await rate(bench, HotOp.LOOKUP, random_groups),
        "EQUAL": await rate(bench, HotOp.LOOKUP, equal_groups),
        "UPDATE": await rate(bench, HotOp.UPDATE, random_groups),
        "COMMON": await rate(bench, HotOp.UPDATE, common_groups),
    }
    dut._log.info("keys a cycle: %s", rates)
    for name, value in rates.items():
        floor = float(os.environ.get(f"HOT_TABLE_{name}", "0"))
        assert value >= floor, f"{name}: {value:.3f} keys a cycle, less than {floor}"
