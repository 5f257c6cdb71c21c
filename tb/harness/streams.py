"""Source, sink and monitor of Amaranth streams on a bench.

The ports are those of a flattened member: ``<prefix>__payload``, ``<prefix>__valid``,
``<prefix>__ready``; an element of a member array has the prefix ``request__0``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from harness.bench import Bench
from harness.layouts import pack, unpack, width

__all__ = ["StreamMonitor", "StreamSink", "StreamSource", "pack", "unpack"]


class _Port:
    """The three signals of a stream. A payload of width 0 has no port."""

    def __init__(self, bench: Bench, prefix: str, shape: Any) -> None:
        self.bench = bench
        self.prefix = prefix
        self.shape = shape
        self.valid = getattr(bench.dut, f"{prefix}__valid")
        self.ready = getattr(bench.dut, f"{prefix}__ready")
        self.payload = getattr(bench.dut, f"{prefix}__payload") if width(shape) else None

    def read_payload(self) -> int:
        return 0 if self.payload is None else int(self.payload.value)

    def write_payload(self, bits: int) -> None:
        if self.payload is not None:
            self.payload.value = bits


class StreamSource(_Port):
    """Drives an input stream from a queue, with random pauses.

    Between items the payload is random: the design must not look at it.

    Parameters
    ----------
    bench : Bench
    prefix : str
    shape : shape-castable
        Layout of the payload.
    pause : float
        Probability, per cycle, of not offering the next item yet.

    Members
    -------
    sent : int
        Items transferred so far.
    """

    def __init__(self, bench: Bench, prefix: str, shape: Any, *, pause: float = 0.0) -> None:
        super().__init__(bench, prefix, shape)
        self.pause = pause
        self.sent = 0
        self._queue: deque[int] = deque()
        self._offered = False
        self._taken = False
        bench.on_drive(self._drive)
        bench.on_sample(self._sample)

    def send(self, *values: Any) -> None:
        """Queue items (nested Python data or raw integers)."""
        self._queue.extend(pack(self.shape, value) for value in values)

    def send_all(self, values: Iterable[Any]) -> None:
        """Queue the items of an iterable."""
        self.send(*values)

    def clear(self) -> None:
        """Forget what has not been sent, e.g. after a reset."""
        self._queue.clear()

    @property
    def idle(self) -> bool:
        """Whether everything has been transferred."""
        return not self._queue

    async def drained(self, limit: int = 100_000) -> None:
        """Wait until everything queued has been transferred."""
        await self.bench.until(lambda: self.idle, f"{self.prefix} drained", limit)

    def _sample(self) -> None:
        self._taken = self._offered and bool(int(self.ready.value))
        if self._taken:
            # Counted already here, so that `drained` returns with the edge that transfers.
            self._queue.popleft()
            self.sent += 1

    def _drive(self) -> None:
        if self.bench.in_reset:
            self._offered = False
        elif self._offered and not self._taken:
            return
        else:
            wait = self.pause > 0 and self.bench.rng.random() < self.pause
            self._offered = bool(self._queue) and not wait
        self._taken = False
        self.valid.value = int(self._offered)
        if self._offered:
            self.write_payload(self._queue[0])
        else:
            size = -(-width(self.shape) // 8)
            noise = int.from_bytes(self.bench.rng.bytes(size), "little") if size else 0
            self.write_payload(noise & ((1 << width(self.shape)) - 1))


class StreamMonitor(_Port):
    """Watches a stream: records transfers and checks that a waiting item holds.

    Members
    -------
    items : deque
        Payloads transferred, unpacked, oldest first.
    times : list of int
        Cycle of every transfer so far.
    """

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        shape: Any,
        *,
        callback: Callable[[Any], None] | None = None,
    ) -> None:
        super().__init__(bench, prefix, shape)
        self.items: deque[Any] = deque()
        self.times: list[int] = []
        self._callback = callback
        self._waiting: int | None = None
        self._waiting_reset = False
        bench.on_sample(self._sample)
        bench.on_drive(self._forget_in_reset)

    def _forget_in_reset(self) -> None:
        if self.bench.in_reset:
            self._waiting = None

    def _sample(self) -> None:
        valid = bool(int(self.valid.value))
        if not valid:
            assert self._waiting is None, f"{self.prefix}: valid fell without a transfer"
            return
        bits = self.read_payload()
        assert self._waiting in (None, bits), f"{self.prefix}: payload changed while waiting"
        if int(self.ready.value):
            self._waiting = None
            item = unpack(self.shape, bits)
            self.times.append(self.bench.cycle)
            if self._callback is None:
                self.items.append(item)
            else:
                self._callback(item)
        else:
            self._waiting = bits


class StreamSink(StreamMonitor):
    """Takes an output stream, with random back-pressure, and checks that items hold.

    Parameters
    ----------
    bench, prefix, shape
        As for :class:`StreamSource`.
    pause : float
        Probability, per cycle, of not being ready.
    callback : callable, optional
        Gets each item; without it they collect in `items`.
    """

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        shape: Any,
        *,
        pause: float = 0.0,
        callback: Callable[[Any], None] | None = None,
    ) -> None:
        super().__init__(bench, prefix, shape, callback=callback)
        self.pause = pause
        bench.on_drive(self._drive)

    def _drive(self) -> None:
        wait = self.pause > 0 and self.bench.rng.random() < self.pause
        self.ready.value = int(not wait and not self.bench.in_reset)

    async def receive(self, count: int, limit: int = 100_000) -> list[Any]:
        """The next `count` items.

        Raises
        ------
        AssertionError
            They did not come within `limit` cycles.
        """
        what = f"{count} items of {self.prefix}"
        await self.bench.until(lambda: len(self.items) >= count, what, limit)
        return [self.items.popleft() for _ in range(count)]
