"""Bus efficiency as spec section 9 defines it: fewest beats / cycles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotline.gen.config import Config

__all__ = ["Beats", "region_beats", "row_beats"]


@dataclass(frozen=True)
class Beats:
    """Beats that a command cannot do without.

    Parameters
    ----------
    read, write : int
        Beats that the rows and regions touch, on the read and the write data channel.
    """

    read: int = 0
    write: int = 0

    def __add__(self, other: Beats) -> Beats:
        return Beats(self.read + other.read, self.write + other.write)

    @property
    def fewest(self) -> int:
        """The larger of the two: the channels work side by side."""
        return max(self.read, self.write)

    def efficiency(self, cycles: int) -> float:
        """Fewest beats / cycles; `cycles` as words 8-9 of the completion record say."""
        return self.fewest / cycles if cycles else 0.0


def region_beats(config: Config, *sizes: int) -> int:
    """Beats of contiguous regions of `sizes` bytes that begin bus-aligned."""
    return sum(-(-size // config.data_bytes) for size in sizes)


def row_beats(config: Config, addresses: np.ndarray, row_bytes: np.ndarray) -> int:
    """Beats of rows that begin at `addresses` (bytes, uint64 [n]) and have `row_bytes` [n]."""
    offset = (addresses % np.uint64(config.data_bytes)).astype(np.int64)
    return int((-(-(offset + row_bytes) // config.data_bytes)).sum())
