"""The loop around a trainer: checks, checkpoints, and what happens when the device fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotline.host.checkpoint import restore_checkpoint, save_checkpoint
from hotline.host.exchange import DEVICE_ERRORS, PeerError
from hotline.host.metrics import quality
from hotline.host.train_check import TrainCheck
from hotline.host.trainer import Trainer

__all__ = ["LoopOptions", "TrainingStoppedError", "run_loop", "summary"]


class TrainingStoppedError(RuntimeError):
    """The device has failed; the sentence says how, and where the checkpoint is."""


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """What does not change the result of a run.

    Parameters
    ----------
    check : bool
        Train the plain model beside it and compare.
    checkpoint : Path or None
        File of the checkpoints.
    every : int
        Steps from one checkpoint to the next; there is always one at the start and at the end.
    resume : bool
        Go on from the checkpoint.
    stop_after : int or None
        Do at most so many steps.
    digests : bool
        Note a digest of all device memory after every step.
    """

    check: bool = False
    checkpoint: Path | None = None
    every: int = 10
    resume: bool = False
    stop_after: int | None = None
    digests: bool = False

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            raise ValueError("to resume, the file of the checkpoint must be given too")
        for name in ("every", "stop_after"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name.replace('_', ' ')} must be at least 1, not {value}")


def run_loop(
    trainer: Trainer,
    options: LoopOptions,
    progress: Callable[[int, float], None] = lambda steps, loss: None,
) -> dict[str, Any]:
    """Train to the end, or as far as `options` say.

    Parameters
    ----------
    trainer : Trainer
        It has not begun.
    options : LoopOptions
        How.
    progress : callable
        Called with the steps that are done and the last loss.

    Returns
    -------
    dict
        Results of the check and digests, ready for JSON.

    Raises
    ------
    TrainingStoppedError
        A command of the device has failed. The checkpoint, if there is to be one, has been written.
    CheckpointError
        There is nothing to resume.
    """
    if options.resume and options.checkpoint is not None:
        restore_checkpoint(options.checkpoint, trainer)
    elif options.checkpoint is not None:
        save_checkpoint(options.checkpoint, trainer)
    check = TrainCheck(trainer) if options.check and trainer.exchange.rank == 0 else None
    end = trainer.total
    if options.stop_after is not None:
        end = min(end, trainer.position + options.stop_after)
    begin, first = time.perf_counter(), trainer.position
    digests = []
    while trainer.position < end:
        try:
            loss = trainer.step()
        except (*DEVICE_ERRORS, PeerError) as error:
            raise TrainingStoppedError(_stopped(trainer, options, error)) from error
        if check is not None:
            check.step()
        if options.digests:
            digests.append(trainer.memory_digest())
        last = trainer.position == end
        if options.checkpoint is not None and (last or trainer.position % options.every == 0):
            save_checkpoint(options.checkpoint, trainer)
        progress(trainer.position, loss)
    result: dict[str, Any] = {
        "digest": trainer.digest(),
        "steps_of_this_run": trainer.position - first,
        "wall_seconds": time.perf_counter() - begin,
    }
    if options.digests:
        result["memory_digests"] = digests
    if check is not None:
        check.compare()
        result |= check.result()
    return result


def _stopped(trainer: Trainer, options: LoopOptions, error: Exception) -> str:
    """Save what can be saved; the sentence about it."""
    where = f"training stopped after {trainer.position} of {trainer.total} steps: {error}"
    if options.checkpoint is None:
        return f"{where}; there is no checkpoint, because no file for one was given"
    save_checkpoint(options.checkpoint, trainer)
    return f"{where}; the checkpoint {options.checkpoint} holds these steps"


def summary(trainer: Trainer) -> dict[str, Any]:
    """What a run has come to, ready for JSON. Metrics are of predictions before each update."""
    log, account = trainer.log, trainer.account
    epochs = []
    for epoch in range(trainer.options.epochs):
        first_step = epoch * len(trainer.batches)
        steps = min(trainer.position - first_step, len(trainer.batches))
        if steps <= 0:
            break
        samples = min(steps * trainer.options.batch, len(log))
        start = epoch * len(log)
        metrics = quality(
            trainer.batches.labels[:samples], trainer.predictions[start : start + samples]
        )
        losses = trainer.losses[first_step : first_step + steps]
        epochs.append({"steps": steps, "mean_loss": float(losses.mean()), **metrics})
    done = slice(trainer.position)
    return {
        "data": log.name,
        "samples": len(log),
        "tables": log.num_tables,
        "rows": sum(log.table_rows),
        "dense_features": log.dense.shape[1],
        **trainer.options.as_dict(),
        "row_bytes": trainer.homes.row_bytes,
        "hot_entries": trainer.device.config.slots,
        "dedup_entries": trainer.device.config.dedup_entries,
        "world": trainer.exchange.world,
        "steps": trainer.position,
        "total_steps": trainer.total,
        "loss": float(trainer.losses[trainer.position - 1]) if trainer.position else None,
        "accuracy": epochs[-1]["accuracy"] if epochs else None,
        "auc": epochs[-1]["auc"] if epochs else None,
        "log_loss": epochs[-1]["log_loss"] if epochs else None,
        "epochs_done": epochs,
        "popular_share": account.popular / max(1, account.samples),
        "hit_rate": account.hits / max(1, account.keys),
        "dedup_replacements_or_copies": account.duplicates,
        "cycles": sum(account.cycles.values()),
        "device": account.as_dict(),
        "losses": trainer.losses[done].tolist(),
        "popular_shares": trainer.popular[done].tolist(),
    }
