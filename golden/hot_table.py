"""The hot table, both policies, bit for bit (spec section 5, `tracker.md`)."""

from __future__ import annotations

import numpy as np
from numba import njit

from hotline.gen.config import Config
from hotline.golden.hash import KeyHash, feistel, shape_of

__all__ = ["HotTable"]

#: Bits of the sample number n of `tracker.md`; it wraps.
_SAMPLE_BITS = 28


@njit(nogil=True)
def _locate(key, geometry, slots, tags):  # type: ignore[no-untyped-def]
    """Slot and tag of `key` by way; returns h of the last way, and z."""
    z = feistel(key, geometry.key, 0, 4, False)
    bank = z & ((1 << geometry.bank_bits) - 1)
    h = z >> geometry.bank_bits
    for way in range(geometry.ways):
        if way > 0 and geometry.skewed:
            h = feistel(h, geometry.home, 2 + 2 * way, 2, False)
        set_ = ((h & ((1 << geometry.index_bits) - 1)) << geometry.bank_bits) | bank
        slots[way] = set_ * geometry.ways + way
        tags[way] = h >> geometry.index_bits
    return h, z


@njit(nogil=True)
def _find(slots, tags, state, held):  # type: ignore[no-untyped-def]
    """Slot that holds the key, or -1."""
    for way in range(slots.shape[0]):
        slot = slots[way]
        if state[slot] != 0 and held[slot] == tags[way]:
            return slot
    return -1


@njit(nogil=True)
def _lookup(keys, geometry, state, held, found, z):  # type: ignore[no-untyped-def]
    slots = np.empty(geometry.ways, np.int64)
    tags = np.empty(geometry.ways, np.int64)
    for i in range(keys.shape[0]):
        _, z[i] = _locate(keys[i], geometry, slots, tags)
        found[i] = _find(slots, tags, state, held)


@njit(nogil=True)
def _insert(slot, tag, value, state, held, mark):  # type: ignore[no-untyped-def]
    state[slot] = value
    held[slot] = tag
    mark[slot] = True


@njit(nogil=True)
def _load(keys, geometry, value, state, held, mark):  # type: ignore[no-untyped-def]
    slots = np.empty(geometry.ways, np.int64)
    tags = np.empty(geometry.ways, np.int64)
    taken = 0
    for i in range(keys.shape[0]):
        _locate(keys[i], geometry, slots, tags)
        if _find(slots, tags, state, held) >= 0:
            taken += 1
            continue
        for way in range(geometry.ways):
            if state[slots[way]] == 0:
                _insert(slots[way], tags[way], value, state, held, mark)
                taken += 1
                break
    return taken


@njit(nogil=True)
def _learn_srrip(keys, geometry, maximum, state, held, mark):  # type: ignore[no-untyped-def]
    """One update a key; `state` is RRPV + 1, 0 is invalid. Returns the hits."""
    slots = np.empty(geometry.ways, np.int64)
    tags = np.empty(geometry.ways, np.int64)
    hits = 0
    for i in range(keys.shape[0]):
        _locate(keys[i], geometry, slots, tags)
        slot = _find(slots, tags, state, held)
        if slot >= 0:
            state[slot] = 1
            hits += 1
            continue
        victim = -1
        oldest = 0
        for way in range(geometry.ways):
            value = state[slots[way]]
            if value == 0:
                victim = way
                break
            oldest = max(oldest, value)
        if victim < 0:
            step = maximum + 1 - oldest
            for way in range(geometry.ways):
                state[slots[way]] += step
                if victim < 0 and state[slots[way]] == maximum + 1:
                    victim = way
        _insert(slots[victim], tags[victim], maximum, state, held, mark)
    return hits


