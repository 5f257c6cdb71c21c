"""The key stream: samples, or lists of keys, out of memory, checked in stream order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotline.gen.commands import StatusCode
from hotline.gen.config import Config
from hotline.golden.bus import Bus, Fault
from hotline.golden.tables import Tables

__all__ = ["KeyStream", "Samples"]


@dataclass(frozen=True)
class Samples:
    """The samples before the first error, or all.

    Parameters
    ----------
    table, row : int64 [n]
        The keys in stream order.
    offsets : int64 [samples + 1]
        Sample i has keys offsets[i] .. offsets[i + 1] - 1.
    bags : int64 [samples, num_tables]
        Bag lengths.
    fault : Fault or None
        What is wrong; its position is the sample, which need not be the one behind the last.
    """

    table: np.ndarray
    row: np.ndarray
    offsets: np.ndarray
    bags: np.ndarray
    fault: Fault | None


class KeyStream:
    """Reads what LEARN and SPLIT (samples) and LOAD, SCATTER, GATHER, FILL (lists) need.

    Parameters
    ----------
    config : Config
        Gives `max_sample_keys`.
    bus : Bus
        Where it is read.
    tables : Tables
        What rows there are.
    """

    def __init__(self, config: Config, bus: Bus, tables: Tables) -> None:
        self.config = config
        self.bus = bus
        self.tables = tables

    def samples(
        self, count: int, num_tables: int, num_keys: int, indices: int, lengths: int
    ) -> Samples:
        """Read `count` >= 1 samples; `lengths` 0 means one-hot. Addresses in bytes."""
        broken = None
        if lengths == 0:
            # Do not lay out samples that cannot be read: `count` may be anything.
            broken = self.bus.linear(indices, 4 * num_keys, write=False)
            if broken is not None:
                count = min(count, broken.position // (4 * num_tables) + 1)
        bags, fault = self._bags(count, num_tables, num_keys, lengths)
        good = bags.shape[0]
        offsets = np.concatenate([[0], np.cumsum(bags.sum(axis=1))])
        needed = int(offsets[-1])
        if fault is None and needed != num_keys:
            # Belongs to the end of the last sample, after its indices.
            fault = Fault(good - 1, StatusCode.LENGTHS, needed)

        if lengths != 0:
            broken = self.bus.linear(indices, 4 * num_keys, write=False, limit=4 * needed)
        if broken is not None and broken.position >= 4 * needed:
            broken = None
        readable = needed if broken is None else broken.position // 4
        row = self.bus.memory.read(indices, 4 * readable).view("<u4").astype(np.int64)
        table = np.repeat(np.tile(np.arange(num_tables), good), bags.reshape(-1))[:readable]
        bad = self.tables.first_bad(table, row, num_tables)
        if bad is None and broken is not None:
            bad = Fault(readable, broken.status, broken.info)
        if bad is not None:
            good = int(np.searchsorted(offsets, bad.position, side="right")) - 1
            fault = Fault(good, bad.status, bad.info)
        keys = int(offsets[good])
        return Samples(table[:keys], row[:keys], offsets[: good + 1], bags[:good], fault)

    def list(self, address: int, count: int, words: int) -> tuple[np.ndarray, Fault | None]:
        """Read `count` records of `words` u32: the uint32 [n, words] before the first bus fault."""
        size = 4 * words
        fault = self.bus.linear(address, size * count, write=False)
        good = count if fault is None else fault.position // size
        data = self.bus.memory.read(address, size * good).view("<u4").reshape(good, words)
        return data, None if fault is None else Fault(good, fault.status, fault.info)

    def _bags(
        self, count: int, num_tables: int, num_keys: int, lengths: int
    ) -> tuple[np.ndarray, Fault | None]:
        """Bag lengths of the samples before the first error in the lengths."""
        longest = self.config.max_sample_keys
        if lengths == 0:
            if num_tables > longest:
                fault = Fault(0, StatusCode.LENGTHS, num_tables)
                return np.zeros((0, num_tables), np.int64), fault
            return np.ones((count, num_tables), np.int64), None
        size = 2 * num_tables
        broken = self.bus.linear(lengths, size * count, write=False)
        good = count if broken is None else broken.position // size
        bags = self.bus.memory.read(lengths, size * good).view("<u2").astype(np.int64)
        bags = bags.reshape(good, num_tables)
        total = bags.sum(axis=1)
        running = np.cumsum(total)
        bad = (total > longest) | (running > num_keys)
        if bad.any():
            first = int(np.argmax(bad))
            info = int(total[first] if total[first] > longest else running[first])
            return bags[:first], Fault(first, StatusCode.LENGTHS, info)
        if broken is not None:
            return bags, Fault(good, broken.status, broken.info)
        return bags, None
