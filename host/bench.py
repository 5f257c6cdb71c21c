"""``hotline bench``: measures the performance contract (spec section 9) on the Verilated RTL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hotline.gen.config import Config
from hotline.host.bench_journal import BenchJournal
from hotline.host.bench_lines import log_lines, worst_lines
from hotline.host.bench_measure import Line, Size
from hotline.host.bench_peers import PAPER_MHZ, gather_rates, split_rates
from hotline.host.bench_plots import write_plots
from hotline.host.bench_pool import pool_lines
from hotline.host.bench_rig import Rig
from hotline.host.bench_rows import row_lines
from hotline.host.bench_show import show
from hotline.host.bench_sweeps import (
    Task,
    arbiter_tasks,
    latency_tasks,
    outstanding_tasks,
    row_size_tasks,
)
from hotline.host.bench_traffic import LogTraffic
from hotline.host.datasets import open_log
from hotline.host.verilated_build import design_verilog

__all__ = ["SECTIONS", "BenchOptions", "measure", "read_clock", "run", "to_json"]

#: Parts of the result, which are lists of records.
SECTIONS = ("lines", "latency", "row_bytes", "outstanding", "arbiter", "peers")

#: Columns of the output where it goes to a file.
_FILE_WIDTH = 140

_QUICK = Size(samples=512, rows=1000)
_SHARES = (1.0, 0.75, 0.25)


@dataclass(frozen=True)
class BenchOptions:
    """What to measure.

    Parameters
    ----------
    sources : sequence of str
        Click logs, see :func:`~hotline.host.datasets.open_log`. Random rows are drawn from tables
        with the shapes of the last one.
    samples : int or None
        At most so many samples of each log to draw from; None: all.
    only : sequence of str
        Words; what has none of them in its section, command or traffic is left out.
    quick : bool
        Small mini-batches, and nothing that needs a build of its own. Starting up weighs more
        then, so there are no aims.
    clock_mhz : float or None
        Clock that place and route reached.
    seed : int
        Of all that is random.
    """

    sources: Sequence[str] = ("ml-100k", "synthetic:K")
    samples: int | None = 300_000
    only: Sequence[str] = ()
    quick: bool = False
    clock_mhz: float | None = None
    seed: int = 1


def measure(
    config: Config,
    name: str,
    options: BenchOptions,
    console: Console | None = None,
    kept: BenchJournal | None = None,
) -> dict[str, Any]:
    """Measure what the options choose; returns the result, ready for JSON.

    Parameters
    ----------
    config, name : Config, str
        The configuration, and what to call it.
    options : BenchOptions
        What to measure.
    console : Console, optional
        For the progress.
    kept : BenchJournal, optional
        Takes what is measured, and gives what was measured before.

    Raises
    ------
    ValueError
        A log that does not fit the device, or words that choose nothing.
    """
    session = _Session(config, options)
    tasks = _chosen(list(session.tasks()), options.only)
    clocks = {} if options.clock_mhz is None else {"place and route": options.clock_mhz}
    result: dict[str, Any] = {
        "preset": name,
        "config_hash": f"{config.config_hash:08x}",
        "configuration": asdict(config),
        "seed": options.seed,
        "quick": options.quick,
        "logs": [
            {"name": traffic.name, "samples": len(traffic.log), "tables": len(traffic.rows),
             "rows": sum(traffic.rows), "hot_keys": len(traffic.hot_keys),
             "mini_batch": session.size.samples_of(len(traffic.rows))}
            for traffic in session.traffics
        ],
        "memory": {"read_latency": 200, "write_latency": Rig.write_latency},
        "clocks": clocks | {"paper": PAPER_MHZ},
        **{section: [] for section in SECTIONS},
    }  # fmt: skip
    try:
        with Progress(
            TextColumn("{task.description:<60}"),
            BarColumn(20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console or Console(quiet=True),
        ) as bar:
            work = bar.add_task("", total=len(tasks))
            for task in tasks:
                bar.update(work, description=f"{task.section}: {task.name}"[:60])
                records = kept.find(task) if kept is not None else None
                if records is None:
                    records = task.run()
                    if kept is not None:
                        kept.add(task, records)
                result[task.section] += records
                bar.advance(work)
    finally:
        session.close()
    return result


def run(
    config: Config, name: str, options: BenchOptions, json_file: Path | None, plots: Path | None
) -> None:
    """Measure, show tables, and write the result to `json_file` and pictures to `plots`.

    What was measured when a run was stopped is found again by the next one with the same options.
    """
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    console.print(f"[bold]Hotline[/] {name}, {', '.join(options.sources)}, seed {options.seed}")
    kept = None
    if json_file is not None:
        kept = BenchJournal(json_file, _key(config, options))
        if kept.count:
            console.print(f"{kept.count} measured before, in {kept.path}")
    result = measure(config, name, options, console, kept)
    if json_file is not None and kept is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(to_json(result), encoding="utf-8")
        kept.remove()
    show(console, result)
    if plots is not None:
        for path in write_plots(result, plots, name):
            console.print(str(path), highlight=False, soft_wrap=True)


def _key(config: Config, options: BenchOptions) -> dict[str, Any]:
    """All that a figure depends on."""
    return {
        "verilog": hashlib.sha256(design_verilog(config).encode()).hexdigest(),
        "sources": list(options.sources),
        "samples": options.samples,
        "quick": options.quick,
        "seed": options.seed,
    }


def _chosen(tasks: list[Task], only: Sequence[str]) -> list[Task]:
    """Tasks with one of the words in their section or name; all if there are no words."""
    words = [word.strip().lower() for word in only if word.strip()]
    for word in words:
        if not any(word in f"{task.section}: {task.name}".lower() for task in tasks):
            raise ValueError(
                f"--only {word!r} chooses nothing; sections are {', '.join(SECTIONS)}, and names "
                f"are such as {tasks[0].name!r}"
            )
    if not words:
        return tasks
    return [
        task
        for task in tasks
        if any(word in f"{task.section}: {task.name}".lower() for word in words)
    ]


class _Session:
    """The device, which is built when it is first needed, and all tasks."""

    def __init__(self, config: Config, options: BenchOptions) -> None:
        self.config, self.options = config, options
        self.size = _QUICK if options.quick else Size()
        self.traffics = [
            LogTraffic(config, open_log(source, options.samples, options.seed), options.seed)
            for source in options.sources
        ]
        self._rig: Rig | None = None

    def rig(self) -> Rig:
        if self._rig is None:
            self._rig = Rig(self.config)
        return self._rig

    def close(self) -> None:
        if self._rig is not None:
            self._rig.close()

    def tasks(self) -> Iterator[Task]:
        seed, size, last = self.options.seed, self.size, self.traffics[-1]
        for line in self._lines():
            run = partial(_run_line, line, aims=not self.options.quick)
            yield Task("lines", f"{line.command}, {line.traffic}", run)
        yield from latency_tasks(self.rig, last, size, seed)
        yield from row_size_tasks(self.rig, self.config, size, seed)
        if not self.options.quick:
            yield from outstanding_tasks(size, seed)
            yield from arbiter_tasks(last, seed)
        for traffic in self.traffics:
            samples = size.samples_of(len(traffic.rows))
            for share in _SHARES:
                name = f"SPLIT, {round(100 * share)} % popular, {traffic.name}"
                yield Task("peers", name, partial(split_rates, traffic, samples, share))
        rows = f"random rows, tables of {last.name}"
        yield Task("peers", "GATHER", partial(gather_rates, size.rows, rows, seed))

    def _lines(self) -> Iterator[Line]:
        for traffic in self.traffics:
            yield from log_lines(self.rig, traffic, self.size)
        yield from row_lines(self.rig, self.traffics[-1], self.size)
        yield from pool_lines(self.rig, self.config, self.options.seed, self.size)
        yield from worst_lines(self.rig, self.config, self.options.seed, self.size)


def _run_line(line: Line, aims: bool) -> list[dict[str, Any]]:
    record = line.run().as_dict()
    return [record if aims else {**record, "aim": None, "per_cycle_aim": None}]


def read_clock(path: Path) -> float:
    """Median clock in MHz from the JSON that ``hotline synth --json`` wrote.

    Raises
    ------
    ValueError
        There is no such file, or it is another one.
    """
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["fmax_mhz_median"])
    except FileNotFoundError:
        raise ValueError(f"there is no file {str(path)!r}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not what `hotline synth --json` writes") from None


def to_json(result: dict[str, Any]) -> str:
    """The result as JSON, a line for each record, so that two of them can be compared."""
    parts = []
    for key, value in result.items():
        if key in SECTIONS and value:
            records = ",\n".join(f"    {json.dumps(record)}" for record in value)
            parts.append(f"  {json.dumps(key)}: [\n{records}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