@njit(nogil=True)
def _update(slots, tags, u, hit, x, y, maximum, state, held, mark):  # type: ignore[no-untyped-def]
    """Phase 2 of `tracker.md` for one key."""
    slot = _find(slots, tags, state, held)
    if hit:
        if slot >= 0 and x == 0:
            count = np.int64(state[slot])
            if count < maximum and u & ((1 << (count - 1)) - 1) == 0:
                state[slot] = count + 1
        return
    if slot >= 0:
        return
    ways = slots.shape[0]
    start = (u >> 14) % ways
    victim = start
    for step in range(1, ways):
        way = (start + step) % ways
        if state[slots[way]] < state[slots[victim]]:
            victim = way
    count = np.int64(state[slots[victim]])
    if count == 0:
        _insert(slots[victim], tags[victim], 1, state, held, mark)
        return
    exponent = min(6, (0 if count == 1 else count) + 2 * y)
    if u & ((1 << exponent) - 1) == 0:
        if count == 1:
            _insert(slots[victim], tags[victim], 1, state, held, mark)
        else:
            state[slots[victim]] = count - 1


@njit(nogil=True)
def _learn_sample_aware(  # type: ignore[no-untyped-def]
    keys, offsets, group, geometry, random_shape, maximum, mean, number, state, held, mark
):
    """All groups of a LEARN. Returns (hits, running mean R, sample number n)."""
    samples = offsets.shape[0] - 1
    longest = 0
    for first in range(0, samples, group):
        longest = max(longest, offsets[min(first + group, samples)] - offsets[first])
    slots = np.empty((longest, geometry.ways), np.int64)
    tags = np.empty((longest, geometry.ways), np.int64)
    last = np.empty(longest, np.int64)
    hit = np.empty(longest, np.bool_)
    hits = 0
    for first in range(0, samples, group):
        end = min(first + group, samples)
        origin = offsets[first]
        for i in range(offsets[end] - origin):
            last[i], _ = _locate(keys[origin + i], geometry, slots[i], tags[i])
            hit[i] = _find(slots[i], tags[i], state, held) >= 0
        for sample in range(first, end):
            misses = 0
            for i in range(offsets[sample] - origin, offsets[sample + 1] - origin):
                misses += not hit[i]
            hits += offsets[sample + 1] - offsets[sample] - misses
            x = max(0, misses - ((3 * mean) >> 12))
            y = max(0, x - 1)
            mean = mean + misses - (mean >> 10)
            random = feistel((31 << 28) | number, random_shape, 0, 10, False)
            number = (number + 1) & ((1 << _SAMPLE_BITS) - 1)
            for i in range(offsets[sample] - origin, offsets[sample + 1] - origin):
                u = ((random ^ last[i]) >> 8) & 0xFFFF
                _update(slots[i], tags[i], u, hit[i], x, y, maximum, state, held, mark)
    return hits, mean, number


