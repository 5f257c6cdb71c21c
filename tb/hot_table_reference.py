"""Straightforward hot table for block tests: one key at a time, any learn context.

Written from `tracker.md` and spec section 5, independently of the golden model; only the hash is
shared with it (and checked against `vectors.json` elsewhere).
"""

from __future__ import annotations

from hotline.gen.config import Config
from hotline.golden.hash import KeyHash

__all__ = ["HotTableReference"]


class HotTableReference:
    """Entries are {slot: [state, changed, key]}; `state` is cnt or RRPV.

    Parameters
    ----------
    config : Config
        Shape and policy.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.hash = KeyHash(config)
        self.top = (1 << config.counter_bits) - 1
        self.entries: dict[int, list[int]] = {}
        self._places: dict[int, tuple[list[int], int]] = {}

    def slots(self, key: int) -> list[int]:
        return self._place(key)[0]

    def _place(self, key: int) -> tuple[list[int], int]:
        if key not in self._places:
            slots = [int(slot) for slot in self.hash.slots(key)[0]]
            self._places[key] = slots, int(self.hash.homes(key)[0, -1])
        return self._places[key]

    def find(self, key: int) -> int | None:
        """Slot of a key, if it is there."""
        for slot in self.slots(key):
            if slot in self.entries and self.entries[slot][2] == key:
                return slot
        return None

    def insert(self, slot: int, key: int) -> None:
        fresh = 1 if self.config.sample_aware else self.top - 1
        self.entries[slot] = [fresh, 1, key]

    def load(self, key: int) -> bool:
        """Whether the key was taken: it is there, or there was a free way."""
        if self.find(key) is not None:
            return True
        for slot in self.slots(key):
            if slot not in self.entries:
                self.insert(slot, key)
                return True
        return False

    def update(self, key: int, hit: bool, x_zero: bool, y: int, random: int) -> bool:
        """Whether the key was there before the update."""
        slot = self.find(key)
        if not self.config.sample_aware:
            self._update_srrip(key, slot)
        elif hit:
            if slot is not None and x_zero:
                count = self.entries[slot][0]
                if count < self.top and self._u(key, random) % (1 << (count - 1)) == 0:
                    self.entries[slot][0] = count + 1
        elif slot is None:
            self._replace(key, y, self._u(key, random))
        return slot is not None

    def _u(self, key: int, random: int) -> int:
        return (random ^ (self._place(key)[1] >> 8)) & 0xFFFF

    def _replace(self, key: int, y: int, u: int) -> None:
        slots = self.slots(key)
        ways = len(slots)
        order = [slots[((u >> 14) + n) % ways] for n in range(ways)]
        victim = min(order, key=lambda slot: self.entries.get(slot, [0])[0])
        count = self.entries.get(victim, [0])[0]
        if count == 0:
            self.insert(victim, key)
            return
        exponent = min(6, (0 if count == 1 else count) + 2 * y)
        if u % (1 << exponent) == 0:
            if count == 1:
                self.insert(victim, key)
            else:
                self.entries[victim][0] = count - 1

    def _update_srrip(self, key: int, slot: int | None) -> None:
        slots = self.slots(key)
        if slot is not None:
            self.entries[slot][0] = 0
            return
        for slot in slots:
            if slot not in self.entries:
                self.insert(slot, key)
                return
        while True:
            for slot in slots:
                if self.entries[slot][0] == self.top:
                    self.insert(slot, key)
                    return
            for slot in slots:
                self.entries[slot][0] += 1

    def clear(self) -> None:
        self.entries = {}

    def age(self) -> None:
        for entry in self.entries.values():
            if self.config.sample_aware:
                entry[0] = max(1, entry[0] >> 1)
            else:
                entry[0] = min(entry[0] + 1, self.top)

    def unmark(self) -> None:
        for entry in self.entries.values():
            entry[1] = 0

    def records(self, everything: bool) -> list[tuple[int, int, int, int]]:
        """What a scan reports."""
        rows = self.config.row_bits
        return [
            (slot, key >> rows, key & ((1 << rows) - 1), 0)
            for slot, (_, changed, key) in sorted(self.entries.items())
            if changed or everything
        ]
