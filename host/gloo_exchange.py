"""The exchange between the ranks of a data-parallel run, over torch.distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import distributed

from hotline.host.exchange import Exchange
from hotline.host.row_homes import unpack_keys

__all__ = ["GlooExchange"]


class GlooExchange(Exchange):
    """Collectives of the default process group, which must exist and take CPU tensors.

    All ranks must call the same methods in the same order. A row's owner is (table + row) modulo
    the number of ranks, so that each owns a share of every table.
    """

    def __init__(self) -> None:
        self.rank = distributed.get_rank()
        self.world = distributed.get_world_size()

    def owners(self, keys: np.ndarray) -> np.ndarray:
        """Rank that owns each row, int64 [n]."""
        tables, rows = unpack_keys(keys)
        return (tables + rows) % self.world

    def owned(self, keys: np.ndarray) -> np.ndarray:
        return self.owners(keys) == self.rank

    def barrier(self) -> None:
        distributed.barrier()

    def any(self, flag: bool) -> bool:
        found = torch.tensor([int(flag)])
        distributed.all_reduce(found, distributed.ReduceOp.MAX)
        return bool(found)

    def sum(self, tensors: Sequence[torch.Tensor]) -> None:
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(flat)
        for tensor, part in zip(
            tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True
        ):
            tensor.copy_(part.view_as(tensor))

    def concatenate(self, values: torch.Tensor) -> torch.Tensor:
        sizes = self._sizes(torch.tensor([len(values)])).flatten().tolist()
        padded = values.new_zeros((max(sizes), *values.shape[1:]))
        padded[: len(values)] = values
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    def gather(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self.world
        distributed.all_gather_object(values, value)
        return values

    def to_owners(
        self, keys: np.ndarray, gradients: torch.Tensor
    ) -> tuple[np.ndarray, torch.Tensor]:
        owners = self.owners(keys)
        order = np.argsort(owners, kind="stable")
        sent = np.bincount(owners, minlength=self.world)
        received = self._sizes(torch.from_numpy(sent))[:, self.rank].tolist()
        # PyTorch has little for uint64; the bits are the same.
        signed = torch.from_numpy(keys[order].view(np.int64))
        own_keys = signed.new_empty(sum(received))
        own_gradients = gradients.new_empty((sum(received), gradients.shape[1]))
        for target, source in (
            (own_keys, signed),
            (own_gradients, gradients[torch.from_numpy(order)]),
        ):
            distributed.all_to_all_single(target, source, received, sent.tolist())
        return own_keys.numpy().view(np.uint64), own_gradients

    def _sizes(self, own: torch.Tensor) -> torch.Tensor:
        """The small tensors of all ranks, [world, n]."""
        parts = [torch.empty_like(own) for _ in range(self.world)]
        distributed.all_gather(parts, own)
        return torch.stack(parts)
