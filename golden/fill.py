"""FILL, BACK and COMMIT's FILL: rows between their homes and the GPUs' hot buffers."""

from __future__ import annotations

import numpy as np

from hotline.golden.bus import Bus, Fault
from hotline.golden.gather import HotBuffers
from hotline.golden.row_mover import copy_rows, first_fault
from hotline.golden.tables import Tables

__all__ = ["HotFill"]


class HotFill:
    """Copies hot rows. Rows and slots have been checked before.

    Parameters
    ----------
    bus : Bus
        What is read and written.
    tables : Tables
        Where the rows live.
    buffers : HotBuffers
        Where the slots of each GPU live.
    """

    def __init__(self, bus: Bus, tables: Tables, buffers: HotBuffers) -> None:
        self.bus = bus
        self.tables = tables
        self.buffers = buffers

    def copy(
        self,
        slot: np.ndarray,
        table: np.ndarray,
        row: np.ndarray,
        back: bool = False,
        fault: Fault | None = None,
    ) -> Fault | None:
        """As if one record at a time, unless there is a fault.

        Parameters
        ----------
        slot, table, row : int64 [n]
            The records.
        back : bool
            From GPU 0's slot to the row, instead of from the row to the slot of every GPU.
        fault : Fault, optional
            An error of the list, at position n, that takes part in which fault is the first.
        """
        sizes = self.tables.row_bytes[table]
        homes = self.tables.home(table, row)
        gpus = 1 if back else len(self.buffers.base)
        slots = [self.buffers.address(np.full_like(slot, gpu), slot) for gpu in range(gpus)]
        sources, targets = (slots[0], [homes]) if back else (homes, slots)
        fault = first_fault(
            self.bus.rows(sources, sizes, write=False),
            *[self.bus.rows(target, sizes, write=True) for target in targets],
            fault,
        )
        if fault is None:
            for target in targets:
                copy_rows(self.bus.memory, sources, target, sizes)
        return fault
