"""Compares a run with plain training, step by step (``hotline train --check``)."""

from __future__ import annotations

import math
from typing import Any

import torch

from hotline.host.reference_trainer import ReferenceTrainer, relative_error
from hotline.host.trainer import Trainer

__all__ = ["LOSS_LIMITS", "PARAMETER_LIMITS", "TrainCheck", "trained_state"]

#: Largest relative error of a loss by number format.
LOSS_LIMITS = {"float32": 1e-5, "float64": 1e-10}

#: Largest relative error of a tensor. Adagrad divides the first gradients by their own size, so
#: that the rounding of the small ones counts for as much as that of the large ones.
PARAMETER_LIMITS = {
    ("sgd", "float32"): 1e-5,
    ("adagrad", "float32"): 1e-3,
    ("rowwise-adagrad", "float32"): 1e-3,
    ("sgd", "float64"): 1e-10,
    ("adagrad", "float64"): 1e-10,
    ("rowwise-adagrad", "float64"): 1e-10,
}

#: Tables of more numbers are compared once, at the end.
_EVERY_STEP = 1 << 22


class TrainCheck:
    """The reference beside a run.

    Parameters
    ----------
    trainer : Trainer
        What is checked. It may have done steps already, which the reference then does first.

    Members
    -------
    loss_error, parameter_error : float
        The largest so far.
    worst_tensor : str
        Whose error that is.
    comparisons : int
        How often the parameters were compared.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.reference = ReferenceTrainer(trainer.log, trainer.options)
        self.loss_error = self.parameter_error = 0.0
        self.worst_tensor = ""
        self.worst_step = 0
        self.comparisons = 0
        self.tensor_errors: dict[str, float] = {}
        numbers = sum(trainer.log.table_rows) * trainer.homes.width
        self._every_step = numbers <= _EVERY_STEP

    def step(self) -> None:
        """Let the reference come to where the trainer is, and compare."""
        trainer = self.trainer
        while self.reference.position < trainer.position:
            number = self.reference.position
            expected, loss = self.reference.step(), float(trainer.losses[number])
            error = abs(loss - expected) / abs(expected) if loss != expected else 0.0
            # A comparison with NaN is never true, and must not hide one.
            if not error <= self.loss_error:
                self.loss_error, self.worst_step = error, number
        if self._every_step:
            self.compare()

    def compare(self) -> None:
        """Compare all parameters and optimiser state."""
        ours, theirs = trained_state(self.trainer), self.reference.state()
        if ours.keys() != theirs.keys():
            raise RuntimeError("the two trainers do not have the same tensors")
        self.comparisons += 1
        self.tensor_errors = {name: relative_error(ours[name], theirs[name]) for name in theirs}
        for name, error in self.tensor_errors.items():
            if not error <= self.parameter_error:
                self.parameter_error, self.worst_tensor = error, name

    def result(self) -> dict[str, Any]:
        """What was found, ready for JSON."""
        options = self.trainer.options
        limit = PARAMETER_LIMITS[options.optimizer, options.dtype]
        return {
            "max_relative_loss_error": self.loss_error,
            "max_relative_parameter_error": self.parameter_error,
            "final_relative_parameter_error": max(self.tensor_errors.values(), default=0.0),
            "worst_tensor": self.worst_tensor,
            "worst_loss_step": self.worst_step,
            "parameter_comparisons": self.comparisons,
            "loss_limit": LOSS_LIMITS[options.dtype],
            "parameter_limit": limit,
            "within_limits": self._within(self.loss_error, LOSS_LIMITS[options.dtype])
            and self._within(self.parameter_error, limit),
        }

    @staticmethod
    def _within(error: float, limit: float) -> bool:
        return math.isfinite(error) and error <= limit


def trained_state(trainer: Trainer) -> dict[str, torch.Tensor]:
    """All parameters and optimiser state of a run by name; rows from whichever home they are in.

    The tables are ``table0`` and so on, the state of a tensor has its name and ``.sum``.
    """
    result = trainer.dense_state()
    dim = trainer.options.dim
    for table, rows in enumerate(trainer.homes.current()):
        result[f"table{table}"] = torch.from_numpy(rows[:, :dim])
        if rows.shape[1] > dim:
            result[f"table{table}.sum"] = torch.from_numpy(rows[:, dim:])
    return result
