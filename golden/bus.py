"""The AXI master as far as results depend on it: bursts, windows, faults and beats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hotline.gen.commands import StatusCode
from hotline.gen.config import Config
from hotline.golden.memory import Memory

__all__ = ["Bus", "Fault", "bursts"]


class Fault(NamedTuple):
    """An error: where in its stream (an index or an offset), its status and its error info."""

    position: int
    status: StatusCode
    info: int


def bursts(config: Config, address: int, size: int, aligned: bool) -> Iterator[tuple[int, int]]:
    """Bursts (start, end) in bytes, bus-aligned, end exclusive.

    The one place that says how the hardware cuts. `aligned`, for contiguous regions: at multiples
    of the largest power of two of beats that a burst may have. Otherwise, for rows and records:
    after the longest burst counted from the first beat, and at 4 KiB boundaries.
    """
    longest = min(config.max_burst_beats * config.data_bytes, 4096)
    step = (1 << longest.bit_length() - 1) if aligned else 4096
    start = address - address % config.data_bytes
    stop = -(-(address + size) // config.data_bytes) * config.data_bytes
    while start < stop:
        end = min(stop, start + longest, (start // step + 1) * step)
        yield start, end
        start = end


class Bus:
    """Checks accesses as the engines do, and counts the fewest beats that they need.

    Nothing is transferred here: callers check first, then use `memory`.

    Parameters
    ----------
    config : Config
        Bus width and burst length.
    memory : Memory
        What answers, with its error ranges. What is not mapped answers an error too.

    Members
    -------
    windows : list of (first, last)
        The address windows, bounds inclusive; first > last means disabled.
    read_beats, write_beats : int
        Bus beats that the checked regions and rows touch, where no fault was found.
    """

    def __init__(self, config: Config, memory: Memory) -> None:
        self.config = config
        self.memory = memory
        self.windows: list[tuple[int, int]] = [(0, (1 << config.addr_width) - 1)]
        self.read_beats = 0
        self.write_beats = 0

    def in_window(self, first: int, last: int) -> bool:
        """Whether bytes first..last lie wholly in one enabled window."""
        return any(low <= first and last <= high for low, high in self.windows)

    def linear(
        self,
        address: int,
        size: int,
        *,
        write: bool,
        limit: int | None = None,
        aligned: bool = True,
    ) -> Fault | None:
        """First fault of a contiguous region; its position is a byte offset.

        Parameters
        ----------
        address, size : int
            The region, in bytes.
        write : bool
            Direction.
        limit : int, optional
            Faults from this byte offset on do not matter.
        aligned : bool
            How it is cut, see :func:`bursts`.
        """
        limit = size if limit is None else limit
        if limit <= 0:
            return None
        if not self._clean(address, address + size, write) or not self.memory.covers(address, size):
            for start, end in bursts(self.config, address, size, aligned):
                if start - address >= limit:
                    break
                fault = self._burst(start, end, address, address + size, write)
                if fault:
                    return Fault(max(0, start - address), *fault)
        self._count(
            int(-(-(address % self.config.data_bytes + size) // self.config.data_bytes)), write
        )
        return None

    def rows(self, addresses: np.ndarray, sizes: np.ndarray, *, write: bool) -> Fault | None:
        """First fault among rows, each of which has bursts of its own; position = row.

        Parameters
        ----------
        addresses : uint64 [n]
        sizes : int64 [n]
            Bytes; a row of 0 bytes is no access.
        write : bool
            Direction.
        """
        used = sizes > 0
        if not used.any():
            return None
        low, high = int(addresses[used].min()), int(addresses[used].max()) + int(sizes.max())
        mapped = self.memory.mapped(addresses, sizes)
        if not (self._clean(low, high, write) and mapped.all()):
            for i in np.flatnonzero(used):
                at, size = int(addresses[i]), int(sizes[i])
                for start, end in bursts(self.config, at, size, False):
                    fault = self._burst(start, end, at, at + size, write)
                    if fault:
                        return Fault(int(i), *fault)
        width = self.config.data_bytes
        first = (addresses % np.uint64(width)).astype(np.int64)
        beats = np.where(used, -(-(first + sizes) // width), 0)
        self._count(int(beats.sum()), write)
        return None

    def _clean(self, low: int, high: int, write: bool) -> bool:
        """Whether nothing between the two addresses, widened to beats, can fail."""
        width = self.config.data_bytes
        first, last = low - low % width, -(-high // width) * width - 1
        return self.in_window(first, last) and not self.memory.fails(first, last, write)

    def _burst(
        self, start: int, end: int, low: int, high: int, write: bool
    ) -> tuple[StatusCode, int] | None:
        if not self.in_window(start, end - 1):
            return StatusCode.ADDR_WINDOW, start
        first, last = max(start, low), min(end, high)
        if self.memory.fails(start, end - 1, write) or not self.memory.covers(first, last - first):
            return (StatusCode.BUS_WRITE if write else StatusCode.BUS_READ), start
        return None

    def _count(self, beats: int, write: bool) -> None:
        if write:
            self.write_beats += beats
        else:
            self.read_beats += beats
