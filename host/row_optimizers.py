"""Optimisers of embedding rows whose state lives in the row itself.

A row is ``[weights | state]`` in one piece of memory. So whatever moves a row (GATHER, SCATTER,
FILL, BACK) moves its state as well, and the device need not know what a row means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch

__all__ = ["EPSILON", "OPTIMIZERS", "RowOptimizer", "dense_optimizer", "row_optimizer"]

#: Added to the root in Adagrad: the value of FBGEMM and TorchRec.
EPSILON = 1e-8


class RowOptimizer(ABC):
    """Updates rows in place.

    Parameters
    ----------
    lr : float
        Learning rate.
    dim : int
        Weights in a row.

    Members
    -------
    width : int
        Numbers in a row, weights and state.
    """

    def __init__(self, lr: float, dim: int) -> None:
        self.lr = lr
        self.dim = dim
        self.width = dim + self.state_width(dim)

    @staticmethod
    @abstractmethod
    def state_width(dim: int) -> int:
        """Numbers of state in a row of `dim` weights; they begin at zero."""

    @abstractmethod
    def update(self, rows: torch.Tensor, gradients: torch.Tensor) -> None:
        """One step on `rows` [n, width], in place, with `gradients` [n, dim] of their weights.

        A row must occur once.
        """


class RowSgd(RowOptimizer):
    """Plain stochastic gradient descent: no state."""

    @staticmethod
    def state_width(dim: int) -> int:
        return 0

    def update(self, rows: torch.Tensor, gradients: torch.Tensor) -> None:
        rows.sub_(gradients, alpha=self.lr)


class RowAdagrad(RowOptimizer):
    """Adagrad (Duchi et al., 2011): a sum of squares for every weight."""

    @staticmethod
    def state_width(dim: int) -> int:
        return dim

    def update(self, rows: torch.Tensor, gradients: torch.Tensor) -> None:
        weights, sums = rows[:, : self.dim], rows[:, self.dim :]
        sums.add_(gradients.square())
        weights.add_(gradients / (sums.sqrt() + EPSILON), alpha=-self.lr)


class RowWiseAdagrad(RowOptimizer):
    """Adagrad with one sum for a row: the mean of its squared gradients."""

    @staticmethod
    def state_width(dim: int) -> int:
        return 1

    def update(self, rows: torch.Tensor, gradients: torch.Tensor) -> None:
        weights, sums = rows[:, : self.dim], rows[:, self.dim :]
        sums.add_(gradients.square().mean(dim=1, keepdim=True))
        weights.add_(gradients / (sums.sqrt() + EPSILON), alpha=-self.lr)


#: Optimisers by the name that users give.
OPTIMIZERS: dict[str, type[RowOptimizer]] = {
    "sgd": RowSgd,
    "adagrad": RowAdagrad,
    "rowwise-adagrad": RowWiseAdagrad,
}


def row_optimizer(name: str, lr: float, dim: int) -> RowOptimizer:
    """The optimiser `name` for rows of `dim` weights.

    Raises
    ------
    ValueError
        There is no such optimiser.
    """
    if name not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, not {name!r}")
    return OPTIMIZERS[name](lr, dim)


def dense_optimizer(
    name: str, parameters: Iterable[torch.nn.Parameter], lr: float
) -> torch.optim.Optimizer:
    """PyTorch's optimiser for the parameters of the MLPs; row-wise Adagrad is Adagrad there."""
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=lr)
    return torch.optim.Adagrad(parameters, lr=lr, eps=EPSILON)
