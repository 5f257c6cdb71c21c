"""RTL and golden model side by side: the same registers, the same commands, the same memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hotline.gen.config import Config
from hotline.golden.accelerator import Result
from hotline.golden.descriptor import Completion, Descriptor
from hotline.host.backends import GoldenBackend, RtlBackend
from hotline.host.device import Backend, CommandError, Device

__all__ = ["Pair", "Table"]

_CYCLES = slice(32, 40)

#: Memory for lists, rows and everything else, so large that a stray write shows.
_SCRATCH = 1 << 21


class Table:
    """An embedding table: number, address, rows, bytes a row."""

    def __init__(self, base: int, rows: int, row_bytes: int) -> None:
        self.base, self.rows, self.row_bytes = base, rows, row_bytes


class _Side:
    """One device with its memory: one region for everything."""

    def __init__(self, backend: Backend, image: np.ndarray) -> None:
        self.device = Device(backend, max_cycles=5_000_000)
        self.memory = image.copy()
        self.base = self.device.map(self.memory)


class Pair:
    """Both devices.

    Every :meth:`execute` runs a descriptor on both, then compares the outcome, all memory and the
    registers that a command may change.

    Parameters
    ----------
    config : Config
        Of both.
    rng : np.random.Generator
        For the contents of memory.
    size : int
        Bytes of memory.
    backend : Backend, optional
        Of the RTL, instead of the in-process one.
    **options
        Of the RTL back-end.
    """

    def __init__(
        self,
        config: Config,
        rng: np.random.Generator,
        size: int = _SCRATCH,
        backend: Backend | None = None,
        **options: object,
    ) -> None:
        image = rng.integers(0, 256, size, np.uint8)
        self.config = config
        self.rtl = _Side(backend or RtlBackend(config, **options), image)
        self.golden = _Side(GoldenBackend(config), image)
        self.base = self.rtl.base
        assert self.base == self.golden.base
        self._next = 0
        self.tables: list[Table] = []

    def close(self) -> None:
        """Free the simulation."""
        self.rtl.device.backend.close()

    # ---- memory -------------------------------------------------------------------------------

    def allocate(self, size: int, align: int = 64, skew: int = 0) -> int:
        """Address of `size` bytes that nobody else has, `skew` bytes past an alignment."""
        start = -(-self._next // align) * align + skew
        self._next = start + size
        assert self._next <= len(self.rtl.memory), "the test needs more memory"
        return self.base + start

    def put(self, address: int, data: np.ndarray) -> None:
        """Store data in both memories."""
        raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        for side in (self.rtl, self.golden):
            side.memory[address - self.base : address - self.base + len(raw)] = raw

    def get(self, address: int, count: int, dtype: type = np.uint32) -> np.ndarray:
        """`count` items that the RTL sees at `address`."""
        start = address - self.base
        size = count * np.dtype(dtype).itemsize
        return self.rtl.memory[start : start + size].view(dtype).copy()

    def release(self, mark: int) -> None:
        """Give memory back: all that was allocated since :attr:`mark` was `mark`."""
        self._next = mark

    @property
    def mark(self) -> int:
        """Where the next allocation will be."""
        return self._next

    # ---- registers ----------------------------------------------------------------------------

    def write(self, name: str, value: int) -> None:
        """Write a register of both."""
        for side in (self.rtl, self.golden):
            side.device.write(name, value)

    def write64(self, name: str, value: int) -> None:
        """Write a pair of registers of both."""
        for side in (self.rtl, self.golden):
            side.device.write64(name, value)

    def set_table(self, number: int, table: Table) -> None:
        """Program a table."""
        for side in (self.rtl, self.golden):
            side.device.set_table(number, table.base, table.rows, table.row_bytes)
        self.tables[number : number + 1] = [table]

    def set_hot_buffers(self, bases: list[int], stride: int) -> None:
        """Program the GPUs."""
        for side in (self.rtl, self.golden):
            side.device.set_hot_buffers(bases, stride)

    def window(self, number: int, first: int, last: int) -> None:
        """Program an address window (bytes, inclusive)."""
        self.write("WINDOW_SELECT", number)
        self.write64("WINDOW_LO", first)
        self.write64("WINDOW_HI", last)

    def add_error(self, first: int, last: int, *, read: bool = True, write: bool = True) -> None:
        """Let bytes first..last answer SLVERR on both buses."""
        self.rtl.device.backend.add_error(first, last, reads=read, writes=write)
        self.golden.device.backend.memory.add_error(first, last, read=read, write=write)

    def clear_errors(self) -> None:
        """No more bus errors."""
        self.rtl.device.backend.clear_errors()
        self.golden.device.backend.memory.clear_errors()

    # ---- commands -----------------------------------------------------------------------------

    def execute(
        self, descriptor: Descriptor, *, same_info: bool = True
    ) -> Completion | CommandError:
        """Run on both; the record, or the error if it failed (then the same on both).

        Parameters
        ----------
        descriptor : Descriptor
            What to run.
        same_info : bool
            The error info must be the same too. Not where the specification leaves open which
            burst it names.
        """
        ours = self._run(self.rtl, descriptor)
        theirs = self._run(self.golden, descriptor)
        result: Result = self.golden.device.backend.history[-1]
        if isinstance(theirs, CommandError) or isinstance(ours, CommandError):
            assert isinstance(ours, CommandError), f"the RTL succeeds, the model fails: {theirs}"
            assert isinstance(theirs, CommandError), f"the model succeeds, the RTL fails: {ours}"
            assert ours.status == theirs.status, (str(ours), str(theirs))
            assert not same_info or ours.info == theirs.info, (str(ours), str(theirs))
        else:
            assert ours == replace(theirs, cycles=ours.cycles), (ours, theirs)
        self.compare(result.undefined, same_info)
        return ours

    def compare(self, undefined: list[tuple[int, int]], same_info: bool = True) -> None:
        """All memory and the status registers are the same."""
        unequal = self.rtl.memory != self.golden.memory
        for address, size in undefined:
            unequal[address - self.base : address - self.base + size] = False
        where = np.flatnonzero(unequal)
        assert not len(where), (
            f"{len(where)} bytes differ, the first at {self.base + where[0]:#x}: "
            f"{self.rtl.memory[where[0]]:#04x} instead of {self.golden.memory[where[0]]:#04x}"
        )
        # What is undefined after a failure must not make the next command differ.
        for address, size in undefined:
            part = slice(address - self.base, address - self.base + size)
            self.golden.memory[part] = self.rtl.memory[part]
        record, model = (side.device.record.data.copy() for side in (self.rtl, self.golden))
        for data in (record, model):
            data[_CYCLES] = 0
            if not same_info:
                data[40:48] = 0
        assert (record == model).all(), (record.view(np.uint32), model.view(np.uint32))
        for name in ("STATUS", "IRQ_STATUS", "RING_HEAD", "RING_TAIL", "ERROR_STATUS"):
            ours, theirs = self.rtl.device.read(name), self.golden.device.read(name)
            assert ours == theirs, f"{name} is {ours:#x} instead of {theirs:#x}"

    def _run(self, side: _Side, descriptor: Descriptor) -> Completion | CommandError:
        try:
            return side.device.execute(replace(descriptor))
        except CommandError as error:
            return error
