"""``hotline run``: the main job on the Verilated RTL or a board, and what came of it."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hotline.fpga.boards import board as board_of
from hotline.gen.config import Config
from hotline.host.backends import GoldenBackend, RtlBackend
from hotline.host.board_fit import fit_batch, fit_rows
from hotline.host.datasets import fold_rows, open_log, row_limit
from hotline.host.job import JobOptions, run_job
from hotline.host.report import write_report
from hotline.host.serial_backend import SerialBackend
from hotline.host.verilated import BusTiming, Statistics

__all__ = ["BoardOptions", "run"]


@dataclass(frozen=True)
class BoardOptions:
    """Which board to run on.

    Parameters
    ----------
    port : str
        Serial port.
    name : str
        One of :data:`hotline.fpga.boards.BOARDS`.
    baud : int or None
        None: that of the board.
    choose_batch : bool
        Make the mini-batches smaller if the board's memory is small.
    """

    port: str
    name: str
    baud: int | None = None
    choose_batch: bool = True


def run(
    config: Config,
    name: str,
    source: str,
    samples: int | None,
    options: JobOptions,
    output: Path,
    json_file: Path | None,
    waves: Path | None = None,
    rows: int | None = None,
    board: BoardOptions | None = None,
) -> int:
    """Run a log through the device and report; returns the number of differing bytes.

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
        Waveform file of the whole run, ``.vcd`` or ``.fst``; in simulation only.
    rows : int or None
        At most so many rows a table; None: as many as fit.
    board : BoardOptions or None
        None: simulate the RTL.
    """
    console = Console()
    console.print(f"[bold]Hotline[/] {name}, seed {options.seed}")
    log = open_log(source, samples, options.seed)
    limit = min(row_limit(log, config, options.row_bytes), rows or max(log.table_rows))
    place = ""
    if board is not None:
        chosen = board_of(board.name)
        place = f" into the {chosen.ram_bytes:,} bytes of {chosen.title}"
        wanted = options.batch
        if board.choose_batch:
            options = fit_batch(config, log, options, chosen)
        if options.batch != wanted:
            console.print(
                f"mini-batches have {options.batch} samples, so that they leave half of the "
                f"board's memory to the tables"
            )
        limit = min(limit, fit_rows(config, log, options, chosen))
    folded = fold_rows(log, limit)
    if folded is not log:
        why = "as asked for" if limit == rows else f"so that the tables fit{place}"
        console.print(f"rows are taken modulo {limit:,}, {why}", highlight=False)
    timing = BusTiming()
    with Progress(
        TextColumn("{task.description:>24}"),
        BarColumn(),
        TextColumn("{task.completed:,}/{task.total:,} samples"),
        TimeElapsedColumn(),
        console=console,
    ) as bar:
        task = bar.add_task(
            "building the simulation" if board is None else "opening the board", total=len(log)
        )
        begin = time.perf_counter()
        device: RtlBackend | SerialBackend
        if board is None:
            device = RtlBackend(config, timing=timing, waves=waves)
        else:
            device = SerialBackend(config, port=board.port, board=board.name, baud=board.baud)
        with closing(device):
            built = time.perf_counter()
            result = run_job(
                config,
                folded,
                options,
                device,
                GoldenBackend(config, getattr(device, "addresses", None)),
                lambda done, what: bar.update(task, completed=done, description=what),
            )
            statistics = device.statistics
    result |= {
        "preset": name,
        "configuration": asdict(config),
        "config_hash": f"{config.config_hash:08x}",
        "row_limit": limit if folded is not log else None,
    }
    spent = time.perf_counter() - built
    if isinstance(statistics, Statistics):
        result["simulation"] = {
            "cycles": statistics.cycles,
            "read_beats": statistics.read_beats,
            "write_beats": statistics.write_beats,
            "read_latency": timing.read_latency,
            "build_seconds": built - begin,
            "seconds": spent,
        }
    else:
        assert board is not None
        result["board"] = {"name": board.name, "seconds": spent, **asdict(statistics)}
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
    if "board" in result:
        link = result["board"]
        console.print(
            f"{link['requests']:,} requests to {link['name']}, {link['repeated']:,} of them "
            f"repeated, {link['bytes_sent']:,} bytes sent, {link['bytes_received']:,} received"
        )
    wrong = result["mismatched_bytes"]
    verdict = "[green]0 bytes differ[/]" if wrong == 0 else f"[red]{wrong:,} bytes differ[/]"
    console.print(f"{verdict} from the golden model, over all memory after every command")
