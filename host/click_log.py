"""Click logs as the accelerator takes them: rows by table, sample-major."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotline.gen.config import Config

__all__ = ["ClickLog", "DataError", "number_by_first_appearance"]


class DataError(ValueError):
    """A data file that is missing or not in the format that it should be in."""


@dataclass(frozen=True)
class ClickLog:
    """A click log, its categorical values numbered as rows of embedding tables.

    Parameters
    ----------
    name : str
        Where it comes from, for reports.
    tables : tuple of str
        Names of the T categorical columns.
    table_rows : tuple of int
        Rows of each table.
    indices : np.ndarray
        Rows, uint32, sample-major, tables in order within a sample; shape (sum of lengths,).
    lengths : np.ndarray or None
        Bag lengths, uint16, shape (n, T); None: one index for each table.
    labels : np.ndarray
        Clicks, float32, shape (n,).
    dense : np.ndarray
        Numerical features, float32, shape (n, D); D may be 0. Missing values are NaN.
    """

    name: str
    tables: tuple[str, ...]
    table_rows: tuple[int, ...]
    indices: np.ndarray
    lengths: np.ndarray | None
    labels: np.ndarray
    dense: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_tables(self) -> int:
        """T."""
        return len(self.tables)

    @property
    def offsets(self) -> np.ndarray:
        """Position of each sample's first index, int64, shape (n + 1,)."""
        if self.lengths is None:
            return np.arange(len(self) + 1, dtype=np.int64) * self.num_tables
        ends = np.cumsum(self.lengths.sum(axis=1, dtype=np.int64))
        return np.concatenate([np.zeros(1, np.int64), ends])

    @property
    def key_tables(self) -> np.ndarray:
        """Table of each index, int64, shape of `indices`."""
        tables = np.arange(self.num_tables, dtype=np.int64)
        if self.lengths is None:
            return np.tile(tables, len(self))
        return np.repeat(np.tile(tables, len(self)), self.lengths.ravel())

    def keys(self, row_bits: int) -> np.ndarray:
        """Key of each index, ``(table << row_bits) | row``, uint64 (spec section 4)."""
        tables = self.key_tables.astype(np.uint64)
        return (tables << np.uint64(row_bits)) | self.indices.astype(np.uint64)

    def misfit(self, config: Config) -> str | None:
        """Why a device of this configuration cannot take the log; None if it can."""
        if self.num_tables > config.max_tables:
            return f"the log has {self.num_tables} tables, the device at most {config.max_tables}"
        most, limit = max(self.table_rows), 1 << config.row_bits
        if most > limit:
            return f"a table has {most} rows, the device takes at most {limit}"
        longest, limit = int(np.diff(self.offsets).max(initial=0)), config.max_sample_keys
        if longest > limit:
            return f"a sample has {longest} keys, the device takes at most {limit}"
        return None

    def __getitem__(self, samples: slice) -> ClickLog:
        """A contiguous part of the log; the row numbers stay as they are."""
        start, stop, step = samples.indices(len(self))
        if step != 1:
            raise ValueError(f"the step of a slice of a click log must be 1, not {step}")
        offsets = self.offsets
        return ClickLog(
            self.name,
            self.tables,
            self.table_rows,
            self.indices[offsets[start] : offsets[max(start, stop)]],
            None if self.lengths is None else self.lengths[start:stop],
            self.labels[start:stop],
            self.dense[start:stop],
        )

    @classmethod
    def from_columns(
        cls,
        name: str,
        columns: dict[str, np.ndarray],
        labels: np.ndarray,
        dense: np.ndarray | None = None,
    ) -> ClickLog:
        """One-hot log from columns of values; rows are numbered by first appearance."""
        numbered = [number_by_first_appearance(values) for values in columns.values()]
        if dense is None:
            dense = np.zeros((len(labels), 0), np.float32)
        return cls(
            name,
            tuple(columns),
            tuple(rows for _, rows in numbered),
            np.stack([numbers for numbers, _ in numbered], axis=1).ravel(),
            None,
            labels.astype(np.float32),
            dense,
        )


def number_by_first_appearance(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Row numbers (uint32, shape of `values`) and the number of distinct values.

    An empty value is a value like any other (tracker.md).
    """
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.uint32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.uint32)
    return rank[inverse], len(first)
