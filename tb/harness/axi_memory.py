"""AXI4 slave memory for cocotb benches: latency, reordering, back-pressure, errors and checks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.axi_port import AxiPort, check_burst
from harness.bench import Bench

__all__ = ["DECERR", "OKAY", "SLVERR", "AxiMemory", "AxiTiming", "ErrorRange"]

OKAY, SLVERR, DECERR = 0, 2, 3


@dataclass(frozen=True)
class AxiTiming:
    """How the memory behaves. The defaults are the memory model of spec section 9.

    Parameters
    ----------
    read_latency, write_latency : int or (int, int)
        Cycles from AR to the first R beat, and from the last W beat to B; a pair is a range from
        which each burst draws.
    reorder : bool
        Bursts of different IDs are answered in random order, those of one ID in order.
    interleave : bool
        R beats of different IDs mix.
    ar_pause, r_pause, aw_pause, w_pause, b_pause : float
        Probability, per cycle, of not being ready or not answering.
    """

    read_latency: int | tuple[int, int] = 200
    write_latency: int | tuple[int, int] = 20
    reorder: bool = False
    interleave: bool = False
    ar_pause: float = 0.0
    r_pause: float = 0.0
    aw_pause: float = 0.0
    w_pause: float = 0.0
    b_pause: float = 0.0

    @staticmethod
    def rough() -> AxiTiming:
        """Everything that AXI allows a memory to do to its master."""
        return AxiTiming((1, 60), (1, 40), True, True, 0.3, 0.3, 0.3, 0.3, 0.3)


@dataclass(frozen=True)
class ErrorRange:
    """Addresses ``first..last`` at which a burst gets `response`."""

    first: int
    last: int
    response: int = SLVERR
    reads: bool = True
    writes: bool = True


@dataclass
class _Burst:
    id: int
    addr: int
    beats: int
    due: int
    response: int
    data: list[int] = field(default_factory=list)
    strobes: list[int] = field(default_factory=list)
    sent: int = 0


class AxiMemory:
    """Memory behind an AXI4 master port.

    Reads see the memory as it is when AR is accepted, writes take effect just before B: the
    harshest order that AXI allows, so a master that does not wait for B reads stale data.

    Parameters
    ----------
    bench : Bench
    prefix : str
        Ports are ``<prefix>araddr`` or ``<prefix>ar__addr``. Absent channels are left out.
    regions : sequence of (int, numpy.ndarray of uint8)
        Base address and content, used in place. Access elsewhere gets DECERR.
    timing : AxiTiming
    errors : sequence of ErrorRange
    max_burst_beats : int
        Longer bursts fail the test.
    max_reads, max_writes : int, optional
        More bursts in flight fail the test.

    Members
    -------
    reads, writes : list of (int, int)
        Address and beats of each burst so far.
    outside : list of int
        Start of each burst that lay in no region.
    read_beats, write_beats, read_stalls, write_stalls : int
        As the counters of spec section 8.
    """

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        regions: Sequence[tuple[int, np.ndarray]],
        *,
        timing: AxiTiming | None = None,
        errors: Sequence[ErrorRange] = (),
        max_burst_beats: int = 256,
        max_reads: int | None = None,
        max_writes: int | None = None,
    ) -> None:
        self.bench = bench
        self.regions = regions
        self.timing = timing or AxiTiming()
        self.errors = list(errors)
        self.reads: list[tuple[int, int]] = []
        self.writes: list[tuple[int, int]] = []
        self.outside: list[int] = []
        self.read_beats = self.write_beats = self.read_stalls = self.write_stalls = 0
        self.max_burst_beats = max_burst_beats
        self.max_reads = max_reads
        self.max_writes = max_writes
        self.most_reads = self.most_writes = 0
        self._port = AxiPort(bench.dut, prefix)
        self.data_bytes = self._port.data_bytes
        self._clear()
        bench.on_sample(self._sample)
        bench.on_drive(self._drive)

    def _clear(self) -> None:
        self._to_read: list[_Burst] = []  # in AR order
        self._addressed: deque[_Burst] = deque()  # AW seen, W incomplete
        self._early: deque[tuple[int, int, int]] = deque()  # W beats ahead of their AW
        self._to_answer: list[_Burst] = []  # in order of the last W beat
        self._r: _Burst | None = None
        self._b: _Burst | None = None
        self._current: _Burst | None = None  # burst whose R beats must not be interrupted
        self._port.forget()

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight."""
        return not (self._to_read or self._addressed or self._early or self._to_answer)

    # ---- memory -------------------------------------------------------------------------------

    def find(self, address: int, size: int) -> np.ndarray | None:
        """The bytes ``address..address+size-1`` as a view, or None if no region has them all."""
        for base, content in self.regions:
            if base <= address and address + size <= base + len(content):
                return content[address - base : address - base + size]
        return None

    def _response(self, burst_address: int, size: int, *, write: bool) -> int:
        for item in self.errors:
            wanted = item.writes if write else item.reads
            if wanted and item.first < burst_address + size and burst_address <= item.last:
                return item.response
        if self.find(burst_address, size) is None:
            self.outside.append(burst_address)
            return DECERR
        return OKAY

    def _draw(self, latency: int | tuple[int, int]) -> int:
        if isinstance(latency, int):
            return latency
        return int(self.bench.rng.integers(latency[0], latency[1] + 1))

    # ---- sampling -----------------------------------------------------------------------------

    def _sample(self) -> None:
        port = self._port
        if port.has_read:
            if request := port.take("ar"):
                self._accept_read(request)
            self.read_stalls += port.stalled("ar")
            if port.sent("r"):
                self._finish_beat()
        if port.has_write:
            if request := port.take("aw"):
                self._accept_write(request)
            if beat := port.take("w"):
                self.write_beats += 1
                self._early.append((beat["data"], beat["strb"], beat["last"]))
            self.write_stalls += port.stalled("w")
            self._match_data()
            if port.sent("b"):
                assert self._b is not None
                self._to_answer.remove(self._b)
                self._b = None

    def _accept_read(self, request: dict[str, int]) -> None:
        check_burst("AR", request, self.data_bytes, self.max_burst_beats)
        beats, addr = request["len"] + 1, request["addr"]
        size = beats * self.data_bytes
        burst = _Burst(request["id"], addr, beats, 0, self._response(addr, size, write=False))
        burst.due = self.bench.cycle + self._draw(self.timing.read_latency)
        view = self.find(addr, size) if burst.response == OKAY else None
        content = self.bench.rng.bytes(size) if view is None else view.tobytes()
        width = self.data_bytes
        burst.data = [
            int.from_bytes(content[at : at + width], "little") for at in range(0, size, width)
        ]
        self._to_read.append(burst)
        self.reads.append((addr, beats))
        self.most_reads = max(self.most_reads, len(self._to_read))
        assert self.max_reads is None or len(self._to_read) <= self.max_reads, (
            f"more than {self.max_reads} reads in flight"
        )

    def _finish_beat(self) -> None:
        assert self._r is not None
        self.read_beats += 1
        self._r.sent += 1
        if self._r.sent == self._r.beats:
            self._to_read.remove(self._r)
            self._current = None
        self._r = None

    def _accept_write(self, request: dict[str, int]) -> None:
        check_burst("AW", request, self.data_bytes, self.max_burst_beats)
        beats, addr = request["len"] + 1, request["addr"]
        response = self._response(addr, beats * self.data_bytes, write=True)
        self._addressed.append(_Burst(request["id"], addr, beats, 0, response))
        self.writes.append((addr, beats))
        flying = len(self._addressed) + len(self._to_answer)
        self.most_writes = max(self.most_writes, flying)
        assert self.max_writes is None or flying <= self.max_writes, (
            f"more than {self.max_writes} writes in flight"
        )

    def _match_data(self) -> None:
        while self._early and self._addressed:
            burst = self._addressed[0]
            data, strobe, last = self._early.popleft()
            burst.data.append(data)
            burst.strobes.append(strobe)
            complete = len(burst.data) == burst.beats
            assert bool(last) == complete, (
                f"WLAST = {last} at beat {len(burst.data)} of {burst.beats}, "
                f"burst at {burst.addr:#x}"
            )
            if complete:
                self._addressed.popleft()
                burst.due = self.bench.cycle + self._draw(self.timing.write_latency)
                self._to_answer.append(burst)

    # ---- driving ------------------------------------------------------------------------------

    def _drive(self) -> None:
        if self.bench.in_reset:
            self._clear()
        timing, port = self.timing, self._port
        if port.has_read:
            port.set_ready("ar", not self._pause(timing.ar_pause))
            if self._r is None and not self._pause(timing.r_pause):
                self._r = self._next_read()
            if self._r is None:
                port.offer("r", None)
            else:
                burst = self._r
                last = burst.sent == burst.beats - 1
                beat = {"id": burst.id, "data": burst.data[burst.sent], "resp": burst.response}
                port.offer("r", beat | {"last": int(last)})
        if port.has_write:
            port.set_ready("aw", not self._pause(timing.aw_pause))
            port.set_ready("w", not self._pause(timing.w_pause))
            if self._b is None and not self._pause(timing.b_pause):
                self._b = self._choose(self._to_answer)
                if self._b is not None and self._b.response == OKAY:
                    self._store(self._b)
            b = self._b
            port.offer("b", None if b is None else {"id": b.id, "resp": b.response})

    def _pause(self, probability: float) -> bool:
        return self.bench.in_reset or (probability > 0 and self.bench.rng.random() < probability)

    def _choose(self, bursts: list[_Burst]) -> _Burst | None:
        """A burst to answer: the first if the order is kept, else the first of any ID."""
        if not self.timing.reorder:
            ready = bursts[:1]
        else:
            seen: dict[int, _Burst] = {}
            for burst in bursts:
                seen.setdefault(burst.id, burst)
            ready = list(seen.values())
        ready = [burst for burst in ready if burst.due <= self.bench.cycle]
        return ready[int(self.bench.rng.integers(len(ready)))] if ready else None

    def _next_read(self) -> _Burst | None:
        if self._current is not None and not self.timing.interleave:
            return self._current
        self._current = self._choose(self._to_read)
        return self._current

    def _store(self, burst: _Burst) -> None:
        view = self.find(burst.addr, burst.beats * self.data_bytes)
        assert view is not None
        for number, (data, strobe) in enumerate(zip(burst.data, burst.strobes, strict=True)):
            content = np.frombuffer(data.to_bytes(self.data_bytes, "little"), np.uint8)
            enabled = [bool(strobe >> byte & 1) for byte in range(self.data_bytes)]
            at = slice(number * self.data_bytes, (number + 1) * self.data_bytes)
            view[at] = np.where(enabled, content, view[at])
