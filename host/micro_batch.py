"""What SPLIT gives: two micro-batches with indices that an embedding bag takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotline.golden.descriptor import Completion, Regions
from hotline.host.batch import bag_positions
from hotline.host.device_memory import Buffer
from hotline.host.samples import Samples

__all__ = ["MicroBatch", "Split"]

#: Bit of an entry of `nonpopular_slots` that tells a gathered row from a slot.
_GATHERED = 31


@dataclass(frozen=True)
class MicroBatch:
    """Samples whose indices point into the hot buffer with the gathered rows behind it.

    Row i of the hot buffer is slot i; gathered row g is row `hot_rows` + g. The bags are
    sample-major, so bag n * T + t is table t of the n-th sample.

    Parameters
    ----------
    samples : np.ndarray
        Their numbers in the mini-batch, uint32 [n].
    num_tables : int
        T.
    hot_rows : int
        Rows of the hot buffer.
    indices : np.ndarray
        int64 [k].
    lengths : np.ndarray or None
        Bag lengths, uint16 [n, T]; None for one-hot.
    """

    samples: np.ndarray
    num_tables: int
    hot_rows: int
    indices: np.ndarray
    lengths: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def offsets(self) -> np.ndarray:
        """Where each bag begins, and the end of the last one: int64 [n * T + 1]."""
        if self.lengths is None:
            return np.arange(len(self.indices) + 1)
        ends = np.cumsum(self.lengths.reshape(-1), dtype=np.int64)
        return np.concatenate([np.zeros(1, np.int64), ends])

    @property
    def gathered(self) -> np.ndarray:
        """Which indices point to gathered rows: bool [k]."""
        return self.indices >= self.hot_rows

    def by_table(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each table its indices, int64, and where its bags begin, int64 [n] (as in DLRM)."""
        count = len(self)
        if self.lengths is None:
            columns = np.ascontiguousarray(self.indices.reshape(count, self.num_tables).T)
            begins = np.arange(count)
            return [(column, begins) for column in columns]
        wanted = self.lengths.T.astype(np.int64)
        ordered = self.indices[bag_positions(self.lengths, wanted)]
        parts = np.split(ordered, np.cumsum(wanted.sum(axis=1))[:-1])
        begins = np.cumsum(wanted, axis=1) - wanted
        return list(zip(parts, begins, strict=True))


@dataclass(frozen=True)
class Split:
    """What SPLIT has written (spec section 7); the arrays are copies.

    Parameters
    ----------
    popular, nonpopular : np.ndarray
        Sample numbers, uint32.
    popular_slots : np.ndarray
        Slot of each key of the popular samples, uint32.
    nonpopular_slots : np.ndarray
        For each key of the others: its slot, or 0x8000_0000 + g; uint32.
    keys : np.ndarray
        (table << 32) + row for each row g, uint64.
    completion : Completion
        The record.
    samples : Samples
        What was split.
    hot_rows : int
        Slots of the hot table.
    """

    popular: np.ndarray
    nonpopular: np.ndarray
    popular_slots: np.ndarray
    nonpopular_slots: np.ndarray
    keys: np.ndarray
    completion: Completion
    samples: Samples
    hot_rows: int

    @classmethod
    def read(cls, samples: Samples, lists: Buffer, done: Completion, hot_rows: int) -> Split:
        """Copy the five regions out of `lists`."""
        regions = Regions.of(0, samples.count, samples.num_keys)
        popular, nonpopular, entries = done.words[:3]

        def words(start: int, count: int, dtype: type = np.uint32) -> np.ndarray:
            size = count * np.dtype(dtype).itemsize
            return lists.data[start : start + size].view(dtype).copy()

        numbers = words(regions.popular, popular)
        if samples.lengths is None:
            slots = popular * samples.num_tables
        else:
            slots = int(samples.lengths[numbers].sum(dtype=np.int64))
        return cls(
            numbers,
            words(regions.nonpopular, nonpopular),
            words(regions.popular_slots, slots),
            words(regions.nonpopular_slots, samples.num_keys - slots),
            words(regions.keys, entries, np.uint64),
            done,
            samples,
            hot_rows,
        )

    def popular_batch(self) -> MicroBatch:
        """The samples that can start at once."""
        return self._micro_batch(self.popular, self.popular_slots.astype(np.int64))

    def nonpopular_batch(self) -> MicroBatch:
        """The samples that need the gathered rows."""
        entries = self.nonpopular_slots.astype(np.int64)
        gathered = entries >> _GATHERED
        indices = (entries & ((1 << _GATHERED) - 1)) + gathered * self.hot_rows
        return self._micro_batch(self.nonpopular, indices)

    def _micro_batch(self, numbers: np.ndarray, indices: np.ndarray) -> MicroBatch:
        lengths = self.samples.lengths
        bags = None if lengths is None else lengths[numbers]
        return MicroBatch(numbers, self.samples.num_tables, self.hot_rows, indices, bags)
