"""The driver: one code for every back-end that offers registers, memory and the passing of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hotline.gen.commands import DESCRIPTOR_BYTES, Flag, Opcode, StatusCode
from hotline.gen.config import Config
from hotline.gen.register_map import COUNTERS, register_map
from hotline.golden.descriptor import Completion, Descriptor, Regions
from hotline.golden.memory import Memory

__all__ = [
    "Backend",
    "Buffer",
    "CommandError",
    "Device",
    "RegisterError",
    "Samples",
    "Split",
    "table_bases",
]

_PAGE = 4096
_FIRST_ADDRESS = 0x1_0000
_RING_LOG2 = 4
_IRQ_COMPLETION, _IRQ_ERROR = 1, 2
_CONTROL_RUN, _CONTROL_RESUME = 1, 4


class Backend(Protocol):
    """What the driver needs of a device: the golden model, a simulation, or a board.

    `memory` is what the device's AXI master sees. `wait_irq` lets time pass until the interrupt
    line is high and returns whether it is; at most `max_cycles` cycles where there are cycles.
    """

    config: Config
    memory: Memory

    def write_register(self, offset: int, value: int) -> int: ...

    def read_register(self, offset: int) -> tuple[int, int]: ...

    def wait_irq(self, max_cycles: int) -> bool: ...


class RegisterError(RuntimeError):
    """The device has refused a register access."""


class CommandError(RuntimeError):
    """A command has failed.

    Parameters
    ----------
    status : StatusCode
        Why.
    info : int
        Error info (spec section 7).
    opcode : int
        Of the command.
    """

    def __init__(self, status: StatusCode, info: int, opcode: int) -> None:
        self.status, self.info, self.opcode = status, info, opcode
        name = Opcode(opcode).name if opcode in set(Opcode) else f"opcode {opcode:#04x}"
        super().__init__(f"{name} failed with {status.name}, error info {info:#x}")


@dataclass(frozen=True)
class Buffer:
    """Memory that host and device share: device address, and the bytes as uint8 [n]."""

    address: int
    data: np.ndarray


@dataclass(frozen=True)
class Split:
    """What SPLIT has written (spec section 7); the arrays are copies.

    Parameters
    ----------
    popular, nonpopular : np.ndarray
        Sample numbers, uint32.
    popular_slots : np.ndarray
        Slot of each key of the popular samples, uint32.
    nonpopular_slots : np.ndarray
        For each key of the others: its slot, or 0x8000_0000 + g; uint32.
    keys : np.ndarray
        (table << 32) + row for each row g, uint64.
    completion : Completion
        The record.
    """

    popular: np.ndarray
    nonpopular: np.ndarray
    popular_slots: np.ndarray
    nonpopular_slots: np.ndarray
    keys: np.ndarray
    completion: Completion


class Device:
    """A Hotline accelerator behind a back-end.

    Parameters
    ----------
    backend : Backend
        The device. It must have come out of reset.
    max_cycles : int
        A command that takes longer is taken for hung.

    Members
    -------
    config : Config
        Of the back-end.
    ring, record : Buffer
        Where descriptors, and completion records, go.
    """

    def __init__(self, backend: Backend, *, max_cycles: int = 200_000_000) -> None:
        self.backend = backend
        self.config = backend.config
        self.max_cycles = max_cycles
        self._offsets = {register.name: register.offset for register in register_map(self.config)}
        self._next_address = _FIRST_ADDRESS
        self.ring = self.allocate(DESCRIPTOR_BYTES << _RING_LOG2)
        self.record = self.allocate(DESCRIPTOR_BYTES)
        self._tail = 0
        self._wait_idle()
        self.write64("RING_BASE", self.ring.address)
        self.write("RING_LOG2", _RING_LOG2)
        self.write("IRQ_ENABLE", _IRQ_COMPLETION | _IRQ_ERROR)
        self.write("CONTROL", _CONTROL_RUN)

    # ---- memory and registers -----------------------------------------------------------------

    def allocate(self, size: int) -> Buffer:
        """`size` zero bytes, page-aligned, readable to the next 64-byte boundary."""
        data = np.zeros(max(64, -(-size // 64) * 64), np.uint8)
        return Buffer(self.map(data), data)

    def map(self, data: np.ndarray) -> int:
        """Device address of `data` (contiguous), which is used in place."""
        view = data.reshape(-1).view(np.uint8)
        address = self._next_address
        if address + view.size > 1 << self.config.addr_width:
            raise ValueError(
                f"{view.size} bytes do not fit below 2**{self.config.addr_width}, "
                f"where {address} bytes are in use"
            )
        self.backend.memory.add_region(address, view)
        self._next_address += -(-view.size // _PAGE) * _PAGE
        return address

    def write(self, name: str, value: int) -> None:
        """Write a register by name.

        Raises
        ------
        RegisterError
            SLVERR: locked while busy, or a value that is not allowed.
        """
        if self.backend.write_register(self._offsets[name], value):
            raise RegisterError(f"the device refused {value:#x} in {name}")

    def write64(self, name: str, value: int) -> None:
        """Write a register pair `name`_LO, `name`_HI."""
        self.write(f"{name}_LO", value & 0xFFFFFFFF)
        self.write(f"{name}_HI", value >> 32)

    def read(self, name: str) -> int:
        """Read a register by name."""
        value, response = self.backend.read_register(self._offsets[name])
        if response:
            raise RegisterError(f"the device refused a read of {name}")
        return value

    def set_table(self, table: int, base: int, rows: int, row_bytes: int) -> None:
        """Tell the device where an embedding table lies (bytes, rows, bytes a row)."""
        self.write("TABLE_SELECT", table)
        self.write64("TABLE_BASE", base)
        self.write("TABLE_ROWS", rows)
        self.write("TABLE_ROW_BYTES", row_bytes)

    def set_hot_buffers(self, bases: Sequence[int], stride: int) -> None:
        """Tell the device which GPUs take part: address of slot 0 on each, bytes from slot to slot.

        The tables must be set before: a slot must hold the longest row.
        """
        self.write("GPU_COUNT", len(bases))
        for gpu, base in enumerate(bases):
            self.write("GPU_SELECT", gpu)
            self.write64("HOT_BASE", base)
        self.write("HOT_STRIDE", stride)

    def counters(self) -> dict[str, int]:
        """A snapshot of the performance counters, by name."""
        self.write("COUNTERS", 1)
        return {n: self.read(f"{n}_LO") | self.read(f"{n}_HI") << 32 for n in COUNTERS}

    # ---- commands -----------------------------------------------------------------------------

    def execute(self, descriptor: Descriptor) -> Completion:
        """Run one descriptor and wait for its record; `completion` is filled in if it is 0.

        Raises
        ------
        CommandError
            It failed. The device goes on with the next one.
        TimeoutError
            It did not end within `max_cycles`.
        """
        descriptor.completion = descriptor.completion or self.record.address
        self.record.data[:] = 0
        start = self._tail * DESCRIPTOR_BYTES
        self.ring.data[start : start + DESCRIPTOR_BYTES] = descriptor.pack()
        self._tail = (self._tail + 1) % (1 << _RING_LOG2)
        self.write("RING_TAIL", self._tail)
        if not self.backend.wait_irq(self.max_cycles):
            raise TimeoutError(
                f"{Opcode(descriptor.opcode).name} did not end in {self.max_cycles} cycles"
            )
        self.write("IRQ_STATUS", self.read("IRQ_STATUS"))
        # The interrupt of the record may be seen a moment before that of the error, or the head.
        self._wait_idle()
        if self.read("STATUS") & 2:
            self.write("IRQ_STATUS", _IRQ_COMPLETION | _IRQ_ERROR)
            status = StatusCode(self.read("ERROR_STATUS"))
            info = self.read("ERROR_INFO_LO") | self.read("ERROR_INFO_HI") << 32
            self.write("CONTROL", _CONTROL_RUN | _CONTROL_RESUME)
            raise CommandError(status, info, descriptor.opcode)
        return Completion.unpack(self.record.data)

    def learn(self, samples: Samples) -> Completion:
        """LEARN: update the hot table with `samples`."""
        return self.execute(samples.describe(Opcode.LEARN))

    def commit(
        self, records: Buffer, *, everything: bool = False, fill: bool = False
    ) -> tuple[np.ndarray, Completion]:
        """COMMIT: uint32 [n, 4] of (slot, table, row, 0), and the record.

        `records` must have room for 16 bytes a slot of the hot table. `fill`: copy the rows to the
        hot buffers too.
        """
        flags = Flag.COMMIT_ALL * everything | Flag.COMMIT_FILL * fill
        done = self.execute(Descriptor(opcode=Opcode.COMMIT, flags=flags, lists=records.address))
        count = done.words[0]
        return records.data[: 16 * count].view(np.uint32).reshape(-1, 4).copy(), done

    def split(
        self,
        samples: Samples,
        lists: Buffer,
        rows: Buffer | None = None,
        *,
        gather_hot: bool = False,
    ) -> Split:
        """SPLIT, with GATHER into `rows` if they are given. See :meth:`list_bytes`.

        `gather_hot`: with GATHER_HOT too, for which there must be hot buffers.
        """
        descriptor = samples.describe(Opcode.SPLIT)
        descriptor.lists = lists.address
        if rows is not None:
            descriptor.flags = Flag.SPLIT_GATHER | Flag.SPLIT_GATHER_HOT * gather_hot
            descriptor.rows = rows.address
        done = self.execute(descriptor)
        regions = Regions.of(0, samples.count, samples.num_keys)
        popular, nonpopular, entries = done.words[:3]
        slots = self._slot_counts(samples, lists, popular)

        def words(start: int, count: int, dtype: type = np.uint32) -> np.ndarray:
            size = count * np.dtype(dtype).itemsize
            return lists.data[start : start + size].view(dtype).copy()

        return Split(
            words(regions.popular, popular),
            words(regions.nonpopular, nonpopular),
            words(regions.popular_slots, slots),
            words(regions.nonpopular_slots, samples.num_keys - slots),
            words(regions.keys, entries, np.uint64),
            done,
        )

    def gather_last(self, num_tables: int, rows: Buffer) -> Completion:
        """GATHER LAST: fetch the rows that the last SPLIT needs."""
        return self.execute(
            Descriptor(
                opcode=Opcode.GATHER,
                flags=int(Flag.GATHER_LAST),
                num_tables=num_tables,
                rows=rows.address,
            )
        )

    def scatter(
        self, count: int, num_tables: int, keys: int, rows: Buffer, *, add: bool = False
    ) -> Completion:
        """SCATTER: write back `count` rows, or add them; `keys` is the address of their list."""
        return self.execute(
            Descriptor(
                opcode=Opcode.SCATTER,
                flags=Flag.SCATTER_ADD * add,
                count=count,
                num_tables=num_tables,
                lists=keys,
                rows=rows.address,
            )
        )

    def fill(self, count: int, records: int, *, back: bool = False) -> Completion:
        """FILL: copy the rows of `count` records at address `records` to the hot buffers.

        `back`: from the hot buffer of GPU 0 to the tables instead.
        """
        flags = Flag.FILL_BACK * back
        return self.execute(Descriptor(opcode=Opcode.FILL, flags=flags, count=count, lists=records))

    def load(self, count: int, keys: int) -> Completion:
        """LOAD: insert `count` u64 keys of an offline profile, at address `keys`."""
        return self.execute(Descriptor(opcode=Opcode.LOAD, count=count, lists=keys))

    def clear(self) -> Completion:
        """CLEAR: empty the hot table."""
        return self.execute(Descriptor(opcode=Opcode.CLEAR))

    def age(self) -> Completion:
        """AGE: make all hot rows a little colder."""
        return self.execute(Descriptor(opcode=Opcode.AGE))

    @staticmethod
    def list_bytes(count: int, num_keys: int) -> int:
        """Bytes that the lists of a SPLIT may take."""
        return Regions.of(0, count, num_keys).end

    def _slot_counts(self, samples: Samples, lists: Buffer, popular: int) -> int:
        """Entries of `popular_slots`: the keys of the popular samples."""
        numbers = lists.data[: 4 * popular].view(np.uint32)
        if samples.lengths is None:
            return popular * samples.num_tables
        return int(samples.lengths[numbers].sum())

    def _wait_idle(self) -> None:
        for _ in range(1_000_000):
            if not self.read("STATUS") & 1:
                return
        raise TimeoutError("the device stays busy")


@dataclass(frozen=True)
class Samples:
    """Samples in device memory, as LEARN and SPLIT take them.

    Parameters
    ----------
    count, num_tables, num_keys : int
        Samples, tables, indices in all.
    indices : int
        Address of the indices.
    lengths_address : int
        Address of the bag lengths, 0 for one-hot.
    lengths : np.ndarray or None
        The bag lengths, uint16 [count, num_tables].
    """

    count: int
    num_tables: int
    num_keys: int
    indices: int
    lengths_address: int = 0
    lengths: np.ndarray | None = None

    @classmethod
    def place(
        cls,
        indices: np.ndarray,
        num_tables: int,
        lengths: np.ndarray | None,
        index_buffer: Buffer,
        length_buffer: Buffer,
    ) -> Samples:
        """Copy samples into device buffers that are large enough.

        Parameters
        ----------
        indices : np.ndarray
            Rows, uint32 [num_keys], sample-major.
        num_tables : int
            Tables.
        lengths : np.ndarray or None
            Bag lengths, uint16 [count, num_tables]; None for one-hot.
        index_buffer, length_buffer : Buffer
            Where to.
        """
        index_buffer.data[: 4 * len(indices)] = np.ascontiguousarray(indices).view(np.uint8)
        if lengths is None:
            count = len(indices) // num_tables
            return cls(count, num_tables, len(indices), index_buffer.address)
        bags = np.ascontiguousarray(lengths).reshape(-1).view(np.uint8)
        length_buffer.data[: len(bags)] = bags
        return cls(
            len(lengths),
            num_tables,
            len(indices),
            index_buffer.address,
            length_buffer.address,
            lengths,
        )

    def describe(self, opcode: Opcode) -> Descriptor:
        """A descriptor for these samples."""
        return Descriptor(
            opcode=opcode,
            count=self.count,
            num_tables=self.num_tables,
            num_keys=self.num_keys,
            indices=self.indices,
            lengths=self.lengths_address,
        )


def table_bases(row_counts: Sequence[int], row_bytes: int) -> np.ndarray:
    """Offsets of tables laid out one after the other, 64-byte aligned: int64 [T + 1]."""
    sizes = -(-np.asarray(row_counts, np.int64) * row_bytes // 64) * 64
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
