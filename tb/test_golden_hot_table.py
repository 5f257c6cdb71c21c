"""The hot table against the reference vectors and a plain transcription of the policies."""

from __future__ import annotations

import json
import time
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.golden.hash import perm
from hotline.golden.hot_table import HotTable

VECTORS = json.loads(Path(__file__).with_name("data").joinpath("vectors.json").read_text())


def stream(table: HotTable, samples: list) -> tuple[np.ndarray, np.ndarray]:
    """(keys, offsets) of samples given as lists of [table, row]."""
    pairs = np.array([pair for sample in samples for pair in sample], np.int64).reshape(-1, 2)
    offsets = np.cumsum([0] + [len(sample) for sample in samples])
    return table.hash.key(pairs[:, 0], pairs[:, 1]), offsets


class Transcription:
    """Both policies in plain Python: a dictionary from slot to [key, cnt or RRPV]."""

    def __init__(self, config: Config) -> None:
        self.config, self.hash = config, HotTable(config).hash
        self.slots = cache(lambda key: self.hash.slots(key)[0].tolist())
        self.last_home = cache(lambda key: int(self.hash.homes(key)[0, -1]))
        self.entries: dict[int, list[int]] = {}
        self.changed: set[int] = set()
        self.mean = self.number = 0
        self.maximum = (1 << config.counter_bits) - 1

    def find(self, key: int, slots: list[int]) -> int | None:
        for slot in slots:
            if slot in self.entries and self.entries[slot][0] == key:
                return slot
        return None

    def insert(self, slot: int, key: int, value: int) -> None:
        self.entries[slot] = [key, value]
        self.changed.add(slot)

    def learn(self, samples: list[list[int]]) -> int:
        hits = 0
        for first in range(0, len(samples), self.config.learn_group):
            group = samples[first : first + self.config.learn_group]
            places = [[self.slots(key) for key in sample] for sample in group]
            before = [
                [
                    self.find(key, slots) is not None
                    for key, slots in zip(sample, place, strict=True)
                ]
                for sample, place in zip(group, places, strict=True)
            ]
            for sample, place, hit in zip(group, places, before, strict=True):
                if self.config.sample_aware:
                    hits += sum(hit)
                    self.sample_aware(sample, place, hit)
                else:
                    hits += sum(
                        [self.srrip(key, slots) for key, slots in zip(sample, place, strict=True)]
                    )
        return hits

    def srrip(self, key: int, slots: list[int]) -> bool:
        slot = self.find(key, slots)
        if slot is not None:
            self.entries[slot][1] = 0
            return True
        victim = next((slot for slot in slots if slot not in self.entries), None)
        while victim is None:
            victim = next((s for s in slots if self.entries[s][1] == self.maximum), None)
            if victim is None:
                for s in slots:
                    self.entries[s][1] += 1
        self.insert(victim, key, self.maximum - 1)
        return False

    def sample_aware(self, sample: list[int], place: list[list[int]], hit: list[bool]) -> None:
        random = perm((31 << 28) | self.number, 33, 0, 10)
        misses = hit.count(False)
        x = max(0, misses - ((3 * self.mean) >> 12))
        y = max(0, x - 1)
        self.mean += misses - (self.mean >> 10)
        self.number += 1
        for key, slots, was_hit in zip(sample, place, hit, strict=True):
            u = ((random ^ self.last_home(key)) >> 8) & 0xFFFF
            slot = self.find(key, slots)
            if was_hit:
                if slot is not None and self.entries[slot][1] < self.maximum and x == 0:
                    c = self.entries[slot][1]
                    if u % (1 << (c - 1)) == 0:
                        self.entries[slot][1] = c + 1
            elif slot is None:
                ways = len(slots)
                order = [((u >> 14) + step) % ways for step in range(ways)]
                counts = [self.entries[s][1] if s in self.entries else 0 for s in slots]
                victim = min(order, key=lambda way: counts[way])
                c = counts[victim]
                e = min(6, (0 if c == 1 else c) + 2 * y)
                if c == 0 or (u % (1 << e) == 0 and c == 1):
                    self.insert(slots[victim], key, 1)
                elif u % (1 << e) == 0:
                    self.entries[slots[victim]][1] = c - 1

    def load(self, keys: list[int]) -> int:
        taken = 0
        for key in keys:
            slots = self.slots(key)
            free = [slot for slot in slots if slot not in self.entries]
            if self.find(key, slots) is not None:
                taken += 1
            elif free:
                taken += 1
                self.insert(free[0], key, 1 if self.config.sample_aware else self.maximum - 1)
        return taken

    def age(self) -> None:
        for entry in self.entries.values():
            if self.config.sample_aware:
                entry[1] = max(1, entry[1] >> 1)
            else:
                entry[1] = min(entry[1] + 1, self.maximum)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["config_hash"])
