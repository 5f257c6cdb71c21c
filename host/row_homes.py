"""The two homes of an embedding row, host table and hot buffer, and how rows move between them.

A row lives in its table until it becomes hot. Then the slot in the hot buffer holds the true value,
and the table a stale one, until BACK. The map of slots says which is which; it is the host's
own, made of what COMMIT reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hotline.gen.config import Config
from hotline.golden.descriptor import Completion
from hotline.host.device import Device, table_bases
from hotline.host.exchange import DEVICE_ERRORS, Exchange

__all__ = ["NO_KEY", "Moves", "RowHomes", "pack_keys", "unpack_keys"]

#: In the map: a slot that holds no row. No key is that large: bit 63 is never set in one.
NO_KEY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_SLOT_ALIGNMENT = 64


def pack_keys(tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(table << 32) + row, uint64 [n]."""
    return (tables.astype(np.uint64) << np.uint64(32)) | rows.astype(np.uint64)


def unpack_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tables and rows of keys, both int64 [n]."""
    return (keys >> np.uint64(32)).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


@dataclass(frozen=True)
class Moves:
    """A move of rows between their homes that is half done.

    Parameters
    ----------
    leaving : np.ndarray
        Slots whose rows are back in their tables, int64.
    slots, keys : np.ndarray
        Slots that get a row, int64, and which one, uint64.
    records : np.ndarray
        The same for FILL, uint32 [n, 4].
    back : Completion or None
        Of BACK; None if no row of this rank's left.
    """

    leaving: np.ndarray
    slots: np.ndarray
    keys: np.ndarray
    records: np.ndarray
    back: Completion | None


class RowHomes:
    """Host tables and hot buffer in memory that the device works on in place.

    Parameters
    ----------
    device : Device
        Its tables and hot buffer are set here.
    table_rows : sequence of int
        Rows of each table.
    width : int
        Numbers in a row, weights and optimiser state.
    dtype : np.dtype
        Of these numbers, float32 or float64.
    exchange : Exchange
        The other ranks, whose devices work on the same tables.
    memory : np.ndarray, optional
        Where the tables lie, uint8 [:meth:`memory_bytes`], if other ranks share them.

    Members
    -------
    tables : list of np.ndarray
        A view [rows, width] for each table.
    hot : np.ndarray
        A view [slots, width] of the hot buffer.
    slot_keys : np.ndarray
        The map: key of the row in each slot, or NO_KEY; uint64 [slots].
    row_bytes, slot_stride : int
        Bytes of a row, and from slot to slot.
    records : Buffer
        Room for a record of 16 bytes for every slot.
    """

    def __init__(
        self,
        device: Device,
        table_rows: Sequence[int],
        width: int,
        dtype: np.dtype,
        exchange: Exchange,
        memory: np.ndarray | None = None,
    ) -> None:
        self.device = device
        self.width, self.dtype = width, np.dtype(dtype)
        self.exchange = exchange
        config = device.config
        self.row_bytes = row_bytes = self.check_width(config, width, self.dtype)
        size = self.memory_bytes(table_rows, row_bytes)
        if memory is None:
            memory = np.zeros(size, np.uint8)
        bases = table_bases(table_rows, row_bytes)
        self.memory = memory
        address = device.map(memory)
        self.tables = []
        for table, rows in enumerate(table_rows):
            start = int(bases[table])
            device.set_table(table, address + start, rows, row_bytes)
            part = memory[start : start + rows * row_bytes]
            self.tables.append(part.view(self.dtype).reshape(rows, width))
        self.slot_stride = -(-row_bytes // _SLOT_ALIGNMENT) * _SLOT_ALIGNMENT
        self.hot_buffer = device.allocate(config.slots * self.slot_stride)
        slots = self.hot_buffer.data[: config.slots * self.slot_stride].view(self.dtype)
        self.hot = slots.reshape(config.slots, -1)[:, :width]
        device.set_hot_buffers([self.hot_buffer.address], self.slot_stride)
        self.slot_keys = np.full(config.slots, NO_KEY)
        self.records = device.allocate(16 * config.slots)

    @staticmethod
    def check_width(config: Config, width: int, dtype: np.dtype) -> int:
        """Bytes of a row of `width` numbers.

        Raises
        ------
        ValueError
            A device of this configuration does not take rows of that size.
        """
        row_bytes = width * dtype.itemsize
        if row_bytes > config.max_row_bytes:
            raise ValueError(
                f"a row of {width} numbers, weights and optimiser state, takes {row_bytes} bytes; "
                f"the device takes at most {config.max_row_bytes}"
            )
        return row_bytes

    @staticmethod
    def memory_bytes(table_rows: Sequence[int], row_bytes: int) -> int:
        """Bytes of all tables, one after the other; at least 64."""
        return max(64, int(table_bases(table_rows, row_bytes)[-1]))

    def save(self, records: np.ndarray, *, everything: bool) -> Moves:
        """Bring back (BACK) what leaves its slot, as the first half of a move.

        Parameters
        ----------
        records : np.ndarray
            What COMMIT has written: (slot, table, row, 0), uint32 [n, 4].
        everything : bool
            The hot table was cleared before it learned: whatever was hot goes back.

        Returns
        -------
        Moves
            For :meth:`fill`, which must follow. All rows are back before the first one comes,
            because a key may move between slots.

        Raises
        ------
        CommandError, PeerError
            A command has failed. Map and hot buffer are as they were.
        """
        slots = records[:, 0].astype(np.int64)
        keys = pack_keys(records[:, 1], records[:, 2])
        if everything:
            leaving = np.flatnonzero(self.slot_keys != NO_KEY)
        else:
            # A row that left and came back to its slot while the device learned has not moved.
            moved = self.slot_keys[slots] != keys
            records, slots, keys = records[moved], slots[moved], keys[moved]
            leaving = slots[self.slot_keys[slots] != NO_KEY]
        tables, rows = unpack_keys(self.slot_keys[leaving])
        back = np.zeros((len(leaving), 4), np.uint32)
        back[:, 0], back[:, 1], back[:, 2] = leaving, tables, rows
        mine = back[self.exchange.owned(self.slot_keys[leaving])]
        done = self.exchange.attempt(lambda: self._run(mine, back=True))
        return Moves(leaving, slots, keys, records, done)

    def fill(self, moves: Moves) -> Completion | None:
        """Fetch (FILL) what comes, as the second half of a move; None if nothing does.

        Raises
        ------
        CommandError, PeerError
            A command has failed; then its work has been done here. The map is the new one.
        """
        self.slot_keys[moves.leaving] = NO_KEY
        self.slot_keys[moves.slots] = moves.keys

        def run() -> Completion | None:
            try:
                return self._run(moves.records, back=False)
            except DEVICE_ERRORS:
                tables, rows = unpack_keys(moves.keys)
                for table in np.unique(tables):
                    chosen = tables == table
                    self.hot[moves.slots[chosen]] = self.tables[table][rows[chosen]]
                raise

        return self.exchange.attempt(run)

    def adopt(self, records: np.ndarray) -> None:
        """Make the map anew from COMMIT's records of all valid slots; nothing is moved."""
        self.slot_keys[:] = NO_KEY
        self.slot_keys[records[:, 0]] = pack_keys(records[:, 1], records[:, 2])

    def write(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Write `values` [n, width] to the tables' rows `keys` (each once), without the device."""
        tables, rows = unpack_keys(keys)
        for table in np.unique(tables):
            chosen = tables == table
            self.tables[table][rows[chosen]] = values[chosen]

    def read(self, keys: np.ndarray) -> np.ndarray:
        """True values of rows, from whichever home they are in: copies [n, width]."""
        tables, rows = unpack_keys(keys)
        values = np.empty((len(keys), self.width), self.dtype)
        for table in np.unique(tables):
            chosen = tables == table
            values[chosen] = self.tables[table][rows[chosen]]
        slots = np.argsort(self.slot_keys, kind="stable")
        places = np.searchsorted(self.slot_keys, keys, sorter=slots)
        slots = slots[np.minimum(places, len(slots) - 1)]
        hot = self.slot_keys[slots] == keys
        values[hot] = self.hot[slots[hot]]
        return values

    def current(self) -> list[np.ndarray]:
        """True values of all tables, from both homes: copies [rows, width]."""
        result = [table.copy() for table in self.tables]
        slots = np.flatnonzero(self.slot_keys != NO_KEY)
        tables, rows = unpack_keys(self.slot_keys[slots])
        for table in np.unique(tables):
            chosen = tables == table
            result[table][rows[chosen]] = self.hot[slots[chosen]]
        return result

    def _run(self, records: np.ndarray, *, back: bool) -> Completion | None:
        if len(records) == 0:
            return None
        flat = np.ascontiguousarray(records).reshape(-1).view(np.uint8)
        self.records.data[: len(flat)] = flat
        return self.device.fill(len(records), self.records.address, back=back)
