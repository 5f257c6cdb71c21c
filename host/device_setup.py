"""Memory, registers and set-up of a device: all of the driver but its commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from hotline.gen.register_map import COUNTERS, IDENTITY
from hotline.host.backends import Backend
from hotline.host.device_memory import Buffer, DeviceMemory
from hotline.host.register_port import RegisterPort

__all__ = ["DeviceSetup"]


class DeviceSetup:
    """What there is to say to a device before and between commands.

    The registers of tables, hot buffers and windows are locked while commands are in flight.

    Parameters
    ----------
    backend : Backend
        The device.

    Members
    -------
    config : Config
        Of the back-end.
    memory : DeviceMemory
        Who has which device addresses.
    registers : RegisterPort
        Registers by name.

    Raises
    ------
    RuntimeError
        It is another device, or one of another configuration.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.config = backend.config
        self.memory = DeviceMemory(
            backend.memory, self.config.addr_width, getattr(backend, "addresses", None)
        )
        self.registers = RegisterPort(backend)
        found = self.read("ID"), self.read("CONFIG_HASH")
        if found[0] != IDENTITY:
            raise RuntimeError(
                f"this is not a Hotline device: ID is {found[0]:#x}, not {IDENTITY:#x}"
            )
        if found[1] != self.config.config_hash:
            raise RuntimeError(
                f"the device was generated from another configuration: CONFIG_HASH is "
                f"{found[1]:#010x}, not {self.config.config_hash:#010x}"
            )

    def close(self) -> None:
        """Give the device back; what is in flight is lost."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- memory and registers -----------------------------------------------------------------

    def allocate(self, size: int) -> Buffer:
        """`size` zero bytes, page-aligned, readable to the next 64-byte boundary."""
        return self.memory.allocate(size)

    def map(self, data: np.ndarray) -> int:
        """Device address of `data` (contiguous), which is used in place."""
        return self.memory.map(data)

    def unmap(self, address: int) -> None:
        """Take back what :meth:`map` or :meth:`allocate` gave; no command may be using it."""
        self.memory.unmap(address)

    def write(self, name: str, value: int) -> None:
        """Write a register by name.

        Raises
        ------
        RegisterError
            SLVERR: locked while busy, or a value that is not allowed.
        """
        self.registers.write(name, value)

    def write64(self, name: str, value: int) -> None:
        """Write a register pair `name`_LO, `name`_HI."""
        self.registers.write64(name, value)

    def read(self, name: str) -> int:
        """Read a register by name."""
        return self.registers.read(name)

    def counters(self) -> dict[str, int]:
        """A snapshot of the performance counters, by name."""
        self.write("COUNTERS", 1)
        return {name: self.registers.read64(name) for name in COUNTERS}

    # ---- set-up -------------------------------------------------------------------------------

    def set_table(self, table: int, base: int, rows: int, row_bytes: int) -> None:
        """Tell the device where an embedding table lies (bytes, rows, bytes a row)."""
        self.write("TABLE_SELECT", table)
        self.write64("TABLE_BASE", base)
        self.write("TABLE_ROWS", rows)
        self.write("TABLE_ROW_BYTES", row_bytes)

    def use_tables(self, tables: Sequence[np.ndarray]) -> None:
        """Map embedding tables in place, and tell the device: table i is `tables[i]`.

        Parameters
        ----------
        tables : sequence of np.ndarray
            Each [rows, row elements] of any type; a row takes a multiple of 4 bytes, at most
            `max_row_bytes`.
        """
        config = self.config
        if not 1 <= len(tables) <= config.max_tables:
            raise ValueError(
                f"there must be from 1 to {config.max_tables} tables, not {len(tables)}"
            )
        for number, table in enumerate(tables):
            shape, most = np.shape(table), 1 << config.row_bits
            if len(shape) != 2 or not 1 <= shape[0] <= most:
                raise ValueError(
                    f"table {number} must be [rows, elements] with 1 to {most} rows, not "
                    f"{list(shape)}"
                )
            row_bytes = table[:1].nbytes
            if not 4 <= row_bytes <= config.max_row_bytes or row_bytes % 4:
                raise ValueError(
                    f"a row of table {number} must take a multiple of 4 bytes from 4 to "
                    f"{config.max_row_bytes}, not {row_bytes}"
                )
        bases = [self._address(table) for table in tables]
        for number, (base, table) in enumerate(zip(bases, tables, strict=True)):
            self.set_table(number, base, len(table), table[:1].nbytes)

    def set_hot_buffers(self, bases: Sequence[int], stride: int) -> None:
        """Tell the device which GPUs take part: address of slot 0 on each, bytes from slot to slot.

        The tables must be set before: a slot must hold the longest row.
        """
        self.write("GPU_COUNT", len(bases))
        for gpu, base in enumerate(bases):
            self.write("GPU_SELECT", gpu)
            self.write64("HOT_BASE", base)
        self.write("HOT_STRIDE", stride)

    def use_hot_buffers(self, buffers: Sequence[np.ndarray]) -> None:
        """Map the hot buffers of the GPUs in place, and tell the device.

        Parameters
        ----------
        buffers : sequence of np.ndarray
            One for each GPU, all [slots, elements] of the same shape; a slot takes a multiple of
            64 bytes, at least the longest row. The tables must be set before.
        """
        config = self.config
        if not 1 <= len(buffers) <= config.gpus:
            raise ValueError(
                f"there must be from 1 to {config.gpus} hot buffers, not {len(buffers)}"
            )
        for gpu, buffer in enumerate(buffers):
            same = buffer.shape == buffers[0].shape and buffer.dtype == buffers[0].dtype
            if buffer.ndim != 2 or len(buffer) != config.slots or not same:
                raise ValueError(
                    f"hot buffer {gpu} must be [{config.slots} slots, elements], the same for all "
                    f"GPUs, not {buffer.dtype} {list(buffer.shape)}"
                )
        stride = buffers[0][:1].nbytes
        if stride % 64 or not stride:
            raise ValueError(f"a slot must take a multiple of 64 bytes, not {stride}")
        self.set_hot_buffers([self._address(buffer) for buffer in buffers], stride)

    def set_window(self, window: int, first: int, last: int) -> None:
        """Allow accesses to bytes `first` to `last`; window 0..3, `first` > `last` disables it."""
        if not 0 <= window < self.config.windows:
            raise ValueError(f"window must be from 0 to {self.config.windows - 1}, not {window}")
        self.write("WINDOW_SELECT", window)
        self.write64("WINDOW_LO", first)
        self.write64("WINDOW_HI", last)

    def _address(self, array: np.ndarray) -> int:
        """Device address of an array that is mapped already, or is from now on."""
        known = self.memory.address_of(array)
        return self.map(array) if known is None else known
