"""Scatter DMA: rows from a dense buffer to their homes, copied or added."""

from __future__ import annotations

import numpy as np

from hotline.golden.bus import Bus, Fault
from hotline.golden.row_mover import copy_rows, dense_rows, first_fault
from hotline.golden.tables import Tables

__all__ = ["ScatterDMA"]


class ScatterDMA:
    """Writes rows back. Rows have been checked against TABLE_ROWS before.

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

    def copy(
        self,
        table: np.ndarray,
        row: np.ndarray,
        numbers: np.ndarray,
        rows: int,
        stride: int,
        add: bool = False,
        fault: Fault | None = None,
    ) -> Fault | None:
        """As if one row at a time in list order, unless there is a fault.

        Parameters
        ----------
        table, row : int64 [n]
            What the rows are.
        numbers : int64 [n]
            Their numbers g in the dense buffer at `rows`, with its `stride` in bytes.
        add : bool
            Add (f32) to what is there.
        fault : Fault, optional
            An error of the list, at position n, that takes part in which fault is the first.
        """
        sizes = self.tables.row_bytes[table]
        sources = dense_rows(rows, numbers, stride)
        homes = self.tables.home(table, row)
        fault = first_fault(
            self.bus.rows(sources, sizes, write=False),
            self.bus.rows(homes, sizes, write=False) if add else None,
            self.bus.rows(homes, sizes, write=True),
            fault,
        )
        if fault is None:
            copy_rows(self.bus.memory, sources, homes, sizes, add)
        return fault
