"""Data-parallel training: a process for each rank, each with its device and hot buffer.

Host tables lie in memory that all ranks share, as on one machine with several accelerators. Every
device gathers from all of it; only the owner of a cold row changes it.
"""

from __future__ import annotations

import datetime
import multiprocessing
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from hotline.host.backends import open_backend
from hotline.host.click_log import ClickLog
from hotline.host.device import Device
from hotline.host.exchange import PeerError
from hotline.host.gloo_exchange import GlooExchange
from hotline.host.row_homes import RowHomes
from hotline.host.row_optimizers import row_optimizer
from hotline.host.train_options import TrainOptions
from hotline.host.trainer import Trainer
from hotline.host.training_loop import LoopOptions, run_loop, summary
from hotline.host.training_setup import Setup, open_training_log
from hotline.host.training_timeline import TimelineOptions, write_timeline
from hotline.host.verilated_build import build_library

__all__ = ["run_ranks"]

#: A rank that has waited so long for the others takes them for dead.
_TIMEOUT = datetime.timedelta(minutes=30)
#: Seconds that the other ranks get to say what is wrong when one has died.
_LAST_WORDS = 10


def run_ranks(
    setup: Setup,
    options: TrainOptions,
    loop: LoopOptions,
    progress: Callable[[int, float], None] = lambda steps, loss: None,
    timeline: TimelineOptions | None = None,
    start_method: str = "spawn",
) -> dict[str, Any]:
    """Train with `setup.world` processes; returns the result of :func:`summary`, and more.

    Parameters
    ----------
    setup, options, loop
        As for a single process.
    progress : callable
        Called with the steps that are done and the last loss.
    timeline : TimelineOptions or None
        Where and how to write the timeline of rank 0; None: not.
    start_method : str
        How processes are made. ``"fork"`` is faster, for callers that have no threads.

    Raises
    ------
    RuntimeError
        A rank has failed. The sentence is its own, or says how its process ended.
    """
    log = open_training_log(setup, options)
    if setup.backend == "verilator":
        # Once, before all ranks want it.
        build_library(setup.config)
    with tempfile.TemporaryDirectory(prefix="hotline-") as folder:
        size = _table_bytes(log, options)
        np.memmap(Path(folder, "tables"), np.uint8, "w+", shape=(size,)).flush()
        context = multiprocessing.get_context(start_method)
        processes: list[BaseProcess] = []
        pipes: list[Connection] = []
        try:
            for rank in range(setup.world):
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(
                    target=_rank,
                    args=(rank, folder, setup, options, loop, timeline, theirs),
                    daemon=True,
                )
                process.start()
                theirs.close()
                processes.append(process)
                pipes.append(ours)
            return _listen(processes, pipes, progress)
        finally:
            for process in processes:
                process.kill()
                process.join()


def _listen(
    processes: list[BaseProcess], pipes: list[Connection], progress: Callable[[int, float], None]
) -> dict[str, Any]:
    """Follow the ranks to their ends; the result of rank 0, or an error."""
    open_pipes = dict(enumerate(pipes))
    result: dict[str, Any] = {}
    failures: dict[int, tuple[bool, str]] = {}  # whether it is the rank's own, and the sentence
    while open_pipes:
        ready = wait(list(open_pipes.values()), _LAST_WORDS if failures else None)
        if not ready:
            break
        for rank, pipe in list(open_pipes.items()):
            if pipe not in ready:
                continue
            try:
                kind, *content = pipe.recv()
            except EOFError:
                del open_pipes[rank]
                processes[rank].join()
                if processes[rank].exitcode and rank not in failures:
                    code = processes[rank].exitcode
                    failures[rank] = True, f"the process of rank {rank} ended with code {code}"
                continue
            if kind == "step":
                progress(*content)
            elif kind == "result":
                result = content[0]
            else:
                failures[rank] = content[0], content[1]
    # What a rank says about its own device explains what the others say about it.
    for own in (True, False):
        for rank, (is_own, sentence) in sorted(failures.items()):
            if is_own == own:
                raise RuntimeError(f"rank {rank}: {sentence}")
    return result


def _rank(
    rank: int,
    folder: str,
    setup: Setup,
    options: TrainOptions,
    loop: LoopOptions,
    timeline: TimelineOptions | None,
    pipe: Connection,
) -> None:
    """What a process does: sends ("step", ...), ("result", ...), or ("failed", own, sentence)."""
    torch.set_num_threads(setup.threads)
    try:
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder}/rendezvous",
            rank=rank,
            world_size=setup.world,
            timeout=_TIMEOUT,
        )
        exchange = GlooExchange()
        log = open_training_log(setup, options)
        memory = np.memmap(Path(folder, "tables"), np.uint8, "r+")

        def report(steps: int, loss: float) -> None:
            if rank == 0:
                pipe.send(("step", steps, loss))

        with Device(open_backend(setup.backend, setup.config)) as device:
            trainer = Trainer(device, log, options, exchange, memory.view(np.ndarray))
            trainer.account.spans = [] if timeline is not None and rank == 0 else None
            result = run_loop(trainer, loop, report)
            if len(set(exchange.gather(result["digest"]))) > 1:
                raise RuntimeError("the ranks have come to different parameters")
            accounts = exchange.gather(trainer.account.as_dict())
            trainer.account.restore(_total(accounts))
            if rank == 0:
                if timeline is not None:
                    result["timeline"] = write_timeline(trainer.account, timeline)
                pipe.send(("result", summary(trainer) | result | {"ranks": accounts}))
        distributed.destroy_process_group()
    except (ValueError, RuntimeError, OSError) as error:
        sentence = " ".join(str(error).split())
        # The collectives of the others fail too when a rank has gone.
        own = not isinstance(error.__cause__, PeerError) and "gloo" not in sentence
        pipe.send(("failed", own, sentence))
        raise SystemExit(1) from None


def _table_bytes(log: ClickLog, options: TrainOptions) -> int:
    width = row_optimizer(options.optimizer, options.lr, options.dim).width
    return RowHomes.memory_bytes(log.table_rows, width * options.numpy_dtype.itemsize)


def _total(accounts: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums of the accounts of all ranks."""
    result: dict[str, Any] = {}
    for name, value in accounts[0].items():
        if isinstance(value, dict):
            keys = list(dict.fromkeys(key for account in accounts for key in account[name]))
            result[name] = {key: sum(a[name].get(key, 0) for a in accounts) for key in keys}
        else:
            result[name] = sum(account[name] for account in accounts)
    return result
