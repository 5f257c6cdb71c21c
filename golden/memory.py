"""A memory image: what hangs on the AXI master, as NumPy arrays that are changed in place."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit

__all__ = ["Memory"]


@njit(nogil=True)
def _copy(source, source_at, target, target_at, sizes):  # type: ignore[no-untyped-def]
    for i in range(sizes.shape[0]):
        for byte in range(sizes[i]):
            target[target_at[i] + byte] = source[source_at[i] + byte]


class Memory:
    """Byte-addressed memory made of regions, with ranges that answer errors.

    Parameters
    ----------
    regions : iterable of (base, array)
        Start address and contents, a contiguous uint8 array [bytes] that is used in place.

    Raises
    ------
    ValueError
        A region that is not a contiguous one-dimensional uint8 array, or that overlaps another.
    """

    def __init__(self, regions: Iterable[tuple[int, np.ndarray]] = ()) -> None:
        self.regions: list[tuple[int, np.ndarray]] = []
        self._errors: list[tuple[int, int, bool, bool]] = []
        for base, array in regions:
            self.add_region(base, array)

    def add_region(self, base: int, array: np.ndarray) -> np.ndarray:
        """Map `array` at `base`; returns the array."""
        if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
            raise ValueError("a memory region must be a contiguous one-dimensional uint8 array")
        for other, data in self.regions:
            if base < other + data.size and other < base + array.size:
                raise ValueError(f"the region at {base:#x} overlaps the one at {other:#x}")
        self.regions.append((int(base), array))
        return array

    def allocate(self, base: int, size: int) -> np.ndarray:
        """Map `size` zero bytes at `base`; returns the array."""
        return self.add_region(base, np.zeros(size, np.uint8))

    def add_error(self, first: int, last: int, *, read: bool = True, write: bool = True) -> None:
        """Answer every burst that touches bytes first..last with an error."""
        self._errors.append((first, last, read, write))

    def clear_errors(self) -> None:
        """Forget all error ranges."""
        self._errors.clear()

    @property
    def error_ranges(self) -> list[tuple[int, int, bool, bool]]:
        """The ranges of :meth:`add_error`: (first, last, on reads, on writes)."""
        return list(self._errors)

    def fails(self, first: int, last: int, write: bool) -> bool:
        """Whether an access to bytes first..last touches an error range."""
        return any(
            first <= high and low <= last and (on_write if write else on_read)
            for low, high, on_read, on_write in self._errors
        )

    def mapped(self, addresses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Which of the spans lie wholly in one region: bool [n]. An empty span always does."""
        result = sizes == 0
        for base, array in self.regions:
            if array.size:
                # Unsigned: an address below the base wraps to a huge offset.
                offset = addresses - np.uint64(base)
                room = np.int64(array.size) - np.minimum(offset, np.uint64(array.size)).astype(
                    np.int64
                )
                result |= (offset < np.uint64(array.size)) & (sizes <= room)
        return result

    def covers(self, address: int, size: int) -> bool:
        """Whether all bytes of a span are mapped, in one region or in adjacent ones."""
        while size > 0:
            place = self._place(address)
            if place is None:
                return False
            array, offset = place
            step = array.size - offset
            address, size = address + step, size - step
        return True

    def read(self, address: int, size: int) -> np.ndarray:
        """Copy of `size` bytes: uint8 [size].

        Raises
        ------
        ValueError
            A byte is not mapped.
        """
        result = np.empty(size, np.uint8)
        done = 0
        while done < size:
            array, offset = self._mapped_place(address + done)
            step = min(size - done, array.size - offset)
            result[done : done + step] = array[offset : offset + step]
            done += step
        return result

    def write(self, address: int, data: np.ndarray | bytes) -> None:
        """Write bytes, or the bytes of any contiguous array.

        Raises
        ------
        ValueError
            A byte is not mapped.
        """
        if isinstance(data, np.ndarray):
            source = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        else:
            source = np.frombuffer(data, np.uint8)
        done = 0
        while done < source.size:
            array, offset = self._mapped_place(address + done)
            step = min(source.size - done, array.size - offset)
            array[offset : offset + step] = source[done : done + step]
            done += step

    def gather(self, addresses: np.ndarray, sizes: np.ndarray, stride: int) -> np.ndarray:
        """Copies of spans, side by side.

        Parameters
        ----------
        addresses : uint64 [n]
        sizes : int64 [n]
            Bytes of each span, at most `stride`.
        stride : int
            Bytes from span to span in the result; the rest of each is zero.

        Returns
        -------
        uint8 [n, stride]
        """
        dense = np.zeros(addresses.shape[0] * stride, np.uint8)
        self._transfer(addresses, sizes, dense, stride, write=False)
        return dense.reshape(-1, stride) if stride else dense.reshape(addresses.shape[0], 0)

    def scatter(self, addresses: np.ndarray, sizes: np.ndarray, dense: np.ndarray) -> None:
        """Write the first sizes[i] bytes of dense[i] to addresses[i], in order of i."""
        flat = np.ascontiguousarray(dense).reshape(-1)
        self._transfer(addresses, sizes, flat, dense.shape[1], write=True)

    def _transfer(
        self, addresses: np.ndarray, sizes: np.ndarray, dense: np.ndarray, stride: int, write: bool
    ) -> None:
        todo = sizes > 0
        for base, array in self.regions:
            offset = addresses - np.uint64(base)
            inside = todo & (offset < np.uint64(array.size))
            inside &= offset.astype(np.int64) + sizes <= array.size
            chosen = np.flatnonzero(inside)
            if chosen.size:
                here, there = offset[chosen].astype(np.int64), chosen * stride
                if write:
                    _copy(dense, there, array, here, sizes[chosen])
                else:
                    _copy(array, here, dense, there, sizes[chosen])
                todo &= ~inside
        for i in np.flatnonzero(todo):
            at, size = int(addresses[i]), int(sizes[i])
            if write:
                self.write(at, dense[i * stride : i * stride + size])
            else:
                dense[i * stride : i * stride + size] = self.read(at, size)

    def _place(self, address: int) -> tuple[np.ndarray, int] | None:
        for base, array in self.regions:
            if base <= address < base + array.size:
                return array, address - base
        return None

    def _mapped_place(self, address: int) -> tuple[np.ndarray, int]:
        place = self._place(address)
        if place is None:
            raise ValueError(f"address {address:#x} is not mapped")
        return place
