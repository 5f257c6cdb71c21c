"""The generated RTL as a device in this process: Verilator, a memory model, and ctypes.

`VerilatorBackend` behaves like a board: registers, an interrupt, and a bus master that works in
place on NumPy arrays. Time passes only inside its methods.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from hotline.gen.config import Config
from hotline.host.verilated_build import build_library

__all__ = ["BusTiming", "ProtocolError", "Statistics", "VerilatorBackend"]

OKAY, SLVERR, DECERR = 0, 2, 3
_STATUS, _BUSY = 0x014, 1
#: Python gets the chance to handle Ctrl-C after so many cycles.
_CHUNK = 500_000


class ProtocolError(RuntimeError):
    """The design broke a rule of AXI4 or of spec section 6, or does not answer."""


class MemoryImage(Protocol):
    """What the bus master sees; `hotline.golden.memory.Memory` is one.

    Members
    -------
    regions : list of (int, numpy.ndarray of uint8)
        Base address and contents, changed in place. Regions may be added between calls.
    """

    regions: list[tuple[int, np.ndarray]]


@dataclass(frozen=True)
class BusTiming:
    """How the memory answers. The defaults are the memory model of spec section 9.

    Parameters
    ----------
    read_latency, write_latency : int or (int, int)
        Cycles from AR to the first R beat, and from the last W beat to B; a pair is a range that
        each burst draws from.
    reorder, interleave : bool
        Bursts of different IDs are answered in any order; their R beats mix.
    ar_pause, r_pause, aw_pause, w_pause, b_pause : float
        Probability, per cycle, of not being ready or not answering.
    read_bandwidth, write_bandwidth : float
        Beats per cycle, above 0 and at most 1.
    seed : int
        Seed of all that is random.
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
    read_bandwidth: float = 1.0
    write_bandwidth: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("read_latency", "write_latency"):
            low, high = _pair(getattr(self, name))
            if not 1 <= low <= high:
                raise ValueError(f"{name} must be at least 1 and ascending, not {low}..{high}")
        for name in ("ar_pause", "r_pause", "aw_pause", "w_pause", "b_pause"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 0 and below 1")
        for name in ("read_bandwidth", "write_bandwidth"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1")

    @staticmethod
    def rough(seed: int) -> BusTiming:
        """Everything that AXI4 allows a memory to do to its master."""
        return BusTiming((1, 80), (1, 40), True, True, 0.3, 0.3, 0.3, 0.3, 0.3, seed=seed)


def _pair(latency: int | tuple[int, int]) -> tuple[int, int]:
    return (latency, latency) if isinstance(latency, int) else latency


@dataclass(frozen=True)
class Statistics:
    """Counts of the bus since the last :meth:`VerilatorBackend.clear_statistics`.

    Stalls are cycles with valid and without ready on AR and W. `most_reads` and `most_writes`
    (bursts in flight) and `outside` (bursts that lay in no region) count from the beginning.
    """

    cycles: int
    read_bursts: int
    read_beats: int
    read_stalls: int
    write_bursts: int
    write_beats: int
    write_stalls: int
    most_reads: int
    most_writes: int
    outside: int


#: Fields of Statistics that begin at zero again.
_COUNTS = (
    "cycles",
    "read_bursts",
    "read_beats",
    "read_stalls",
    "write_bursts",
    "write_beats",
    "write_stalls",
)


# Layouts of the structures in cpp/axi_memory.hpp.
class _Timing(ctypes.Structure):
    _fields_ = (
        ("read_latency", ctypes.c_uint32 * 2),
        ("write_latency", ctypes.c_uint32 * 2),
        ("reorder", ctypes.c_uint32),
        ("interleave", ctypes.c_uint32),
        ("pause", ctypes.c_double * 5),
        ("read_bandwidth", ctypes.c_double),
        ("write_bandwidth", ctypes.c_double),
        ("seed", ctypes.c_uint64),
    )


class _Statistics(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in Statistics.__dataclass_fields__)


class _Region(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("content", ctypes.c_void_p),
    )


class _ErrorRange(ctypes.Structure):
    _fields_ = (
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("response", ctypes.c_uint32),
        ("reads", ctypes.c_uint32),
        ("writes", ctypes.c_uint32),
    )


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    result, i32 = ctypes.POINTER(u32), ctypes.c_int32
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "create": (pointer, (u32, u32, u32, u32, u64, i32)),
        "destroy": (None, (pointer,)),
        "waves": (i32, (pointer, ctypes.c_char_p)),
        "timing": (None, (pointer, ctypes.POINTER(_Timing))),
        "regions": (None, (pointer, ctypes.POINTER(_Region), u64)),
        "errors": (None, (pointer, ctypes.POINTER(_ErrorRange), u64)),
        "reset": (None, (pointer, u32)),
        "run": (i32, (pointer, u64, i32)),
        "poll": (i32, (pointer, u32, u32, u32, u64)),
        "write": (i32, (pointer, u32, u32, u32, result)),
        "read": (i32, (pointer, u32, result, result)),
        "irq": (i32, (pointer,)),
        "bus_idle": (i32, (pointer,)),
        "statistics": (None, (pointer, ctypes.POINTER(_Statistics))),
        "outside": (u64, (pointer, ctypes.POINTER(u64), u64)),
        "failure": (ctypes.c_char_p, (pointer,)),
    }
    for name, (restype, argtypes) in signatures.items():
        function = getattr(library, f"hotline_{name}")
        function.restype, function.argtypes = restype, argtypes
    return library


class VerilatorBackend:
    """The top module `hotline`, simulated, with registers, interrupt and memory.

    Parameters
    ----------
    config : Config
        What the design was generated from.
    memory : MemoryImage
        Regions that the bus master reads and writes in place. A burst elsewhere gets DECERR and
        is recorded in :attr:`outside`.
    timing : BusTiming
        May be changed later through :meth:`set_timing`.
    verilog : str, optional
        Text of a module `hotline` to use instead of the RTL of this package.
    waves : path, optional
        VCD file to write; needs a build of its own, and slows the simulation down.
    cache : path, optional
        Folder of the builds. Default: ``$HOTLINE_CACHE``, else ``hotline`` in the user's cache.
    random_state : bool
        Start with random instead of zero registers and memories, seeded by `timing.seed`.

    Raises
    ------
    RuntimeError
        The tools are missing or the build fails.

    Notes
    -----
    Comes up in reset-released state. Errors of the protocol raise :class:`ProtocolError` from the
    call in which they happen, and from every later one until :meth:`close`.
    """

    def __init__(
        self,
        config: Config,
        memory: MemoryImage,
        *,
        timing: BusTiming | None = None,
        verilog: str | None = None,
        waves: str | Path | None = None,
        cache: str | Path | None = None,
        random_state: bool = False,
    ) -> None:
        self.config = config
        self.memory = memory
        self._handle: int | None = None
        timing = timing or BusTiming()
        path = build_library(config, verilog=verilog, waves=waves is not None, cache=cache)
        self._library = _load(path)
        self._handle = self._library.hotline_create(
            config.data_bytes,
            config.max_burst_beats,
            config.read_outstanding,
            config.write_outstanding,
            timing.seed,
            random_state,
        )
        self._mapped: list[tuple[int, np.ndarray]] = []
        self._errors: list[tuple[int, int, int, bool, bool]] = []
        self._errors_sent: list[tuple[int, int, int, bool, bool]] = []
        self._zero = Statistics(*[0] * len(Statistics.__dataclass_fields__))
        self.set_timing(timing)
        if waves is not None and self._library.hotline_waves(self._handle, str(waves).encode()):
            raise OSError(f"cannot write waves to {waves}")
        self.reset()

    def close(self) -> None:
        """Free the simulation, and finish the waveform file."""
        if self._handle is not None:
            self._library.hotline_destroy(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    # ---- memory and its faults ----------------------------------------------------------------

    def set_timing(self, timing: BusTiming) -> None:
        """Change the behaviour of the memory; bursts in flight keep theirs."""
        self._library.hotline_timing(
            self._live(),
            _Timing(
                _pair(timing.read_latency),
                _pair(timing.write_latency),
                timing.reorder,
                timing.interleave,
                (timing.ar_pause, timing.r_pause, timing.aw_pause, timing.w_pause, timing.b_pause),
                timing.read_bandwidth,
                timing.write_bandwidth,
                timing.seed,
            ),
        )

    def add_error(
        self,
        first: int,
        last: int,
        response: int = SLVERR,
        *,
        reads: bool = True,
        writes: bool = True,
    ) -> None:
        """Answer every burst that touches bytes `first` to `last` with `response`."""
        self._errors.append((first, last, response, reads, writes))

    def clear_errors(self) -> None:
        """Forget the ranges of :meth:`add_error`."""
        self._errors.clear()

    def _map(self) -> int:
        """Hand over what changed in the memory image since the last call; returns the handle."""
        handle = self._live()
        regions = list(self.memory.regions)
        changed = len(regions) != len(self._mapped) or any(
            new[0] != old[0] or new[1] is not old[1]
            for new, old in zip(regions, self._mapped, strict=True)
        )
        if changed:
            self._mapped = regions  # also keeps the arrays alive
            table = (_Region * len(regions))(
                *((base, array.size, array.ctypes.data) for base, array in regions)
            )
            self._library.hotline_regions(handle, table, len(regions))
        own: Iterable[tuple[int, int, bool, bool]] = getattr(self.memory, "error_ranges", ())
        errors = [(first, last, SLVERR, read, write) for first, last, read, write in own]
        errors += self._errors
        if errors != self._errors_sent:
            self._errors_sent = errors
            ranges = (_ErrorRange * len(errors))(*errors)
            self._library.hotline_errors(handle, ranges, len(errors))
        return handle

    def _live(self) -> int:
        if self._handle is None:
            raise ValueError("the back-end has been closed")
        return self._handle

    def _check(self, outcome: int = 0) -> int:
        failure = self._library.hotline_failure(self._handle)
        if outcome < 0 or failure:
            raise ProtocolError(failure.decode())
        return outcome

    # ---- the device ---------------------------------------------------------------------------

    def reset(self, cycles: int = 4) -> None:
        """Hold ``aresetn`` low for some cycles; whatever was in flight on the bus is gone."""
        self._library.hotline_reset(self._map(), cycles)
        self._check()

    def write_register(self, offset: int, value: int, strobe: int = 0xF) -> int:
        """Write a register; returns the AXI response (0 OKAY, 2 SLVERR)."""
        response = ctypes.c_uint32()
        handle = self._map()
        self._check(
            self._library.hotline_write(handle, offset, value, strobe, ctypes.byref(response))
        )
        return response.value

    def read_register(self, offset: int) -> tuple[int, int]:
        """Read a register; returns value and AXI response."""
        value, response = ctypes.c_uint32(), ctypes.c_uint32()
        handle = self._map()
        self._check(
            self._library.hotline_read(handle, offset, ctypes.byref(value), ctypes.byref(response))
        )
        return value.value, response.value

    def run(self, max_cycles: int, until: str = "cycles") -> int:
        """Let time pass; returns the cycles that did.

        Parameters
        ----------
        max_cycles : int
        until : str
            ``"irq"``: until ``irq`` is high. ``"idle"``: until STATUS.busy is 0, looked at every
            64 cycles. ``"cycles"``: for `max_cycles`.

        Raises
        ------
        TimeoutError
            What was waited for did not happen within `max_cycles`.
        ProtocolError
            The design broke a rule of the bus.
        """
        if until not in ("irq", "idle", "cycles"):
            raise ValueError(f"until must be irq, idle or cycles, not {until!r}")
        handle = self._map()
        begin = self.cycle
        while True:
            step = min(_CHUNK, max_cycles - (self.cycle - begin))
            if until == "idle":
                outcome = self._library.hotline_poll(handle, _STATUS, _BUSY, 0, max(0, step))
            else:
                outcome = self._library.hotline_run(handle, max(0, step), until == "irq")
            self._check(outcome)
            passed = self.cycle - begin
            if until != "cycles" and outcome == 0:
                return passed
            if passed >= max_cycles:
                if until == "cycles":
                    return passed
                raise TimeoutError(f"no {until} within {max_cycles} cycles")

    @property
    def irq(self) -> bool:
        """Level of the interrupt."""
        return bool(self._library.hotline_irq(self._live()))

    @property
    def bus_idle(self) -> bool:
        """Whether no burst is in flight."""
        return bool(self._library.hotline_bus_idle(self._live()))

    # ---- observation --------------------------------------------------------------------------

    def _raw_statistics(self) -> Statistics:
        raw = _Statistics()
        self._library.hotline_statistics(self._live(), ctypes.byref(raw))
        return Statistics(*(getattr(raw, name) for name, _ in _Statistics._fields_))

    @property
    def cycle(self) -> int:
        """Clock cycles since the beginning."""
        return self._raw_statistics().cycles

    @property
    def statistics(self) -> Statistics:
        """Bus counts since the last :meth:`clear_statistics`."""
        now, zero = self._raw_statistics(), self._zero
        counts = {name: getattr(now, name) - getattr(zero, name) for name in _COUNTS}
        return replace(now, **counts)

    def clear_statistics(self) -> None:
        """Let the counts of :attr:`statistics` begin at zero."""
        self._zero = self._raw_statistics()

    @property
    def outside(self) -> list[int]:
        """Start addresses of the first 1024 bursts that lay in no region."""
        room = (ctypes.c_uint64 * 1024)()
        count = self._library.hotline_outside(self._live(), room, len(room))
        return list(room[:count])
