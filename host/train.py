"""``hotline train``: a DLRM with the device in the loop, with its results on disk and on screen."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hotline.host.backends import RtlBackend, open_backend
from hotline.host.checkpoint import CheckpointError
from hotline.host.click_log import ClickLog
from hotline.host.device import Device
from hotline.host.train_options import TrainOptions
from hotline.host.trainer import Trainer
from hotline.host.training_loop import LoopOptions, run_loop, summary
from hotline.host.training_setup import Setup, open_training_log
from hotline.host.training_timeline import TimelineOptions, write_timeline

__all__ = ["train"]


def train(
    setup: Setup,
    options: TrainOptions,
    loop: LoopOptions,
    json_file: Path | None = None,
    plots: Path | None = None,
    timeline: TimelineOptions | None = None,
) -> dict[str, Any]:
    """Train and report; returns the result.

    Parameters
    ----------
    setup : Setup
        On what.
    options : TrainOptions
        What decides the result.
    loop : LoopOptions
        What does not.
    json_file : Path or None
        Where the result goes.
    plots : Path or None
        Folder for the pictures.
    timeline : TimelineOptions or None
        Where and how to write the timeline; None: not.

    Raises
    ------
    TrainingStoppedError
        The device has failed.
    ValueError
        The options do not fit the data or the device.
    """
    torch.set_num_threads(setup.threads)
    if loop.resume and loop.checkpoint is not None and not loop.checkpoint.exists():
        raise CheckpointError(f"there is no checkpoint {str(loop.checkpoint)!r}")
    console = Console()
    console.print(
        f"[bold]Hotline[/] {setup.name} ({setup.backend}), {options.optimizer}, {options.dtype}, "
        f"seed {options.seed}"
    )
    with Progress(
        TextColumn("{task.description:>24}"),
        BarColumn(),
        TextColumn("{task.completed:,}/{task.total:,} steps"),
        TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
        console=console,
    ) as bar:
        task = bar.add_task("getting ready", total=1, loss="-")

        def progress(steps: int, loss: float) -> None:
            bar.update(task, description="training", completed=steps, loss=f"{loss:.4f}")

        begin = time.perf_counter()
        log = open_training_log(setup, options)
        total = options.epochs * -(-len(log) // options.batch)
        bar.update(task, total=total)
        if setup.world > 1:
            from hotline.host.train_parallel import run_ranks

            result = run_ranks(setup, options, loop, progress, timeline)
        else:
            result = _run_here(setup, options, loop, log, progress, timeline)
    result |= {
        "preset": setup.name,
        "backend": setup.backend,
        "configuration": asdict(setup.config),
        "config_hash": f"{setup.config.config_hash:08x}",
        "total_seconds": time.perf_counter() - begin,
    }
    if json_file is not None:
        write_whole(json_file, json.dumps(result, indent=2) + "\n")
    if plots is not None:
        from hotline.host.train_plots import write_plots

        write_plots(result, plots)
    show(console, result)
    return result


def _run_here(
    setup: Setup,
    options: TrainOptions,
    loop: LoopOptions,
    log: ClickLog,
    progress: Callable[[int, float], None],
    timeline: TimelineOptions | None,
) -> dict[str, Any]:
    """Train in this process."""
    with Device(open_backend(setup.backend, setup.config)) as device:
        trainer = Trainer(device, log, options)
        trainer.account.spans = [] if timeline is not None else None
        result = run_loop(trainer, loop, progress)
        result = summary(trainer) | result
        if isinstance(device.backend, RtlBackend):
            result["simulation"] = asdict(device.backend.statistics)
    if timeline is not None:
        result["timeline"] = write_timeline(trainer.account, timeline)
    return result


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it appears under its name only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def show(console: Console, result: dict[str, Any]) -> None:
    """Print what matters of a result."""
    table = Table(title=f"{result['data']}: {result['steps']:,} steps", title_justify="left")
    for column in ("loss", "accuracy", "AUC", "log-loss", "popular samples", "hit rate of keys"):
        table.add_column(column, justify="right")
    auc = "-" if result["auc"] is None else f"{result['auc']:.4f}"
    table.add_row(
        f"{result['loss']:.6f}",
        f"{100 * result['accuracy']:.2f} %",
        auc,
        f"{result['log_loss']:.6f}",
        f"{100 * result['popular_share']:.2f} %",
        f"{100 * result['hit_rate']:.2f} %",
    )
    console.print(table)
    links = Table(title="bytes over the links", title_justify="left")
    for column in (*result["device"]["link_bytes"], "without hot rows"):
        links.add_column(column.replace("_", " "), justify="right")
    sizes = (*result["device"]["link_bytes"].values(), result["device"]["plain_bytes"])
    links.add_row(*(f"{size:,}" for size in sizes))
    console.print(links)
    console.print(
        f"{result['cycles']:,} device cycles, {result['wall_seconds']:.1f} s; "
        f"parameters {result['digest'][:16]}"
    )
    if "timeline" in result:
        _show_timeline(console, result["timeline"])
    if "max_relative_loss_error" in result:
        verdict = "[green]within[/]" if result["within_limits"] else "[red]beyond[/]"
        console.print(
            f"against plain training: largest relative error of a loss "
            f"{result['max_relative_loss_error']:.2e}, of a tensor "
            f"{result['max_relative_parameter_error']:.2e}: {verdict} the limits "
            f"{result['loss_limit']:.0e} and {result['parameter_limit']:.0e}"
        )


def _show_timeline(console: Console, timeline: dict[str, Any]) -> None:
    table = Table(title=f"time at {timeline['clock_mhz']:g} MHz, in ms", title_justify="left")
    for column in ("command", "in all", "hidden behind the GPU", "exposed"):
        table.add_column(column, justify="left" if column == "command" else "right")
    for name, entry in timeline["commands"].items():
        keys = ("seconds", "hidden_seconds", "exposed_seconds")
        table.add_row(name, *(f"{1e3 * entry[key]:,.3f}" for key in keys))
    console.print(table)
    console.print(
        f"{1e3 * timeline['seconds']:,.3f} ms, and {1e3 * timeline['serial_seconds']:,.3f} ms if "
        f"nothing ran beside anything else"
    )
