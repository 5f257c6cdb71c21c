"""What a build takes of a device and how fast it is: by block, and against a stored baseline."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = [
    "BASELINES",
    "BlockShare",
    "BuildReport",
    "CriticalPath",
    "block_of",
    "build_report",
    "load_baseline",
    "save_baseline",
    "show",
]

#: Where the stored baselines are, one JSON file a build.
BASELINES = Path(__file__).parent / "baselines"

#: What a cell counts as. ``lut`` has what else takes the place of LUTs: a carry cell of the ECP5
#: that of two, a distributed RAM that of six; on the iCE40 a carry belongs to the LUT beside it.
_RESOURCES: dict[str, dict[str, int]] = {
    "lut4": {"LUT4": 1, "SB_LUT4": 1},
    "lut": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6, "SB_LUT4": 1},
    "ff": {"TRELLIS_FF": 1},
    "bram": {"DP16KD": 1, "PDPW16KD": 1, "SB_RAM40_4K": 1},
    "spram": {"SB_SPRAM256KA": 1},
    "dsp": {"MULT18X18D": 1, "ALU54B": 1, "SB_MAC16": 1},
}
_FLIP_FLOP = re.compile(r"SB_DFF\w*")

#: Instances that only hold others: what is in them counts as blocks of its own.
_CONTAINERS = frozenset({"block", "accelerator", "hotline", "top", "datapath"})

_TITLES = {
    "lut4": "LUT4",
    "lut": "LUT, carry, RAM",
    "ff": "FF",
    "bram": "block RAM",
    "spram": "SPRAM",
    "dsp": "DSP",
}


@dataclass(frozen=True)
class BlockShare:
    """What one block takes, by resource, and its share of all ``lut`` from 0 to 1."""

    used: dict[str, int]
    lut_share: float


@dataclass(frozen=True)
class CriticalPath:
    """The slowest path between registers, in nanoseconds.

    Parameters
    ----------
    seed : int
        Of the placement it was found in.
    start, end : str
        Cells.
    logic, routing : float
        Its two parts; logic with clock-to-output and set-up.
    by_block : dict of str to float
        Delay by block, in the order in which the path passes them first; a wire counts for the
        block that it leads to.
    """

    seed: int
    start: str
    end: str
    logic: float
    routing: float
    by_block: dict[str, float]


@dataclass(frozen=True)
class BuildReport:
    """Size and clock of a build.

    Parameters
    ----------
    name : str
        Names the baseline, e.g. ``ecp5-ulx3s-85f``.
    used : dict of str to int
        ``lut4``, ``lut`` (with what carry cells and distributed RAM take), ``ff``, ``bram``,
        ``dsp`` and, where there is one, ``spram``.
    device : dict of str to (int, int)
        Cells of the device used and available, in the words of nextpnr.
    constraint_mhz : float
        Clock that was asked for.
    fmax_mhz : dict of int to float
        Clock by seed.
    blocks : dict of str to BlockShare
        Largest first.
    path : CriticalPath or None
        Of the seed whose clock is the median (of an even number: the lower middle).
    changes : dict of str to float or None
        Against the baseline, in per cent, by the names of :meth:`figures`; None where one of both
        has no such figure. Empty without a baseline.
    """

    name: str
    used: dict[str, int]
    device: dict[str, tuple[int, int]]
    constraint_mhz: float
    fmax_mhz: dict[int, float]
    blocks: dict[str, BlockShare]
    path: CriticalPath | None = None
    changes: dict[str, float | None] = field(default_factory=dict)

    @property
    def median_mhz(self) -> float:
        """Median clock of the seeds."""
        return statistics.median(self.fmax_mhz.values())

    @property
    def range_mhz(self) -> tuple[float, float]:
        """Slowest and fastest seed."""
        return min(self.fmax_mhz.values()), max(self.fmax_mhz.values())

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **asdict(self),
            "fmax_mhz": {str(seed): clock for seed, clock in self.fmax_mhz.items()},
            "fmax_mhz_median": self.median_mhz,
            "fmax_mhz_range": list(self.range_mhz),
        }

    def figures(self) -> dict[str, float]:
        """What a baseline keeps: totals, median clock, LUTs by block."""
        return {
            **self.used,
            "fmax_mhz_median": round(self.median_mhz, 2),
            **{f"lut of {name}": block.used["lut"] for name, block in self.blocks.items()},
        }


def block_of(cell: str) -> str:
    """The block that a cell of a flattened netlist belongs to, by its name.

    A name is the path of instances and, at its end, what yosys called the cell. Cells of logic are
    called after the wires they drive, so logic that serves two blocks counts for one of them.
    """
    *path, _ = cell.split(".")
    for instance in path:
        if instance not in _CONTAINERS:
            return re.sub(r"\$\d+$", "", instance)
    return path[-1] if path else "top"


def build_report(
    name: str,
    netlist: Path,
    reports: Mapping[int, Path],
    baseline: Mapping[str, float] | None = None,
) -> BuildReport:
    """Read what yosys and nextpnr wrote.

    Parameters
    ----------
    name : str
        Of the build.
    netlist : Path
        JSON netlist of yosys, flattened.
    reports : mapping of int to Path
        ``--report`` JSON of nextpnr by seed, at least one.
    baseline : mapping, optional
        From :func:`load_baseline`; fills in :attr:`BuildReport.changes`.

    Raises
    ------
    ValueError
        There is no report, or one does not name a clock.
    """
    if not reports:
        raise ValueError("a report of a build needs the report of at least one seed")
    used, blocks = _sizes(netlist)
    clocks: dict[int, float] = {}
    contents = {seed: json.loads(path.read_text()) for seed, path in reports.items()}
    names = {seed: _slowest_clock(content, reports[seed]) for seed, content in contents.items()}
    for seed, content in contents.items():
        clocks[seed] = float(content["fmax"][names[seed]]["achieved"])
    median = sorted(clocks, key=lambda seed: (clocks[seed], seed))[(len(clocks) - 1) // 2]
    content = contents[median]
    device = {
        cell: (int(count["used"]), int(count["available"]))
        for cell, count in sorted(content["utilization"].items())
        if count["used"]
    }
    report = BuildReport(
        name=name,
        used=used,
        device=device,
        constraint_mhz=float(content["fmax"][names[median]]["constraint"]),
        fmax_mhz=clocks,
        blocks=blocks,
        path=_critical_path(content, names[median], median),
    )
    if baseline is None:
        return report
    return replace(report, changes=_changes(report.figures(), baseline))


def _sizes(netlist: Path) -> tuple[dict[str, int], dict[str, BlockShare]]:
    modules = json.loads(netlist.read_text())["modules"]
    tops = [module for module in modules.values() if "top" in module.get("attributes", {})]
    if len(tops) != 1:
        raise ValueError(f"{netlist} has {len(tops)} top modules instead of 1: is it flattened?")
    total: Counter[str] = Counter()
    by_block: dict[str, Counter[str]] = {}
    for cell, content in tops[0]["cells"].items():
        kind = "TRELLIS_FF" if _FLIP_FLOP.fullmatch(content["type"]) else content["type"]
        block = by_block.setdefault(block_of(cell), Counter())
        for resource, kinds in _RESOURCES.items():
            total[resource] += kinds.get(kind, 0)
            block[resource] += kinds.get(kind, 0)
    kept = [name for name in _RESOURCES if name != "spram" or total[name]]
    shares = {
        name: BlockShare(
            {resource: count[resource] for resource in kept},
            round(count["lut"] / total["lut"], 4) if total["lut"] else 0.0,
        )
        for name, count in by_block.items()
        if any(count.values())
    }
    ordered = sorted(shares.items(), key=lambda item: (-item[1].used["lut"], item[0]))
    return {name: total[name] for name in kept}, dict(ordered)


def _slowest_clock(content: dict[str, Any], path: Path) -> str:
    """The clock that misses its constraint most, or keeps it with the least to spare."""
    clocks: dict[str, dict[str, float]] = content["fmax"]
    if not clocks:
        raise ValueError(f"{path} names no clock: nothing in the design is clocked")
    return min(clocks, key=lambda name: clocks[name]["achieved"] / clocks[name]["constraint"])


def _critical_path(content: dict[str, Any], clock: str, seed: int) -> CriticalPath | None:
    for path in content["critical_paths"]:
        ends = {re.sub(r"^(posedge|negedge) ", "", path[end]) for end in ("from", "to")}
        if ends == {clock} and path["path"]:
            break
    else:
        return None
    parts: dict[str, float] = {}
    kinds: Counter[str] = Counter()
    for step in path["path"]:
        block = block_of(step["to"]["cell"])
        parts[block] = parts.get(block, 0.0) + step["delay"]
        kinds["routing" if step["type"] == "routing" else "logic"] += step["delay"]
    return CriticalPath(
        seed=seed,
        start=path["path"][0]["from"]["cell"],
        end=path["path"][-1]["to"]["cell"],
        logic=round(kinds["logic"], 3),
        routing=round(kinds["routing"], 3),
        by_block={block: round(delay, 3) for block, delay in parts.items()},
    )


# ---- baselines -----------------------------------------------------------------------------------


def load_baseline(name: str, folder: Path = BASELINES) -> dict[str, float] | None:
    """The stored figures of build `name`, or None."""
    file = folder / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def save_baseline(report: BuildReport, folder: Path = BASELINES) -> Path:
    """Store the figures of a build as what later ones are compared with; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{report.name}.json"
    file.write_text(json.dumps(report.figures(), indent=2) + "\n")
    return file


