"""The generated RTL as a device in this process: Verilator, a memory model, and ctypes.

`VerilatorBackend` behaves like a board: registers, an interrupt, and a bus master that works in
place on NumPy arrays. Time passes only inside its methods.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from hotline.gen.config import Config
from hotline.host.bus_timing import BusTiming, Statistics, latency_range
from hotline.host.verilated_build import build_library, wave_file
from hotline.host.verilated_library import (
    CErrorRange,
    CRegion,
    CStatistics,
    CTiming,
    load_library,
)

__all__ = ["BusTiming", "ProtocolError", "Statistics", "VerilatorBackend"]

OKAY, SLVERR, DECERR = 0, 2, 3
_STATUS, _BUSY = 0x014, 1
#: Offset of word 15 of a completion record.
_RECORD_FLAG = 60
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
        Waveform file, ``.fst`` or ``.vcd``, that begins at once; :meth:`stop_waves` and
        :meth:`start_waves` pick parts of a run. Needs a build of its own, and slows the simulation
        down. Where the headers for FST are missing, a VCD file is written: see :attr:`waves`.
    cache : path, optional
        Folder of the builds. Default: ``$HOTLINE_CACHE``, else ``hotline`` in the user's cache.
    random_state : bool
        Start with random instead of zero registers and memories, seeded by `timing.seed`.
    optimise : bool
        False: compile in a third of the time, run at a third of the speed; for netlists.

    Raises
    ------
    RuntimeError
        The tools are missing or the build fails.

    Members
    -------
    waves : Path or None
        The waveform file that is written, or was last.

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
        optimise: bool = True,
    ) -> None:
        self.config = config
        self.memory = memory
        self._handle: int | None = None
        timing = timing or BusTiming()
        self.waves = None if waves is None else wave_file(waves)
        traced = None if self.waves is None else self.waves.suffix[1:]
        path = build_library(config, verilog=verilog, waves=traced, cache=cache, optimise=optimise)
        self._library = load_library(path)
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
        if self.waves is not None:
            self.start_waves(self.waves)
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
            CTiming(
                latency_range(timing.read_latency),
                latency_range(timing.write_latency),
                timing.reorder,
                timing.interleave,
                (timing.ar_pause, timing.r_pause, timing.aw_pause, timing.w_pause, timing.b_pause),
                timing.read_bandwidth,
                timing.write_bandwidth,
                timing.read_outstanding or 0,
                timing.write_outstanding or 0,
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
            table = (CRegion * len(regions))(
                *((base, array.size, array.ctypes.data) for base, array in regions)
            )
            self._library.hotline_regions(handle, table, len(regions))
        own: Iterable[tuple[int, int, bool, bool]] = getattr(self.memory, "error_ranges", ())
        errors = [(first, last, SLVERR, read, write) for first, last, read, write in own]
        errors += self._errors
        if errors != self._errors_sent:
            self._errors_sent = errors
            ranges = (CErrorRange * len(errors))(*errors)
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

    def run(self, max_cycles: int, until: str = "cycles", flag: int | None = None) -> int:
        """Let time pass; returns the cycles that did.

        Parameters
        ----------
        max_cycles : int
        until : str
            ``"irq"``: until ``irq`` is high. ``"idle"``: until STATUS.busy is 0, looked at every
            64 cycles. ``"cycles"``: for `max_cycles`. ``"flag"``: until the 32-bit word at address
            `flag` is not 0, looked at in every cycle without a crossing to Python.
        flag : int, optional
            Device address in a region of :attr:`memory`.

        Raises
        ------
        TimeoutError
            What was waited for did not happen within `max_cycles`.
        ProtocolError
            The design broke a rule of the bus.
        """
        if until not in ("irq", "idle", "cycles", "flag"):
            raise ValueError(f"until must be irq, idle, cycles or flag, not {until!r}")
        handle = self._map()
        word = self._host_address(flag) if until == "flag" else None
        begin = self.cycle
        while True:
            step = max(0, min(_CHUNK, max_cycles - (self.cycle - begin)))
            if until == "idle":
                outcome = self._library.hotline_poll(handle, _STATUS, _BUSY, 0, step)
            else:
                outcome = self._library.hotline_run(handle, step, until == "irq", word)
            self._check(outcome)
            passed = self.cycle - begin
            if until != "cycles" and outcome == 0:
                return passed
            if passed >= max_cycles:
                if until == "cycles":
                    return passed
                raise TimeoutError(f"no {until} within {max_cycles} cycles")

    def run_until_completion(self, record: int, max_cycles: int) -> int:
        """Let time pass until the completion record at address `record` is there.

        Returns the cycles that passed. Word 15 of the record must be 0 before (spec section 7).
        """
        return self.run(max_cycles, "flag", record + _RECORD_FLAG)

    def _host_address(self, address: int | None) -> int:
        for base, array in self.memory.regions:
            if address is not None and base <= address and address + 4 <= base + array.size:
                return array.ctypes.data + address - base
        where = "None" if address is None else f"{address:#x}"
        raise ValueError(f"the flag must lie in a region of the memory, which {where} does not")

    @property
    def irq(self) -> bool:
        """Level of the interrupt."""
        return bool(self._library.hotline_irq(self._live()))

    @property
    def bus_idle(self) -> bool:
        """Whether no burst is in flight."""
        return bool(self._library.hotline_bus_idle(self._live()))

    # ---- waves --------------------------------------------------------------------------------

    def start_waves(self, path: str | Path) -> None:
        """Write waves to `path` from now on, in the format of :attr:`waves`."""
        if self.waves is None:
            raise ValueError("waves need a back-end that was made with the option waves")
        path = Path(path)
        if path.suffix != self.waves.suffix:
            raise ValueError(
                f"the name of the waveform file must end in {self.waves.suffix}, as the option "
                f"waves does, not {path.name!r}"
            )
        if self._library.hotline_waves(self._live(), str(path).encode()):
            raise OSError(f"cannot write waves to {path}")
        self.waves = path

    def stop_waves(self) -> None:
        """Finish the waveform file."""
        self._library.hotline_end_waves(self._live())

    # ---- observation --------------------------------------------------------------------------

    def _raw_statistics(self) -> Statistics:
        raw = CStatistics()
        self._library.hotline_statistics(self._live(), ctypes.byref(raw))
        return Statistics(*(getattr(raw, name) for name, _ in CStatistics._fields_))

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
