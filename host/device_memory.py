"""Memory that host and device share: who has which device addresses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotline.golden.memory import Memory

__all__ = ["Buffer", "DeviceMemory"]

_PAGE = 4096
_FIRST_ADDRESS = 0x1_0000
#: Regions of section 7 start at multiples of this.
_ALIGNMENT = 64


@dataclass(frozen=True)
class Buffer:
    """Memory that host and device share: device address, and the bytes as uint8 [n]."""

    address: int
    data: np.ndarray


class DeviceMemory:
    """Gives device addresses to host memory, which the device then uses in place.

    Parameters
    ----------
    memory : Memory
        What the back-end's bus master sees.
    addr_width : int
        Bits of a device address.
    addresses : (int, int), optional
        First address to give, and the one behind the last, both multiples of the page size of
        4096; not 0, which is no address in a descriptor. Default: all from 0x10000 on.
    """

    def __init__(
        self, memory: Memory, addr_width: int, addresses: tuple[int, int] | None = None
    ) -> None:
        self.memory = memory
        self.addr_width = addr_width
        first, end = addresses or (_FIRST_ADDRESS, 1 << addr_width)
        self._free = [(first, end)]
        self._size = end - first
        #: What there is, for a message.
        self._place = f"below 2**{addr_width}" if addresses is None else f"into {self._size} bytes"
        self._mapped: dict[int, np.ndarray] = {}

    def allocate(self, size: int) -> Buffer:
        """`size` zero bytes, page-aligned, readable to the next 64-byte boundary."""
        data = np.zeros(max(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT), np.uint8)
        return Buffer(self.map(data), data)

    def map(self, data: np.ndarray) -> int:
        """Device address, page-aligned, of `data`, which is used in place.

        Raises
        ------
        ValueError
            The array is not contiguous, or the addresses are used up.
        """
        if not data.flags.c_contiguous:
            raise ValueError(
                f"an array that the device uses in place must be C-contiguous, not of strides "
                f"{data.strides} with shape {data.shape}"
            )
        view = data.reshape(-1).view(np.uint8)
        pages = max(1, -(-view.size // _PAGE)) * _PAGE
        fits = (i for i, (start, end) in enumerate(self._free) if start + pages <= end)
        if (place := next(fits, None)) is None:
            used = self._size - sum(end - start for start, end in self._free)
            raise ValueError(
                f"{view.size} bytes do not fit {self._place}, where {used} bytes are in use"
            )
        start, end = self._free[place]
        self.memory.add_region(start, view)
        self._mapped[start] = view
        self._free[place : place + 1] = [(start + pages, end)] if start + pages < end else []
        return start

    def unmap(self, address: int) -> None:
        """Take back what :meth:`map` or :meth:`allocate` gave; the array is the caller's again.

        Raises
        ------
        ValueError
            Nothing was mapped at `address`.
        """
        view = self._mapped.pop(address, None)
        if view is None:
            raise ValueError(f"nothing is mapped at {address:#x}")
        self.memory.regions[:] = [item for item in self.memory.regions if item[1] is not view]
        pages = max(1, -(-view.size // _PAGE)) * _PAGE
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*self._free, (address, address + pages)]):
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        self._free = merged

    def address_of(self, data: np.ndarray) -> int | None:
        """Device address of an array inside mapped memory; None if there is none to be used.

        It must be contiguous, and start at a multiple of 64 bytes, which is what descriptors take.
        """
        if not data.flags.c_contiguous:
            return None
        first = data.ctypes.data
        for address, view in self._mapped.items():
            offset = first - view.ctypes.data
            if offset >= 0 and offset + data.nbytes <= view.size and offset % _ALIGNMENT == 0:
                return address + offset
        return None

    def view(self, address: int, size: int) -> np.ndarray | None:
        """The bytes at a device address, uint8 [size], in place; None if they are not mapped."""
        for base, data in self.memory.regions:
            if base <= address and address + size <= base + data.size:
                return data[address - base : address - base + size]
        return None