def test_vectors(vector: dict) -> None:
    table = HotTable(Config.from_dict(vector["configuration"]))
    keys, offsets = stream(table, vector["learn"]["samples"])
    hits, misses = table.learn(keys, offsets)
    assert hits == vector["learn"]["hits"]
    assert hits + misses == len(keys)
    assert table.running_mean == vector["learn"]["running_mean"]
    assert table.dump().tolist() == vector["learn"]["table"]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_sequence_matches_transcription(data: st.DataObject) -> None:
    config = preset("ecp5").replace(
        table_bits=data.draw(st.integers(1, 3)),
        row_bits=data.draw(st.integers(8, 10)),
        max_tables=2,
        sets=8,
        dedup_entries=0,
        banks=data.draw(st.sampled_from([1, 2, 8])),
        ways=data.draw(st.sampled_from([1, 2, 4, 8])),
        policy=data.draw(st.sampled_from(["srrip", "sample_aware"])),
        counter_bits=data.draw(st.integers(2, 4)),
        learn_group=data.draw(st.sampled_from([1, 3, 8])),
    )
    seed = data.draw(st.integers(0, 2**32 - 1))
    note(f"seed {seed} {config}")
    rng = np.random.default_rng(seed)
    table, model = HotTable(config), Transcription(config)
    for command in data.draw(st.lists(st.sampled_from("LLLOAC"), min_size=1, max_size=8)):
        lengths = rng.integers(0, 6, rng.integers(0, 30))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        spread = rng.integers(1, min(200, 1 << config.key_bits))
        keys = np.minimum(rng.geometric(1 / spread, offsets[-1]), (1 << config.key_bits) - 1)
        if command == "L":
            samples = [keys[a:b].tolist() for a, b in pairwise(offsets)]
            assert table.learn(keys.astype(np.uint64), offsets)[0] == model.learn(samples)
        elif command == "O":
            assert table.load(keys) == model.load(keys.tolist())
        elif command == "A":
            table.age()
            model.age()
        else:
            assert table.commit()[:, 0].tolist() == sorted(model.changed)
            model.changed.clear()
        rows = table.dump()
        assert rows[:, 0].tolist() == sorted(model.entries)
        assert rows[:, 3].tolist() == [model.entries[slot][1] for slot in rows[:, 0]]
        held = [model.entries[slot][0] for slot in rows[:, 0]]
        assert table.hash.key(rows[:, 1], rows[:, 2]).tolist() == held
        if config.sample_aware:
            assert (table.running_mean, table.learned_samples) == (model.mean, model.number)
        hit, slot = table.lookup(np.arange(1 << min(config.key_bits, 11)))
        assert sorted(slot[hit]) == [s for s, e in sorted(model.entries.items()) if e[0] < 2048]


def test_commit_clear_and_dirty() -> None:
    table = HotTable(preset("ecp5"))
    assert not table.dirty
    assert table.learn(np.empty(0, np.uint64), np.zeros(1, np.int64)) == (0, 0)
    assert not table.dirty
    assert table.load(np.array([5, 5, 9], np.uint64)) == 3
    assert table.dirty
    assert len(table.peek()) == 2
    assert table.dirty
    assert len(table.commit()) == 2
    assert not table.dirty
    assert len(table.commit()) == 0
    assert len(table.commit(all_slots=True)) == 2
    table.clear()
    assert len(table.dump()) == 0


@pytest.mark.parametrize("name", ["ecp5", "datacenter", "paper", "tiny"])
def test_a_million_keys_a_second(name: str) -> None:
    config = preset(name)
    table = HotTable(config)
    rng = np.random.default_rng(1)
    keys = rng.zipf(1.2, 26 * 4000).astype(np.uint64) % (1 << config.key_bits)
    offsets = np.arange(0, len(keys) + 1, 26)
    table.learn(keys[:26], offsets[:2])
    table.lookup(keys[:1])
    # Processor time, because other jobs may share the core.
    start = time.process_time()
    table.learn(keys, offsets)
    learned = time.process_time()
    table.lookup(keys)
    looked_up = time.process_time()
    print(f"learn {len(keys) / (learned - start):.3g}/s")
    print(f"look-up {len(keys) / (looked_up - learned):.3g}/s")
    assert learned - start < len(keys) / 1e6
    assert looked_up - learned < len(keys) / 1e6