def _changes(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float | None]:
    """Change in per cent of all figures of either; None where one of them lacks it or it was 0."""
    names = [*now, *(name for name in before if name not in now)]
    return {
        name: round(100 * (now[name] / before[name] - 1), 2)
        if name in now and before.get(name)
        else (0.0 if now.get(name) == before.get(name) else None)
        for name in names
    }


# ---- on the screen -------------------------------------------------------------------------------


def show(report: BuildReport, console: Console | None = None) -> None:
    """Print the tables of a report."""
    console = console or Console()
    console.print(_totals(report))
    console.print(_blocks(report))
    if report.path is not None:
        console.print(_path(report.path))
        for word, cell in (("from", report.path.start), ("to", report.path.end)):
            console.print(f"{word} {cell}", highlight=False, markup=False, soft_wrap=True)


def _change(report: BuildReport, name: str) -> str:
    if not report.changes:
        return ""
    change = report.changes.get(name)
    return "new" if change is None else f"{change:+.1f} %"


def _totals(report: BuildReport) -> Table:
    table = Table(title=report.name)
    for title in ("", "used", "of the device", "change"):
        table.add_column(title, justify="left" if not title else "right")
    for resource, count in report.used.items():
        table.add_row(_TITLES[resource], f"{count:,}", "", _change(report, resource))
    for cell, (count, available) in report.device.items():
        table.add_row(cell, f"{count:,}", f"{count / available:.1%} of {available:,}", "")
    table.add_section()
    low, high = report.range_mhz
    seeds = len(report.fmax_mhz)
    table.add_row(
        f"MHz, median of {seeds}" if seeds > 1 else "MHz, one seed",
        f"{report.median_mhz:.1f}",
        f"{low:.1f} to {high:.1f}; asked for {report.constraint_mhz:.0f}",
        _change(report, "fmax_mhz_median"),
    )
    return table


def _blocks(report: BuildReport) -> Table:
    table = Table(title="by block")
    table.add_column("block")
    for resource in report.used:
        table.add_column(_TITLES[resource], justify="right")
    table.add_column("share of LUT", justify="right")
    table.add_column("change", justify="right")
    for name, block in report.blocks.items():
        counts = (f"{count:,}" for count in block.used.values())
        table.add_row(name, *counts, f"{block.lut_share:.1%}", _change(report, f"lut of {name}"))
    return table


def _path(path: CriticalPath) -> Table:
    total = path.logic + path.routing
    title = f"critical path of seed {path.seed}: {total:.2f} ns, {path.logic:.2f} in logic"
    table = Table(title=title, min_width=len(title))
    table.add_column("block")
    table.add_column("ns", justify="right")
    table.add_column("share", justify="right")
    for block, delay in path.by_block.items():
        table.add_row(block, f"{delay:.2f}", f"{delay / total:.0%}")
    return table
