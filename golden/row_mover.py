"""What all commands share that copy rows: `keys` entries, and copying in list order."""

from __future__ import annotations

import numpy as np

from hotline.golden.bus import Fault
from hotline.golden.memory import Memory
from hotline.golden.pool import add_f32

__all__ = ["copy_rows", "dense_rows", "first_fault", "unpack_keys"]


def unpack_keys(words: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(table, row, hot) of entries of a `keys` list, uint32 [n, 2], low word first."""
    table = (words[:, 1] & 0x7FFFFFFF).astype(np.int64)
    return table, words[:, 0].astype(np.int64), words[:, 1] >> 31 != 0


def dense_rows(rows: int, numbers: np.ndarray, stride: int) -> np.ndarray:
    """Addresses of rows by number in the dense buffer at `rows`: uint64 [n]."""
    return np.uint64(rows) + (numbers * stride).astype(np.uint64)


def first_fault(*faults: Fault | None) -> Fault | None:
    """The fault with the lowest position; of equals, the one named first."""
    found = [fault for fault in faults if fault is not None]
    return min(found, key=lambda fault: fault.position) if found else None


def _meets(sources: np.ndarray, targets: np.ndarray, longest: int) -> bool:
    """Whether a target may overlap a source (spans of at most `longest` bytes)."""
    starts = np.sort(sources)
    reach = np.uint64(longest)
    before = np.where(targets > reach, targets - reach, 0)
    low = np.searchsorted(starts, before, side="right")
    return bool((np.searchsorted(starts, targets + reach, side="left") > low).any())


def copy_rows(
    memory: Memory,
    sources: np.ndarray,
    targets: np.ndarray,
    sizes: np.ndarray,
    add: bool = False,
) -> None:
    """Copy rows, or add them to what is there, as if one at a time in order.

    Parameters
    ----------
    memory : Memory
        All spans are mapped.
    sources, targets : uint64 [n]
        Addresses.
    sizes : int64 [n]
        Bytes, multiples of 4.
    add : bool
        f32 addition, every NaN result 0x7FC00000.
    """
    longest = int(sizes.max(initial=0))
    if longest == 0:
        return
    repeated = add and np.unique(targets).size < targets.size
    if repeated or _meets(sources, targets, longest):
        spans = zip(sources.tolist(), targets.tolist(), sizes.tolist(), strict=True)
        for source, target, size in spans:
            row = memory.read(source, size)
            memory.write(target, add_f32(memory.read(target, size), row) if add else row)
        return
    dense = memory.gather(sources, sizes, longest)
    if add:
        dense = add_f32(memory.gather(targets, sizes, longest), dense)
    memory.scatter(targets, sizes, dense)
