"""What decides the result of a training run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hotline.host.row_optimizers import OPTIMIZERS

__all__ = ["DTYPES", "FORGET", "REDUCE", "TrainOptions"]

#: Number formats of the model by name.
DTYPES: dict[str, np.dtype] = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}

#: What happens to the hot table before it learns again.
FORGET = ("nothing", "age", "clear")


#: How the ranks of a data-parallel run add up gradients.
REDUCE = ("ordered", "sum")


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What decides the result of a run; a checkpoint can be resumed under the same ones only.

    Parameters
    ----------
    batch : int
        Samples of a mini-batch.
    dim : int
        Numbers in an embedding vector.
    bottom, top : tuple of int
        Hidden layers of the MLPs.
    optimizer : str
        ``"sgd"``, ``"adagrad"`` or ``"rowwise-adagrad"``.
    lr : float
        Learning rate.
    dtype : str
        ``"float32"`` or ``"float64"``.
    epochs : int
        Passes over the log.
    relearn : int
        How often an epoch the hot table learns again; before the first step it always learns.
    learn_share : float
        Share of the mini-batches of an epoch, the most recent ones, that it learns from.
    forget : str
        What comes before learning again: ``"nothing"``, ``"age"`` or ``"clear"``.
    profile : bool
        Before the first step LOAD the most frequent rows instead of learning.
    reduce : str
        How several ranks add up gradients. ``"ordered"``: sample by sample, in their order, which
        gives the bits of a single process. ``"sum"``: each rank its own, then all ranks', which
        sends less when mini-batches are large.
    seed : int
        Of the initial values.

    Raises
    ------
    ValueError
        A value outside its range.
    """

    batch: int = 128
    dim: int = 16
    bottom: tuple[int, ...] = (512, 256, 64)
    top: tuple[int, ...] = (512, 256)
    optimizer: str = "sgd"
    lr: float = 0.1
    dtype: str = "float32"
    epochs: int = 1
    relearn: int = 3
    learn_share: float = 0.2
    forget: str = "nothing"
    profile: bool = False
    reduce: str = "ordered"
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "dim", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("relearn", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not 0 < self.learn_share <= 1:
            raise ValueError(f"learn share must be above 0 and at most 1, not {self.learn_share}")
        if not (np.isfinite(self.lr) and self.lr > 0):
            raise ValueError(f"the learning rate must be above 0 and finite, not {self.lr}")
        choices: dict[str, Iterable[str]] = {
            "optimizer": OPTIMIZERS,
            "dtype": DTYPES,
            "forget": FORGET,
            "reduce": REDUCE,
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )

    def check_epoch(self, steps: int) -> None:
        """Whether an epoch of so many mini-batches is long enough.

        Raises
        ------
        ValueError
            It is not.
        """
        if self.relearn >= steps:
            raise ValueError(
                f"relearn must be below the {steps} mini-batches of an epoch, not {self.relearn}"
            )

    @property
    def numpy_dtype(self) -> np.dtype:
        """Number format of the model."""
        return DTYPES[self.dtype]

    def as_dict(self) -> dict[str, Any]:
        """All options, ready for JSON."""
        return asdict(self) | {"bottom": list(self.bottom), "top": list(self.top)}
