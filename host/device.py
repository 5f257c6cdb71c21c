"""The driver: one code for every back-end that offers registers, memory and the passing of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar, overload

import numpy as np

from hotline.gen.config import Config
from hotline.golden.descriptor import Completion, Descriptor, Regions
from hotline.host import commands
from hotline.host.backends import Backend, open_backend
from hotline.host.batch import Batch
from hotline.host.command_ring import CommandRing
from hotline.host.commands import Command
from hotline.host.device_memory import Buffer
from hotline.host.device_setup import DeviceSetup
from hotline.host.errors import CommandError, RegisterError
from hotline.host.future import Future
from hotline.host.micro_batch import Split
from hotline.host.samples import Samples

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

T = TypeVar("T")

_RING_LOG2 = 4
_MAX_CYCLES = 200_000_000
_POLL_CYCLES = 1000


class Device(DeviceSetup):
    """A Hotline accelerator behind a back-end.

    Commands are submitted and give futures; the methods of their names submit one and wait. What
    is given to the device stays where it is: device memory is host memory. One thread only.

    Parameters
    ----------
    backend : Backend
        The device. It must have come out of reset.
    max_cycles : int
        A command that takes longer is taken for hung.
    poll_cycles : int
        Cycles that pass in :meth:`Future.done`, where the device is simulated.
    ring_log2 : int
        log2 of the entries of the command ring, 1..15.

    Members
    -------
    ring, record : Buffer
        Where descriptors go, and the records of :meth:`execute`.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        max_cycles: int = _MAX_CYCLES,
        poll_cycles: int = _POLL_CYCLES,
        ring_log2: int = _RING_LOG2,
    ) -> None:
        super().__init__(backend)
        self._ring = CommandRing(
            backend,
            self.registers,
            self.memory,
            log2_entries=ring_log2,
            max_cycles=max_cycles,
            poll_cycles=poll_cycles,
        )
        self.ring = self._ring.buffer
        self.record = self.allocate(64)
        self._scratch: dict[str, Buffer] = {}

    @classmethod
    def open(cls, backend: str, config: Config | str = "ecp5", **options: Any) -> Self:
        """A device on the back-end of this name.

        Parameters
        ----------
        backend : str
            ``"golden"``, ``"verilator"``, ``"cocotb"``; see
            :data:`~hotline.host.backends.BACKENDS`.
        config : Config or str
            A configuration, or the name of a preset.
        **options
            `max_cycles`, `poll_cycles`, `ring_log2`; all others go to the back-end.
        """
        names = ("max_cycles", "poll_cycles", "ring_log2")
        own = {name: options.pop(name) for name in names if name in options}
        return cls(open_backend(backend, config, **options), **own)

    # ---- commands in flight -------------------------------------------------------------------

    @overload
    def submit(self, command: Command[T]) -> Future[T]: ...

    @overload
    def submit(self, command: Descriptor) -> Future[Completion]: ...

    def submit(self, command: Command[Any] | Descriptor) -> Future[Any]:
        """Queue a command and return at once, unless the ring is full.

        Parameters
        ----------
        command : Command or Descriptor
            Of :mod:`hotline.host.commands`. For a plain descriptor the result is its record, and
            if `completion` is 0 it gets one of its own.
        """
        if isinstance(command, Descriptor):
            command = commands.plain(command)
        decode = command.decode
        return self._ring.submit(
            command.descriptor, lambda done: decode(self.config, done), command.needs
        )

    def drain(self) -> None:
        """Wait until nothing is in flight; failures stay with their futures.

        Registers of tables, windows and hot buffers are locked until then.
        """
        self._ring.drain()

    @property
    def in_flight(self) -> int:
        """Commands that are not known to have ended."""
        return len(self._ring)

    @overload
    def execute(self, command: Command[T]) -> T: ...

    @overload
    def execute(self, command: Descriptor) -> Completion: ...

    def execute(self, command: Command[Any] | Descriptor) -> Any:
        """Run one command and wait for it; its record goes to :attr:`record`, if to no other place.

        Raises
        ------
        CommandError
            It failed. The device goes on with the next one.
        TimeoutError
            It did not end within `max_cycles`.
        """
        if isinstance(command, Descriptor):
            command = commands.plain(command)
        self.record.data[:] = 0
        descriptor = command.descriptor
        completion = descriptor.completion or self.record.address
        descriptor = replace(descriptor, completion=completion)
        return self.submit(replace(command, descriptor=descriptor)).result()

    # ---- batches ------------------------------------------------------------------------------

    def place(self, batch: Batch | np.ndarray) -> Samples:
        """Let the device read a batch in place; an array is taken for a dense one.

        Mappings that this needs stay until :meth:`release`.
        """
        if not isinstance(batch, Batch):
            batch = Batch.dense(batch)
        return Samples.in_place(batch, self.memory)

    def release(self, samples: Samples) -> None:
        """Take back what :meth:`place` has mapped; no command may be using it."""
        samples.release(self.memory)

    # ---- one command at a time ----------------------------------------------------------------

    def learn(self, samples: Samples | Batch | np.ndarray) -> Completion:
        """LEARN: update the hot table with `samples`."""
        return self._with(samples, commands.learn)

    def commit(
        self, records: Buffer | None = None, *, everything: bool = False, fill: bool = False
    ) -> tuple[np.ndarray, Completion]:
        """COMMIT: uint32 [n, 4] of (slot, table, row, 0), and the record.

        `records` must have room for 16 bytes a slot of the hot table; by default the driver has
        such a buffer. `everything`: all valid slots. `fill`: copy the rows to the hot buffers too.
        """
        if records is None:
            records = self._buffer("records", 16 * self.config.slots)
        return self.execute(commands.commit(records, everything=everything, fill=fill))

    def split(
        self,
        samples: Samples | Batch | np.ndarray,
        lists: Buffer | None = None,
        rows: Buffer | None = None,
        *,
        gather_hot: bool = False,
        pool: bool = False,
        weights: int = 0,
    ) -> Split:
        """SPLIT, with GATHER into `rows` if they are given. See :meth:`list_bytes`.

        Without `lists` a buffer of the driver is used. `gather_hot`: with GATHER_HOT too, for
        which there must be hot buffers. `pool`: sums of bags instead of rows, `weights` as in
        :func:`hotline.host.commands.split`.
        """

        def command(placed: Samples) -> Command[Split]:
            space = lists or self._buffer("lists", self.list_bytes(placed.count, placed.num_keys))
            return commands.split(
                placed, space, rows, gather_hot=gather_hot, pool=pool, weights=weights
            )

        return self._with(samples, command)

    def gather_last(self, num_tables: int, rows: Buffer) -> Completion:
        """GATHER LAST: fetch the rows that the last SPLIT needs."""
        return self.execute(commands.gather_last(num_tables, rows))

    def gather(self, count: int, num_tables: int, keys: int, rows: Buffer) -> Completion:
        """GATHER: fetch `count` rows; `keys` is the address of their list."""
        return self.execute(commands.gather(count, num_tables, keys, rows))

    def scatter(
        self, count: int, num_tables: int, keys: int, rows: Buffer, *, add: bool = False
    ) -> Completion:
        """SCATTER: write back `count` rows, or add them; `keys` is the address of their list."""
        return self.execute(commands.scatter(count, num_tables, keys, rows, add=add))

    def fill(self, count: int, records: int, *, back: bool = False) -> Completion:
        """FILL: copy the rows of `count` records at address `records` to the hot buffers.

        `back`: from the hot buffer of GPU 0 to the tables instead.
        """
        return self.execute(commands.fill(count, records, back=back))

    def load(self, count: int, keys: int) -> Completion:
        """LOAD: insert `count` u64 keys of an offline profile, at address `keys`."""
        return self.execute(commands.load(count, keys))

    def clear(self) -> Completion:
        """CLEAR: empty the hot table."""
        return self.execute(commands.clear())

    def age(self) -> Completion:
        """AGE: make all hot rows a little colder."""
        return self.execute(commands.age())

    @staticmethod
    def list_bytes(count: int, num_keys: int) -> int:
        """Bytes that the lists of a SPLIT may take."""
        return Regions.of(0, count, num_keys).end

    # ---- inside -------------------------------------------------------------------------------

    def _with(self, samples: Samples | Batch | np.ndarray, command: Any) -> Any:
        """Execute `command` of samples that are placed for it, if they are not yet."""
        if isinstance(samples, Samples):
            return self.execute(command(samples))
        placed = self.place(samples)
        try:
            return self.execute(command(placed))
        finally:
            self.release(placed)

    def _buffer(self, name: str, size: int) -> Buffer:
        """A buffer of the driver's own, of at least `size` bytes."""
        found = self._scratch.get(name)
        if found is None or found.data.size < size:
            if found is not None:
                self.unmap(found.address)
            found = self._scratch[name] = self.allocate(size)
        return found


def table_bases(row_counts: Sequence[int], row_bytes: int) -> np.ndarray:
    """Offsets of tables laid out one after the other, 64-byte aligned: int64 [T + 1]."""
    sizes = -(-np.asarray(row_counts, np.int64) * row_bytes // 64) * 64
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
