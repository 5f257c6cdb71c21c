"""Checkpoints of a training run: one file, written whole or not at all.

It is a NumPy archive (``.npz``, without pickled objects): host tables, hot rows and the map of
slots, MLPs and their optimiser state, losses and predictions so far; and in ``meta``, as JSON, the
options, the position in the data, and the calls that made the hot table since its last CLEAR.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotline.host.click_log import ClickLog
from hotline.host.row_homes import NO_KEY
from hotline.host.trainer import Trainer

__all__ = ["CheckpointError", "fingerprint", "restore_checkpoint", "save_checkpoint"]

_FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or that belongs to another run."""


def fingerprint(log: ClickLog) -> str:
    """SHA-256 of all that a log says, as 64 hex digits."""
    digest = hashlib.sha256(json.dumps([log.tables, log.table_rows]).encode())
    for array in (log.indices, log.lengths, log.labels, log.dense):
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _identity(trainer: Trainer) -> dict[str, Any]:
    """What a run must have in common with the one that wrote a checkpoint."""
    return {
        "format": _FORMAT,
        **trainer.options.as_dict(),
        "world": trainer.exchange.world,
        "device configuration": trainer.device.config.canonical_json(),
        "data": fingerprint(trainer.log),
    }


def save_checkpoint(path: str | Path, trainer: Trainer) -> None:
    """Write the state of `trainer` between two steps to `path`.

    The file appears under its name when it is complete, and on disk: whenever the process dies,
    there is the checkpoint before or this one. All ranks must call this; the first one writes.

    Raises
    ------
    OSError
        The file cannot be written; what was there is still there.
    """
    accounts = trainer.exchange.gather(trainer.account.as_dict())
    if trainer.exchange.rank != 0:
        return
    homes, tracker = trainer.homes, trainer.tracker
    slots = np.flatnonzero(homes.slot_keys != NO_KEY)
    arrays: dict[str, Any] = {
        "host_tables": homes.memory,
        "hot_slots": slots,
        "hot_keys": homes.slot_keys[slots],
        "hot_rows": homes.hot[slots],
        "losses": trainer.losses,
        "popular": trainer.popular,
        "predictions": trainer.predictions,
    }
    arrays |= {f"dense.{name}": value.numpy() for name, value in trainer.dense_state().items()}
    meta = {
        "identity": _identity(trainer),
        "position": trainer.position,
        "learned_before": tracker.last,
        "calls": tracker.calls,
        "accounts": accounts,
    }
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, meta=np.array(json.dumps(meta)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def restore_checkpoint(path: str | Path, trainer: Trainer) -> None:
    """Bring a trainer that has not begun to where the run was that wrote `path`.

    The device gets the same hot table by the same calls. Every rank must do this.

    Raises
    ------
    CheckpointError
        There is no such file, it is damaged, or it is of a run with other options, data or device.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
        meta = json.loads(str(arrays.pop("meta")))
        written = meta["identity"]
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {str(path)!r}") from None
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path} is not a checkpoint of hotline train: {error}") from None
    for name, value in _identity(trainer).items():
        if written.get(name) != value:
            ours, theirs = value, written.get(name)
            if name in ("data", "device configuration"):
                raise CheckpointError(f"{path} was written by a run with another {name}")
            raise CheckpointError(
                f"{path} was written by a run with {name} = {theirs}, this one has {ours}"
            )
    homes, tracker = trainer.homes, trainer.tracker
    trainer.exchange.barrier()
    if trainer.exchange.rank == 0:
        homes.memory[:] = arrays["host_tables"]
    trainer.exchange.barrier()
    tracker.replay([(str(name), int(start), int(stop)) for name, start, stop in meta["calls"]])
    slots = np.flatnonzero(homes.slot_keys != NO_KEY)
    if not np.array_equal(slots, arrays["hot_slots"]) or not np.array_equal(
        homes.slot_keys[slots], arrays["hot_keys"]
    ):
        raise CheckpointError(f"the device has not learned the hot table again that {path} has")
    homes.hot[slots] = arrays["hot_rows"]
    with torch.no_grad():
        for name, tensor in trainer.dense_state().items():
            tensor.copy_(torch.from_numpy(arrays[f"dense.{name}"]))
    trainer.losses[:] = arrays["losses"]
    trainer.popular[:] = arrays["popular"]
    trainer.predictions[:] = arrays["predictions"]
    trainer.position = int(meta["position"])
    tracker.last = int(meta["learned_before"])
    trainer.account.restore(meta["accounts"][trainer.exchange.rank])
