"""The fp32 units: IEEE-754 binary32, round to nearest even, subnormals kept, one NaN."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["NAN", "Pool", "add_f32"]

#: Every NaN result (spec section 7).
NAN = 0x7FC00000


def _canonical(values: np.ndarray) -> np.ndarray:
    bits = values.view(np.uint32)
    bits[np.isnan(values)] = NAN
    return values


def add_f32(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sum of two uint8 arrays of little-endian f32, in that form again; shapes kept."""
    with np.errstate(all="ignore"):
        total = np.add(left.view("<f4"), right.view("<f4"), dtype=np.float32)
    return _canonical(total).view(np.uint8)


@njit(nogil=True)
def _accumulate(rows, weights, bags, sums):  # type: ignore[no-untyped-def]
    # No fast-math: the product is rounded before it is added.
    for i in range(rows.shape[0]):
        for word in range(rows.shape[1]):
            sums[bags[i], word] = sums[bags[i], word] + rows[i, word] * weights[i]


class Pool:
    """Weighted sums of rows by bag, in index order."""

    def sums(
        self, rows: np.ndarray, weights: np.ndarray, bags: np.ndarray, count: int
    ) -> np.ndarray:
        """Sum rows into `count` accumulators that start at +0.0.

        Parameters
        ----------
        rows : uint8 [n, bytes]
            Little-endian f32; bytes is a multiple of 4.
        weights : float32 [n]
        bags : int64 [n]
            Accumulator of each row.
        count : int
            Number of accumulators.

        Returns
        -------
        uint8 [count, bytes]
        """
        sums = np.zeros((count, rows.shape[1] // 4), np.float32)
        _accumulate(rows.view("<f4"), weights.astype(np.float32), bags, sums)
        return _canonical(sums).view(np.uint8)
