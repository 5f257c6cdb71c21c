"""One line of the bench: a command on some traffic, what it moved, and what limited it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hotline.gen.config import Config
from hotline.host.bench_limits import Limit, Observed, limit_of
from hotline.host.bench_rig import Rig
from hotline.host.efficiency import Beats

__all__ = ["AIMS", "RATE_AIMS", "TABLES", "Line", "Measurement", "Size", "Work", "judge"]

#: Least efficiency by command (spec section 9 and its addenda), on logs, random rows, and of the
#: worst case what the bus can limit; the rest of it is judged by its bound.
AIMS = {
    "SPLIT, 100 % popular": 0.90,
    "SPLIT, 75 % popular": 0.90,
    "SPLIT, 25 % popular": 0.90,
    "SPLIT + GATHER, 75 % popular": 0.90,
    "SPLIT + GATHER, 25 % popular": 0.90,
    "SPLIT + GATHER_HOT, 75 % popular": 0.80,
    "SPLIT + GATHER_HOT, 25 % popular": 0.80,
    "GATHER, 64-byte rows": 0.95,
    "GATHER, 256-byte rows, unaligned": 0.90,
    "SCATTER, 64-byte rows": 0.85,
    "SCATTER ADD, 64-byte rows": 0.80,
    "FILL, 64-byte rows": 0.80,
    "BACK, 64-byte rows": 0.80,
    "SPLIT + POOL, MLPerf bags": 0.50,
    "SPLIT + POOL, MLPerf bags, weighted": 0.50,
    "LEARN": 0.25,
    "SPLIT, all keys one hot key": 0.90,
    "SPLIT, all keys cold": 0.90,
    "SPLIT + GATHER, all keys cold": 0.90,
    "LEARN, all keys cold": 0.25,
}

#: Least rows a cycle of a GATHER of aligned 64-byte rows, by bits of the bus.
RATE_AIMS = {64: 0.105, 512: 0.84}

#: Tables of the contract's mini-batches (spec section 9).
TABLES = 26

#: Cycles that a COMMIT may take besides a cycle for each set: those that any command takes.
_START_UP = 64


@dataclass(frozen=True)
class Size:
    """How much a line does.

    Parameters
    ----------
    samples, rows : int
        Of a mini-batch of :data:`TABLES` tables, and of a GATHER or SCATTER; the contract's by
        default.
    """

    samples: int = 4096
    rows: int = 10_000

    def samples_of(self, tables: int) -> int:
        """Samples of a one-hot mini-batch with as many keys, at least, in so many tables."""
        return -(-self.samples * TABLES // tables)


@dataclass(frozen=True)
class Work:
    """What a command has to do, whoever does it.

    Parameters
    ----------
    beats : Beats
        Fewest beats (spec section 9).
    items, unit : int, str
        How many samples, rows or slots.
    table_cycles : int
        Fewest cycles in which the hot table, and the store of seen keys, can do their part.
    """

    beats: Beats
    items: int
    unit: str
    table_cycles: int = 0


@dataclass(frozen=True)
class Measurement:
    """One line, measured.

    Parameters
    ----------
    command, traffic : str
        Which.
    work : Work
        What had to be done.
    seen : Observed
        What the device did.
    limit : Limit
        What kept it from being faster.
    aim, rate_aim : float or None
        Least efficiency, and least items a cycle, that the contract wants.
    """

    command: str
    traffic: str
    work: Work
    seen: Observed
    limit: Limit
    aim: float | None = None
    rate_aim: float | None = None

    @property
    def efficiency(self) -> float:
        """Fewest beats / cycles."""
        return self.work.beats.efficiency(self.seen.cycles)

    @property
    def bound(self) -> int:
        """Fewest cycles that bus and hot table allow."""
        return max(self.work.beats.fewest, self.work.table_cycles)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        cycles = self.seen.cycles
        return {
            "command": self.command,
            "traffic": self.traffic,
            "read_beats": self.work.beats.read,
            "write_beats": self.work.beats.write,
            "cycles": cycles,
            "efficiency": round(self.efficiency, 5),
            "aim": self.aim,
            "limited_by": self.limit.value,
            "items": self.work.items,
            "unit": self.work.unit,
            "per_cycle": round(self.work.items / cycles, 6),
            "per_cycle_aim": self.rate_aim,
            "bound_cycles": self.bound,
            "of_bound": round(self.bound / cycles, 5),
            "seen": asdict(self.seen),
        }


@dataclass(frozen=True)
class Line:
    """A line to be measured: `run` does it."""

    command: str
    traffic: str
    run: Callable[[], Measurement]


def judge(rig: Rig, command: str, traffic: str, seen: Observed, work: Work) -> Measurement:
    """The line of a command that has been run, with the aims of the contract."""
    config = rig.config
    limit = limit_of(
        config,
        seen,
        read_latency=rig.read_latency,
        write_latency=rig.write_latency,
        table_cycles=work.table_cycles,
    )
    return Measurement(command, traffic, work, seen, limit, *_aims(config, command))


def _aims(config: Config, command: str) -> tuple[float | None, float | None]:
    """Least efficiency, and least items a cycle."""
    aim = AIMS.get("FILL, 64-byte rows" if command.startswith("FILL, ") else command)
    if command == "GATHER, 64-byte rows":
        return aim, RATE_AIMS.get(config.data_width)
    if command == "COMMIT, nothing changed":
        return aim, round(config.ways * config.sets / (config.sets + _START_UP), 3)
    return aim, None
