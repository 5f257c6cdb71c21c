"""Gather DMA: rows from their homes, or from the GPUs' hot buffers, to a dense buffer."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hotline.golden.bus import Bus, Fault
from hotline.golden.row_mover import copy_rows, dense_rows, first_fault
from hotline.golden.tables import Tables

__all__ = ["GatherDMA", "HotBuffers"]


class HotBuffers(NamedTuple):
    """Hot buffers of the GPUs that take part: base addresses, uint64 [gpus], and slot stride."""

    base: np.ndarray
    stride: int

    def address(self, gpu: np.ndarray, slot: np.ndarray) -> np.ndarray:
        """Address of each slot on each GPU: uint64 [n]."""
        return self.base[gpu] + (slot * self.stride).astype(np.uint64)


class GatherDMA:
    """Fetches rows. Rows have been checked against TABLE_ROWS before.

    Parameters
    ----------
    bus : Bus
        What is read and written.
    tables : Tables
        Where the rows live.
    """

    def __init__(self, bus: Bus, tables: Tables) -> None:
        self.bus = bus
        self.tables = tables

    def rows(self, table: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Contents of rows, each padded with zeros to the longest: uint8 [n, bytes]."""
        sizes = self.tables.row_bytes[table]
        home = self.tables.home(table, row)
        return self.bus.memory.gather(home, sizes, int(sizes.max(initial=0)))

    def copy(
        self,
        sources: np.ndarray,
        table: np.ndarray,
        numbers: np.ndarray,
        rows: int,
        stride: int,
        fault: Fault | None = None,
    ) -> Fault | None:
        """Copy rows to their places in the dense buffer at `rows`, unless there is a fault.

        Parameters
        ----------
        sources : uint64 [n]
            Where each row is.
        table : int64 [n]
            Its table, for the length.
        numbers : int64 [n]
            Its number g in the dense buffer.
        rows, stride : int
            The dense buffer.
        fault : Fault, optional
            An error of the list, at position n, that takes part in which fault is the first.
        """
        sizes = self.tables.row_bytes[table]
        targets = dense_rows(rows, numbers, stride)
        fault = first_fault(
            self.bus.rows(sources, sizes, write=False),
            self._dense(targets, numbers, sizes, stride),
            fault,
        )
        if fault is None:
            copy_rows(self.bus.memory, sources, targets, sizes)
        return fault

    def _dense(
        self, targets: np.ndarray, numbers: np.ndarray, sizes: np.ndarray, stride: int
    ) -> Fault | None:
        """Writes of the dense buffer: rows that follow each other without a gap share bursts."""
        if not numbers.size:
            return None
        filled = -(-sizes // self.bus.config.data_bytes) * self.bus.config.data_bytes == stride
        joins = filled[:-1] & (np.diff(numbers) == 1)
        starts = np.concatenate([[0], np.flatnonzero(~joins) + 1, [numbers.size]])
        if len(starts) > 2 and self.bus.rows(targets, sizes, write=True) is None:
            return None
        for first, end in pairwise(starts.tolist()):
            size = stride * (end - 1 - first) + int(sizes[end - 1])
            at = int(targets[first])
            fault = self.bus.linear(at, size, write=True, aligned=False)
            if fault is not None:
                return Fault(first + fault.position // max(1, stride), fault.status, fault.info)
        return None
