"""The command ring from the host's side: many descriptors in flight, each with its record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from hotline.gen.commands import DESCRIPTOR_BYTES, StatusCode
from hotline.golden.descriptor import Completion, Descriptor
from hotline.host.backends import Backend
from hotline.host.device_memory import Buffer, DeviceMemory
from hotline.host.errors import CommandSkippedError, command_error, command_name
from hotline.host.future import Future
from hotline.host.register_port import RegisterPort

__all__ = ["CommandRing"]

T = TypeVar("T")

_IRQ_ALL = 3
_CONTROL_RUN, _CONTROL_RESUME = 1, 4
_STATUS_BUSY, _STATUS_ERROR = 1, 2
#: Reads of a register until what the interrupt has announced must show.
_PATIENCE = 64


class CommandRing:
    """Submits descriptors, and finds out what became of them.

    An error stops the device (spec section 7). The ring then lets the failed future fail, takes
    those commands that need it out, and lets the device go on with the others.

    Parameters
    ----------
    backend : Backend
        The device, idle.
    registers : RegisterPort
        Its registers.
    memory : DeviceMemory
        Its memory.
    log2_entries : int
        Size of the ring, 1..15.
    max_cycles : int
        A command that takes longer is taken for hung.
    poll_cycles : int
        Cycles that may pass in :meth:`poll`.

    Members
    -------
    buffer : Buffer
        The descriptors.
    """

    def __init__(
        self,
        backend: Backend,
        registers: RegisterPort,
        memory: DeviceMemory,
        *,
        log2_entries: int,
        max_cycles: int,
        poll_cycles: int,
    ) -> None:
        if not 1 <= log2_entries <= 15:
            raise ValueError(f"log2_entries must be from 1 to 15, not {log2_entries}")
        self._backend, self._registers, self._memory = backend, registers, memory
        self._max_cycles, self._poll_cycles = max_cycles, poll_cycles
        self._entries = 1 << log2_entries
        size = DESCRIPTOR_BYTES << log2_entries
        both = memory.allocate(2 * size)
        self.buffer = Buffer(both.address, both.data[:size])
        self._records = Buffer(both.address + size, both.data[size:])
        self._free_records = deque(range(self._entries))
        #: In flight, oldest first, with the number of its record or None for one of the caller's.
        self._flying: deque[tuple[Future, int | None]] = deque()
        self._head = self._tail = 0
        self.wait_idle()
        registers.write64("RING_BASE", self.buffer.address)
        registers.write("RING_LOG2", log2_entries)
        registers.write("IRQ_ENABLE", _IRQ_ALL)
        registers.write("CONTROL", _CONTROL_RUN)

    def __len__(self) -> int:
        return len(self._flying)

    def submit(
        self,
        descriptor: Descriptor,
        decode: Callable[[Completion], T],
        needs: Iterable[Future] = (),
    ) -> Future[T]:
        """Queue a descriptor; waits while the ring is full.

        Parameters
        ----------
        descriptor : Descriptor
            If its `completion` is 0, the ring gives it a record of its own.
        decode : callable
            See :class:`~hotline.host.future.Future`.
        needs : iterable of Future
            If one of these fails, the command is not run.
        """
        future = Future(self, replace(descriptor), decode, tuple(needs))
        while len(self._flying) == self._entries - 1:
            self._advance(self._max_cycles, self._flying[0][0])
        if self._skip(future):
            return future
        record = None
        if descriptor.completion == 0:
            record = self._free_records.popleft()
            start = DESCRIPTOR_BYTES * record
            self._records.data[start : start + DESCRIPTOR_BYTES] = 0
            future.descriptor.completion = self._records.address + start
        self._flying.append((future, record))
        self._put(future.descriptor)
        self._registers.write("RING_TAIL", self._tail)
        return future

    def poll(self) -> None:
        """Let a little time pass, and see what has ended."""
        if self._flying and self._backend.wait_irq(self._poll_cycles):
            self._collect()

    def wait(self, future: Future, max_cycles: int | None = None) -> None:
        """Let time pass until `future` is finished.

        Raises
        ------
        TimeoutError
            No command ended within `max_cycles`.
        """
        while not future.finished:
            self._advance(self._max_cycles if max_cycles is None else max_cycles, future)

    def drain(self) -> None:
        """Let time pass until nothing is in flight."""
        while self._flying:
            self.wait(self._flying[-1][0])

    def wait_idle(self) -> None:
        """Wait until STATUS.busy is 0, without interrupts."""
        for _ in range(1_000_000):
            if not self._registers.read("STATUS") & _STATUS_BUSY:
                return
        raise TimeoutError("the device stays busy")

    # ---- inside -------------------------------------------------------------------------------

    def _put(self, descriptor: Descriptor) -> None:
        start = DESCRIPTOR_BYTES * self._tail
        self.buffer.data[start : start + DESCRIPTOR_BYTES] = descriptor.pack()
        self._tail = (self._tail + 1) % self._entries

    def _advance(self, max_cycles: int, awaited: Future) -> None:
        if not self._backend.wait_irq(max_cycles):
            raise TimeoutError(
                f"{command_name(awaited.descriptor.opcode)} did not end in {max_cycles} cycles"
            )
        self._collect()

    def _collect(self) -> None:
        """After an interrupt: finish the futures of all that has ended."""
        registers = self._registers
        # First the interrupt, then the head: what ends in between raises the next interrupt.
        registers.write("IRQ_STATUS", registers.read("IRQ_STATUS"))
        ended = 0
        for _ in range(_PATIENCE):
            if ended := (registers.read("RING_HEAD") - self._head) % self._entries:
                break
        if not ended:
            return
        if ended == len(self._flying):
            self.wait_idle()
        stopped = bool(registers.read("STATUS") & _STATUS_ERROR)
        if not stopped and not self._good(ended - 1):
            # The record and the head come a moment before the error.
            stopped = any(registers.read("STATUS") & _STATUS_ERROR for _ in range(_PATIENCE))
        if stopped:
            ended = (registers.read("RING_HEAD") - self._head) % self._entries
        self._head = (self._head + ended) % self._entries
        for _ in range(ended - stopped):
            future, record = self._flying.popleft()
            future.succeed(self._record(future))
            self._release(record)
        if stopped:
            self._recover()

    def _good(self, position: int) -> bool:
        record = self._record(self._flying[position][0])
        return bool(record.valid) and record.status == StatusCode.OK

    def _record(self, future: Future) -> Completion:
        address = future.descriptor.completion
        data = self._memory.view(address, DESCRIPTOR_BYTES)
        if data is None:
            return Completion(status=StatusCode.OK, opcode=future.descriptor.opcode, valid=0)
        return Completion.unpack(data)

    def _release(self, record: int | None) -> None:
        if record is not None:
            self._free_records.append(record)

    def _skip(self, future: Future) -> bool:
        """Let `future` fail if one that it needs has; whether it does."""
        for need in future.needs:
            if need.failure is not None:
                cause = need.failure
                if isinstance(cause, CommandSkippedError):
                    cause = cause.cause
                opcode, needed = future.descriptor.opcode, need.descriptor.opcode
                future.fail(CommandSkippedError(opcode, needed, cause))
                return True
        return False

    def _recover(self) -> None:
        """The device has stopped at the oldest command in flight: report that, and go on."""
        registers = self._registers
        self.wait_idle()
        registers.write("IRQ_STATUS", _IRQ_ALL)
        future, record = self._flying.popleft()
        status = StatusCode(registers.read("ERROR_STATUS"))
        future.fail(command_error(status, registers.read64("ERROR_INFO"), future.descriptor))
        self._release(record)

        going_on: deque[tuple[Future, int | None]] = deque()
        for item in self._flying:
            if self._skip(item[0]):
                self._release(item[1])
            else:
                going_on.append(item)
        if len(going_on) < len(self._flying):
            # The device may have fetched the next descriptor already, so it is not enough to write
            # others in place: setting the base empties the ring.
            self._flying = going_on
            registers.write64("RING_BASE", self.buffer.address)
            self._head = self._tail = 0
            for item in going_on:
                self._put(item[0].descriptor)
            registers.write("RING_TAIL", self._tail)
        registers.write("CONTROL", _CONTROL_RUN | _CONTROL_RESUME)
