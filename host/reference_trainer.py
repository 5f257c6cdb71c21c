"""The same model trained without Hotline: plain PyTorch over whole mini-batches and whole tables.

It shares the model, its initial values and the reading of the log with the trainer, and nothing of
what it is there to check: no split, no homes of rows, no optimiser of rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from hotline.host.click_log import ClickLog
from hotline.host.dlrm import Dlrm, DlrmShape, initial_table, sample_losses
from hotline.host.mini_batches import MiniBatches
from hotline.host.row_optimizers import EPSILON
from hotline.host.train_options import TrainOptions

__all__ = ["ReferenceTrainer", "relative_error"]


class ReferenceTrainer:
    """One process, one device, embedding tables as parameters of PyTorch.

    Parameters
    ----------
    log : ClickLog
        What to train on.
    options : TrainOptions
        How; what concerns the hot table is not used.

    Members
    -------
    position : int
        Steps done.
    """

    def __init__(self, log: ClickLog, options: TrainOptions) -> None:
        self.log, self.options = log, options
        dtype = options.numpy_dtype
        self.batches = MiniBatches(log, options.batch, dtype)
        rng = np.random.default_rng(options.seed)
        shape = DlrmShape(
            log.dense.shape[1], log.num_tables, options.dim, options.bottom, options.top
        )
        self.model = Dlrm(shape, rng, torch.from_numpy(np.zeros(0, dtype)).dtype)
        self.tables = nn.ParameterList(
            torch.from_numpy(initial_table(options.seed, table, rows, options.dim).astype(dtype))
            for table, rows in enumerate(log.table_rows)
        )
        self.position = 0
        self._row_sums = [torch.zeros(rows, dtype=self.tables[0].dtype) for rows in log.table_rows]
        plain = [*self.model.parameters()]
        self._optimizer: torch.optim.Optimizer
        if options.optimizer == "sgd":
            self._optimizer = torch.optim.SGD([*plain, *self.tables], lr=options.lr)
        else:
            rows = [] if options.optimizer == "rowwise-adagrad" else [*self.tables]
            self._optimizer = torch.optim.Adagrad([*plain, *rows], lr=options.lr, eps=EPSILON)

    def step(self) -> float:
        """One step; returns the mean loss of the mini-batch before it."""
        start, stop = self.batches.span(self.position)
        samples = torch.arange(start, stop)
        bags = torch.stack([*self._bags(start, stop)], dim=1)
        logits = self.model(self.batches.dense(samples), bags)
        loss = sample_losses(logits, self.batches.targets(samples)).mean()
        for parameter in [*self.model.parameters(), *self.tables]:
            parameter.grad = None
        loss.backward()
        for table in self.tables:
            table.grad = _summed(table.grad)
        with torch.sparse.check_sparse_tensor_invariants(False):
            self._optimizer.step()
        if self.options.optimizer == "rowwise-adagrad":
            self._rowwise_adagrad()
        self.position += 1
        return float(loss.detach())

    def _bags(self, start: int, stop: int) -> Iterable[torch.Tensor]:
        """Pooled vectors [n, dim] of each table."""
        indices, lengths = self.batches.indices(start, stop)
        keys = self.batches.keys(start, stop)
        tables = keys >> np.uint64(32)
        for table, weights in enumerate(self.tables):
            rows = torch.from_numpy(indices[tables == table].astype(np.int64))
            if lengths is None:
                offsets = torch.arange(stop - start)
            else:
                bag = torch.from_numpy(lengths[:, table].astype(np.int64))
                offsets = torch.cumsum(bag, 0) - bag
            yield functional.embedding_bag(rows, weights, offsets, mode="sum", sparse=True)

    @torch.no_grad()
    def _rowwise_adagrad(self) -> None:
        for table, sums in zip(self.tables, self._row_sums, strict=True):
            rows, values = table.grad.indices()[0], table.grad.values()
            sums[rows] += values.pow(2).mean(dim=1)
            scaled = values / (sums[rows].sqrt() + EPSILON)[:, None]
            table.index_add_(0, rows, scaled, alpha=-self.options.lr)

    def state(self) -> dict[str, torch.Tensor]:
        """All parameters and optimiser state by name, as :func:`trained_state` names them."""
        result = {name: value.detach() for name, value in self.model.named_parameters()}
        state = self._optimizer.state
        for name, parameter in self.model.named_parameters():
            if self.options.optimizer != "sgd":
                result[f"{name}.sum"] = state[parameter]["sum"]
        for table, weights in enumerate(self.tables):
            result[f"table{table}"] = weights.detach()
            if self.options.optimizer == "adagrad":
                result[f"table{table}.sum"] = state[weights]["sum"]
            elif self.options.optimizer == "rowwise-adagrad":
                result[f"table{table}.sum"] = self._row_sums[table][:, None]
        return result


def _summed(gradient: torch.Tensor) -> torch.Tensor:
    """A sparse gradient with each row once.

    Its parts are added in the order of the samples, which `coalesce` does not promise; without
    this SGD would round a row once for each sample that has it.
    """
    rows, places = torch.unique(gradient._indices()[0], return_inverse=True)
    parts = gradient._values()
    sums = parts.new_zeros((len(rows), parts.shape[1])).index_add_(0, places, parts)
    return torch.sparse_coo_tensor(
        rows.unsqueeze(0), sums, gradient.shape, is_coalesced=True, check_invariants=False
    )


def relative_error(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """|a - b|_2 / |b|_2 in double precision; 0 if both are zero everywhere."""
    difference = float(torch.linalg.vector_norm(ours.double() - theirs.double()))
    if difference == 0.0:
        return 0.0
    size = float(torch.linalg.vector_norm(theirs.double()))
    return difference / size if size else float("inf")
