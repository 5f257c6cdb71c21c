"""The TABLE_* registers as the blocks use them: home addresses, row lengths, stride."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotline.gen.commands import StatusCode
from hotline.gen.config import Config
from hotline.golden.bus import Fault

__all__ = ["Tables"]


@dataclass(frozen=True)
class Tables:
    """All embedding tables.

    Parameters
    ----------
    config : Config
        Gives the bus width for the stride.
    base : uint64 [max_tables]
        Address of row 0.
    rows, row_bytes : int64 [max_tables]
        Number of rows, and bytes of a row (0 until it is set).
    """

    config: Config
    base: np.ndarray
    rows: np.ndarray
    row_bytes: np.ndarray

    def stride(self, num_tables: int) -> int:
        """Bytes from row to row in a dense buffer (spec section 7)."""
        return self.config.row_stride(int(self.row_bytes[:num_tables].max()))

    def home(self, table: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Addresses of rows: uint64 [n]."""
        return self.base[table] + (row * self.row_bytes[table]).astype(np.uint64)

    def first_bad(self, table: np.ndarray, row: np.ndarray, limit: int) -> Fault | None:
        """First (table, row) with table >= limit or row >= TABLE_ROWS."""
        inside = table < limit
        bad = ~inside | (row >= self.rows[np.where(inside, table, 0)])
        if not bad.any():
            return None
        position = int(np.argmax(bad))
        info = (int(table[position]) << 32) + int(row[position])
        return Fault(position, StatusCode.INDEX_RANGE, info)
