"""``hotline run``: the main job on the Verilated RTL, with its results on disk and on screen."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hotline.gen.config import Config
from hotline.host.backends import GoldenBackend, RtlBackend
from hotline.host.datasets import fold_rows, open_log, row_limit
from hotline.host.job import JobOptions, run_job
from hotline.host.report import write_report
from hotline.host.verilated import BusTiming

__all__ = ["run"]


def run(
    config: Config,
    name: str,
    source: str,
    samples: int | None,
    options: JobOptions,
    output: Path,
    json_file: Path | None,
    waves: Path | None = None,
) -> int:
    """Run a log through the RTL and report; returns the number of differing bytes.

    Parameters
    ----------
    config, name : Config, str
        The configuration, and what to call it.
    source : str
        See :func:`~hotline.host.datasets.open_log`.
    samples : int or None
        At most so many samples; None: all.
    options : JobOptions
        How to run.
    output : Path
        Folder for ``report.html``, the pictures and ``result.json``.
    json_file : Path or None
        Where else the result goes.
    waves : Path or None
        Waveform file of the whole run, ``.vcd`` or ``.fst``.
    """
    console = Console()
    console.print(f"[bold]Hotline[/] {name}, seed {options.seed}")
    log = open_log(source, samples, options.seed)
    limit = row_limit(log, config, options.row_bytes)
    folded = fold_rows(log, limit)
    if folded is not log:
        console.print(f"rows are taken modulo {limit:,}, so that the tables fit")
    timing = BusTiming()
    with Progress(
        TextColumn("{task.description:>24}"),
        BarColumn(),
        TextColumn("{task.completed:,}/{task.total:,} samples"),
        TimeElapsedColumn(),
        console=console,
    ) as bar:
        task = bar.add_task("building the simulation", total=len(log))
        begin = time.perf_counter()
        with RtlBackend(config, timing=timing, waves=waves) as device:
            built = time.perf_counter()
            result = run_job(
                config,
                folded,
                options,
                device,
                GoldenBackend(config),
                lambda done, what: bar.update(task, completed=done, description=what),
            )
            statistics = device.statistics
    result |= {
        "preset": name,
        "configuration": asdict(config),
        "config_hash": f"{config.config_hash:08x}",
        "row_limit": limit if folded is not log else None,
        "simulation": {
            "cycles": statistics.cycles,
            "read_beats": statistics.read_beats,
            "write_beats": statistics.write_beats,
            "read_latency": timing.read_latency,
            "build_seconds": built - begin,
            "seconds": time.perf_counter() - built,
        },
    }
    output.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=2) + "\n"
    for path in {output / "result.json", json_file or output / "result.json"}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    page = write_report(result, output)
    _show(console, result)
    console.print(f"report: {page}", soft_wrap=True)
    return int(result["mismatched_bytes"])


def _show(console: Console, result: dict[str, Any]) -> None:
    shares = Table(title=f"{result['data']}: popular samples", title_justify="left")
    for column in ("SRRIP (published)", "this device", "LFU oracle", "hit rate of keys"):
        shares.add_column(column, justify="right")
    keys = ("popular_share_srrip", "popular_share", "popular_share_lfu", "hit_rate")
    shares.add_row(*(f"{100 * result[key]:.2f} %" for key in keys))
    console.print(shares)

    rates = Table(title="hit rate by table", title_justify="left")
    for table in result["hit_rate_by_table"]:
        rates.add_column(table, justify="right")
    rates.add_row(*(f"{100 * rate:.0f} %" for rate in result["hit_rate_by_table"].values()))
    if len(result["hit_rate_by_table"]) <= 10:
        console.print(rates)

    commands = Table(title="commands on the bus", title_justify="left")
    for column in ("command", "runs", "read beats", "write beats", "cycles", "efficiency"):
        commands.add_column(column, justify="left" if column == "command" else "right")
    for name, row in result["commands"].items():
        numbers = (row["commands"], row["read_beats"], row["write_beats"], row["cycles"])
        commands.add_row(name, *(f"{n:,}" for n in numbers), f"{row['efficiency']:.3f}")
    console.print(commands)
    console.print(
        f"{result['rows_gathered']:,} rows gathered, {result['rows_shared']:,} needs shared one, "
        f"{result['dedup_replacements']:,} dedup replacements"
    )
    wrong = result["mismatched_bytes"]
    verdict = "[green]0 bytes differ[/]" if wrong == 0 else f"[red]{wrong:,} bytes differ[/]"
    console.print(f"{verdict} from the golden model, over all memory after every command")
