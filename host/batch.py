"""Mini-batches as trainers have them, brought into the order that the device reads.

The device wants rows sample-major, u32, with u16 bag lengths (spec section 7). Dense NumPy arrays
have that order already and pass without a copy; the others are converted in one vectorised pass,
and `seconds` says how long it took.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["Batch", "bag_positions"]

_MOST_ROWS = 1 << 32
_LONGEST_BAG = (1 << 16) - 1


@dataclass(frozen=True)
class Batch:
    """Samples in the device's order, still in any memory.

    Make one with :meth:`dense`, :meth:`from_dlrm` or :meth:`from_kjt`.

    Parameters
    ----------
    indices : np.ndarray
        Rows, uint32 [num_keys], sample-major, tables in order within a sample.
    num_tables : int
        T.
    lengths : np.ndarray or None
        Bag lengths, uint16 [samples, T]; None for one-hot.
    weights : np.ndarray or None
        Of each index, float32 [num_keys], for POOL.
    copied : bool
        Whether `indices` is a copy of what the caller gave.
    seconds : float
        Time that the conversion took.
    """

    indices: np.ndarray
    num_tables: int
    lengths: np.ndarray | None = None
    weights: np.ndarray | None = None
    copied: bool = False
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """Samples."""
        if self.lengths is not None:
            return len(self.lengths)
        return len(self.indices) // self.num_tables

    @classmethod
    def dense(cls, rows: Any) -> Batch:
        """One-hot samples: an integer array [samples, tables].

        Contiguous u32 and i32 are used in place. The device reports rows that do not exist, so
        they are not looked for here.
        """
        start = time.perf_counter()
        array = np.asarray(rows)
        if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "iu":
            raise ValueError(
                f"a dense batch must be an integer array [samples, tables] with at least one "
                f"table, not {array.dtype} {list(array.shape)}"
            )
        flat = _rows(np.ascontiguousarray(array).reshape(-1))
        copied = array.size > 0 and not np.shares_memory(flat, array)
        return cls(flat, array.shape[1], copied=copied, seconds=time.perf_counter() - start)

    @classmethod
    def from_dlrm(cls, offsets: Sequence[Any], indices: Sequence[Any]) -> Batch:
        """DLRM's layout: for each table an array of offsets [samples] and one of indices.

        Bag n of a table begins at offsets[n]; a last offset that closes the last bag is not given.
        """
        start = time.perf_counter()
        if len(offsets) != len(indices) or not len(offsets):
            raise ValueError(
                f"there must be as many arrays of offsets as of indices, and at least one, not "
                f"{len(offsets)} and {len(indices)}"
            )
        lengths = []
        for table, (begins, rows) in enumerate(zip(offsets, indices, strict=True)):
            starts = np.asarray(begins).astype(np.int64, copy=False)
            sizes = np.diff(starts, append=len(rows))
            if len(starts) and (starts[0] != 0 or sizes.min() < 0):
                raise ValueError(
                    f"the offsets of table {table} must ascend from 0 to its {len(rows)} indices"
                )
            if len(sizes) != len(np.asarray(offsets[0])):
                raise ValueError(
                    f"table {table} has offsets of {len(sizes)} samples, table 0 of "
                    f"{len(np.asarray(offsets[0]))}"
                )
            lengths.append(sizes)
        values = np.concatenate([np.asarray(rows).reshape(-1) for rows in indices])
        return cls._from_key_major(values, np.stack(lengths), None, start)

    @classmethod
    def from_kjt(
        cls, keys: Sequence[str] | int, values: Any, lengths: Any, weights: Any = None
    ) -> Batch:
        """The arrays of a TorchRec KeyedJaggedTensor: everything key-major.

        Parameters
        ----------
        keys : sequence of str, or int
            Names of the features, or how many there are; feature i is table i.
        values : array [sum of lengths]
            Rows: all bags of the first feature, then those of the second one, and so on.
        lengths : array [features * samples]
            Bag lengths in the same order.
        weights : array [sum of lengths], optional
            Of each value.
        """
        start = time.perf_counter()
        tables = keys if isinstance(keys, int) else len(keys)
        sizes = np.asarray(lengths).reshape(-1)
        if tables < 1 or len(sizes) % tables:
            raise ValueError(
                f"lengths must have as many entries for each of {tables} keys, not {len(sizes)} "
                f"in all"
            )
        weights = None if weights is None else np.asarray(weights).reshape(-1)
        return cls._from_key_major(
            np.asarray(values).reshape(-1), sizes.reshape(tables, -1), weights, start
        )

    @classmethod
    def _from_key_major(
        cls, values: np.ndarray, lengths: np.ndarray, weights: np.ndarray | None, start: float
    ) -> Batch:
        """From bags [T, samples], table by table."""
        tables, count = lengths.shape
        if lengths.dtype.kind not in "iu" or (values.dtype.kind not in "iu" and len(values)):
            raise ValueError(
                f"indices and lengths must be integers, not {values.dtype} and {lengths.dtype}"
            )
        shortest, longest = (int(f(lengths, initial=0)) for f in (np.min, np.max))
        if shortest < 0 or longest > _LONGEST_BAG:
            wrong = shortest if shortest < 0 else longest
            raise ValueError(f"the length of a bag must be from 0 to {_LONGEST_BAG}, not {wrong}")
        total = int(lengths.sum(dtype=np.int64))
        for what, given in (("indices", values), ("weights", weights)):
            if given is not None and len(given) != total:
                raise ValueError(
                    f"the lengths add up to {total}, but there are {len(given)} {what}"
                )
        if total == tables * count and (lengths == 1).all():
            flat = values.reshape(tables, count).T.reshape(-1)
            weighed = None if weights is None else weights.reshape(tables, count).T.reshape(-1)
            bags = None
        else:
            order = bag_positions(lengths, lengths.T)
            flat = values[order]
            weighed = None if weights is None else weights[order]
            bags = np.ascontiguousarray(lengths.T, np.uint16)
        batch = cls(_rows(flat), tables, bags, copied=True)
        if weighed is not None:
            batch = replace(batch, weights=np.ascontiguousarray(weighed, np.float32))
        return replace(batch, seconds=time.perf_counter() - start)


def bag_positions(stored: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where the items of bags lie that are wanted in another order.

    Parameters
    ----------
    stored : np.ndarray
        Lengths of the bags as they are stored, integer [a, b], row by row.
    wanted : np.ndarray
        Its transpose [b, a]: the bags are wanted row by row of this.

    Returns
    -------
    np.ndarray
        Position of each wanted item in the stored ones, int64 [sum of lengths].
    """
    sizes = stored.astype(np.int64).reshape(-1)
    begins = np.cumsum(sizes) - sizes
    begins = begins.reshape(stored.shape).T.reshape(-1)
    sizes = wanted.astype(np.int64).reshape(-1)
    targets = np.cumsum(sizes) - sizes
    return np.repeat(begins - targets, sizes) + np.arange(int(sizes.sum()))


def _rows(values: np.ndarray) -> np.ndarray:
    """Row numbers as uint32; 32-bit ones as they are."""
    if values.dtype in (np.uint32, np.int32):
        return values.view(np.uint32)
    if len(values):
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= _MOST_ROWS:
            wrong = low if low < 0 else high
            raise ValueError(f"an index must be from 0 to {_MOST_ROWS - 1}, not {wrong}")
    return values.astype(np.uint32)
