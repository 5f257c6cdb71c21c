"""Random tables in a small memory, for the benches of the row mover and the gather DMA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hotline.gen.config import Config
from hotline.rtl.interfaces import HotField, TableField

__all__ = ["SIZE", "RowTables"]

#: Bytes of the memory: the tables below the middle, above it the dense buffer, and in the last
#: quarter the hot buffers.
SIZE = 1 << 20

_HOT = SIZE * 3 // 4


class RowTables:
    """Tables of random shape at the very end of the address space, so that all address bits count.

    Parameters
    ----------
    config : Config
    rng : numpy.random.Generator
    row_bytes : sequence of int, optional
        Row length by table; default: random.
    aligned : bool
        Bases are multiples of 4 KiB; else only of 4 bytes.

    Members
    -------
    origin : int
        Address of `content[0]`.
    content : numpy.ndarray of uint8, [SIZE]
    base, rows, row_bytes : list of int
        What the TABLE_* registers hold, for all `max_tables`.
    hot_base : list of int
        HOT_BASE of each GPU: only some slots, `slots`, lie in the memory.
    hot_stride : int
        HOT_STRIDE.
    slots : range
        Those slots, the same on all GPUs.
    """

    def __init__(
        self,
        config: Config,
        rng: np.random.Generator,
        row_bytes: Sequence[int] | None = None,
        *,
        aligned: bool = False,
    ) -> None:
        self.config = config
        self.origin = (1 << config.addr_width) - SIZE
        self.content = rng.integers(0, 256, SIZE, dtype=np.uint8)
        count = config.max_tables
        if row_bytes is None:
            row_bytes = [4 * int(n) for n in rng.integers(1, config.max_row_bytes // 4 + 1, count)]
        self.row_bytes = [row_bytes[i % len(row_bytes)] for i in range(count)]
        share = (SIZE // 2 // count) & ~4095
        most = min(1 << config.row_bits, 5000)
        self.rows, self.base = [], []
        for number, size in enumerate(self.row_bytes):
            skew = 0 if aligned else 4 * int(rng.integers(64))
            self.base.append(self.origin + number * share + skew)
            self.rows.append(int(min((share - 256) // size, most)))
        self.hot_stride = -(-max(self.row_bytes) // 64) * 64 + 64 * int(rng.integers(3))
        room = (SIZE - _HOT) // config.gpus
        first = int(rng.integers(config.slots))
        self.slots = range(first, min(config.slots, first + room // self.hot_stride))
        self.hot_base = [
            self.origin + _HOT + gpu * room - first * self.hot_stride for gpu in range(config.gpus)
        ]

    def writes(self) -> Iterator[dict[str, int]]:
        """The register writes that describe the tables."""
        for table in range(self.config.max_tables):
            yield from (
                {"table": table, "field": field.value, "value": value}
                for field, value in (
                    (TableField.BASE_LO, self.base[table] & 0xFFFF_FFFF),
                    (TableField.BASE_HI, self.base[table] >> 32),
                    (TableField.ROWS, self.rows[table]),
                    (TableField.ROW_BYTES, self.row_bytes[table]),
                )
            )

    def hot_writes(self) -> Iterator[dict[str, int]]:
        """The register writes that describe the hot buffers."""
        yield {"gpu": 0, "field": HotField.STRIDE.value, "value": self.hot_stride}
        for gpu, base in enumerate(self.hot_base):
            yield {"gpu": gpu, "field": HotField.BASE_LO.value, "value": base & 0xFFFF_FFFF}
            yield {"gpu": gpu, "field": HotField.BASE_HI.value, "value": base >> 32}

    def draw(self, rng: np.random.Generator, count: int, tables: int) -> list[tuple[int, int]]:
        """`count` random rows (table, row) of the first `tables` tables; ends of tables often."""
        drawn = []
        for table in rng.integers(0, tables, count):
            rows = self.rows[table]
            row = rng.choice([0, rows - 1, int(rng.integers(rows))], p=[0.05, 0.05, 0.9])
            drawn.append((int(table), int(row)))
        return drawn

    def home(self, table: int, row: int) -> slice:
        """Where a row lies in `content`."""
        at = self.base[table] - self.origin + row * self.row_bytes[table]
        return slice(at, at + self.row_bytes[table])

    def slot(self, gpu: int, slot: int, table: int) -> slice:
        """Where a row of `table` lies in the hot buffer of a GPU."""
        at = self.hot_base[gpu] - self.origin + slot * self.hot_stride
        return slice(at, at + self.row_bytes[table])

    def stride(self, tables: int) -> int:
        """Distance of dense rows when the first `tables` tables are in use."""
        return self.config.row_stride(max(self.row_bytes[:tables]))
