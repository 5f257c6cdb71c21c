"""``hotline train``: a DLRM with the device in the loop, with its results on disk and on screen."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hotline.gen.config import Config
from hotline.host.backends import RtlBackend, open_backend
from hotline.host.click_log import ClickLog
from hotline.host.datasets import fold_rows, open_log
from hotline.host.device import Device
from hotline.host.row_optimizers import row_optimizer
from hotline.host.train_options import TrainOptions
from hotline.host.trainer import Trainer
from hotline.host.training_loop import LoopOptions, run_loop, summary

__all__ = ["Setup", "open_training_log", "train", "with_entries"]

#: Back-ends that run in this process.
BACKENDS = ("golden", "verilator")

#: Bytes of all tables that fit the memory of a small machine beside everything else.
_TABLE_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What to train on, and on which device.

    Parameters
    ----------
    config, name : Config, str
        The configuration, and what to call it.
    source : str
        See :func:`~hotline.host.datasets.open_log`.
    samples : int or None
        At most so many samples; None: all.
    backend : str
        ``"golden"`` or ``"verilator"``.
    world : int
        Processes.
    threads : int
        Threads of PyTorch in each process.
    """

    config: Config
    name: str
    source: str
    samples: int | None = None
    backend: str = "verilator"
    world: int = 1
    threads: int = 1

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {self.backend!r}")
        for name in ("world", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


def with_entries(config: Config, entries: int | None) -> Config:
    """The configuration with so many hot-table entries, and at most as many banks as sets.

    Raises
    ------
    ValueError
        It cannot have that many.
    """
    if entries is None:
        return config
    sets = entries // config.ways
    if entries < config.ways or entries % config.ways or sets & (sets - 1):
        raise ValueError(
            f"hot entries must be a power of two times the {config.ways} ways, not {entries}"
        )
    return config.replace(sets=sets, banks=min(sets, config.banks))


def open_training_log(setup: Setup, options: TrainOptions) -> ClickLog:
    """The log, with row numbers folded so that the tables fit; checked against the device.

    Raises
    ------
    ValueError
        It does not fit.
    """
    log = open_log(setup.source, setup.samples, options.seed)
    row_bytes = (
        row_optimizer(options.optimizer, options.lr, options.dim).width
        * options.numpy_dtype.itemsize
    )
    limit = min(
        1 << setup.config.row_bits, max(1, _TABLE_BYTES // (row_bytes * log.num_tables))
    )
    log = fold_rows(log, limit)
    if (reason := log.misfit(setup.config)) is not None:
        raise ValueError(reason)
    longest = int(np.diff(log.offsets).max(initial=0))
    if longest > setup.config.max_sample_keys:
        raise ValueError(
            f"a sample has {longest} keys, the device takes at most {setup.config.max_sample_keys}"
        )
    return log


def train(
    setup: Setup,
    options: TrainOptions,
    loop: LoopOptions,
    json_file: Path | None = None,
    plots: Path | None = None,
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

    Raises
    ------
    TrainingStoppedError
        The device has failed.
    ValueError
        The options do not fit the data or the device.
    """
    torch.set_num_threads(setup.threads)
    console = Console()
    console.print(
        f"[bold]Hotline[/] {setup.name} ({setup.backend}), {options.optimizer}, {options.dtype}, "
        f"seed {options.seed}"
    )
    begin = time.perf_counter()
    log = open_training_log(setup, options)
    with Progress(
        TextColumn("{task.description:>24}"),
        BarColumn(),
        TextColumn("{task.completed:,}/{task.total:,} steps"),
        TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
        console=console,
    ) as bar:
        task = bar.add_task("building the device", total=1, loss="-")
        with Device(open_backend(setup.backend, setup.config)) as device:
            ready = time.perf_counter()
            trainer = Trainer(device, log, options)
            bar.update(task, description="training", total=trainer.total)
            result = run_loop(
                trainer,
                loop,
                lambda steps, loss: bar.update(task, completed=steps, loss=f"{loss:.4f}"),
            )
            result = summary(trainer) | result
            if isinstance(device.backend, RtlBackend):
                result["simulation"] = asdict(device.backend.statistics)
    result |= {
        "preset": setup.name,
        "backend": setup.backend,
        "configuration": asdict(setup.config),
        "config_hash": f"{setup.config.config_hash:08x}",
        "setup_seconds": ready - begin,
        "wall_seconds": time.perf_counter() - ready,
    }
    if json_file is not None:
        write_whole(json_file, json.dumps(result, indent=2) + "\n")
    if plots is not None:
        from hotline.host.train_plots import write_plots

        write_plots(result, plots)
    show(console, result)
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
    if "max_relative_loss_error" in result:
        verdict = "[green]within[/]" if result["within_limits"] else "[red]beyond[/]"
        console.print(
            f"against plain training: largest relative error of a loss "
            f"{result['max_relative_loss_error']:.2e}, of a tensor "
            f"{result['max_relative_parameter_error']:.2e}: {verdict} the limits "
            f"{result['loss_limit']:.0e} and {result['parameter_limit']:.0e}"
        )