class HotTable:
    """Exact model of the hot table: which keys are hot, and in which slots.

    Look-up and learning run in numba kernels, well above 1 M keys/s on one core; the first call
    of each compiles.

    Parameters
    ----------
    config : Config
        Shape and policy.

    Members
    -------
    dirty : bool
        LEARN or LOAD has run since the last COMMIT, CLEAR or reset; set by :meth:`learn` and
        :meth:`load` for a non-empty input, and by the command interpreter for failed ones.
    running_mean : int
        R of `tracker.md`; stays 0 for `srrip`.
    learned_samples : int
        n of `tracker.md`, modulo 2**28; stays 0 for `srrip`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.hash = KeyHash(config)
        self.maximum = (1 << config.counter_bits) - 1
        # `sample_aware`: cnt. `srrip`: RRPV + 1, so that 0 means invalid under both policies.
        self._state = np.zeros(config.slots, np.uint8)
        self._tag = np.zeros(config.slots, np.int64)
        self._mark = np.zeros(config.slots, np.bool_)
        self.clear()

    def clear(self) -> None:
        """CLEAR and reset: empty, no marks, clean."""
        self._state[:] = 0
        self._mark[:] = False
        self.dirty = False
        self.running_mean = 0
        self.learned_samples = 0

    def lookup(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Look keys up without changing anything.

        Parameters
        ----------
        keys : uint64 [n]
            Key integers, (table << row_bits) | row.

        Returns
        -------
        hit : bool [n]
        slot : int64 [n]
            The slot of a key that hit, else -1.
        """
        hit, slot, _ = self.probe(keys)
        return hit, slot

    def probe(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(hit, slot, z): what :meth:`lookup` returns, and the permuted keys, int64 [n]."""
        keys = np.ascontiguousarray(keys, np.int64)
        found, z = np.empty_like(keys), np.empty_like(keys)
        _lookup(keys, self.hash.geometry, self._state, self._tag, found, z)
        return found >= 0, found, z

    def learn(self, keys: np.ndarray, sample_offsets: np.ndarray) -> tuple[int, int]:
        """Learn samples, in groups of `learn_group` counted from the first.

        Parameters
        ----------
        keys : uint64 [n]
            Key integers, sample after sample.
        sample_offsets : int64 [samples + 1]
            Sample i has keys[sample_offsets[i]:sample_offsets[i + 1]].

        Returns
        -------
        (hits, misses)
            As the update used them: phase 1 (`sample_aware`) or phase 2 (`srrip`).
        """
        keys = np.ascontiguousarray(keys, np.int64)
        offsets = np.ascontiguousarray(sample_offsets, np.int64)
        if offsets.shape[0] <= 1:
            return 0, 0
        self.dirty = True
        keys = keys[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
        arrays = (self._state, self._tag, self._mark)
        if self.config.sample_aware:
            hits, self.running_mean, self.learned_samples = _learn_sample_aware(
                keys,
                offsets,
                self.config.learn_group,
                self.hash.geometry,
                shape_of(33),
                self.maximum,
                self.running_mean,
                self.learned_samples,
                *arrays,
            )
        else:
            hits = _learn_srrip(keys, self.hash.geometry, self.maximum, *arrays)
        return int(hits), int(keys.shape[0] - hits)

    def load(self, keys: np.ndarray) -> int:
        """LOAD key integers in order; returns how many are in the table for it.

        A present key stays as it is and counts as taken too.
        """
        keys = np.ascontiguousarray(keys, np.int64)
        if keys.shape[0] == 0:
            return 0
        self.dirty = True
        value = 1 if self.config.sample_aware else self.maximum
        return int(_load(keys, self.hash.geometry, value, self._state, self._tag, self._mark))

    def age(self) -> None:
        """AGE: halve the counters (never to 0), or age every RRPV by one."""
        valid = self._state != 0
        if self.config.sample_aware:
            self._state[valid] = np.maximum(1, self._state[valid] >> 1)
        else:
            self._state[valid] = np.minimum(self._state[valid] + 1, self.maximum + 1)

    def peek(self, all_slots: bool = False) -> np.ndarray:
        """Records of COMMIT without its effect: uint32 [n, 4] of {slot, table, row, 0}."""
        chosen = self._state != 0
        if not all_slots:
            chosen &= self._mark
        slots = np.flatnonzero(chosen)
        table, row = self.hash.split(self.hash.key_of(slots, self._tag[slots]))
        return np.stack([slots, table, row, np.zeros_like(slots)], axis=1).astype(np.uint32)

    def finish_commit(self) -> None:
        """What a COMMIT that succeeded does at last: no marks, clean."""
        self._mark[:] = False
        self.dirty = False

    def commit(self, all_slots: bool = False) -> np.ndarray:
        """COMMIT that succeeds: :meth:`peek`, then :meth:`finish_commit`."""
        records = self.peek(all_slots)
        self.finish_commit()
        return records

    def dump(self) -> np.ndarray:
        """Valid entries by slot: int64 [n, 4] of {slot, table, row, cnt or RRPV}."""
        records = self.peek(all_slots=True).astype(np.int64)
        records[:, 3] = self._state[records[:, 0]]
        if not self.config.sample_aware:
            records[:, 3] -= 1
        return records
