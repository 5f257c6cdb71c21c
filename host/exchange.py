"""What the ranks of a data-parallel run tell each other; here: nothing, for a run of one process.

Every rank trains on its part of each mini-batch, on its own device. MLPs and hot rows are replicas;
a cold row has one owner, the only rank that changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from hotline.host.errors import CommandError, CommandSkippedError

__all__ = ["DEVICE_ERRORS", "Exchange", "PeerError"]

#: What a device that fails, or hangs, raises in the trainer.
DEVICE_ERRORS = (CommandError, CommandSkippedError, TimeoutError)

_T = TypeVar("_T")


class PeerError(RuntimeError):
    """A command has failed on the device of another rank, so this one stops as well."""


class Exchange:
    """A single process.

    Members
    -------
    rank, world : int
        Number of this process, and of processes.
    """

    rank = 0
    world = 1

    def owned(self, keys: np.ndarray) -> np.ndarray:
        """Which keys, uint64 [n], name rows that this rank owns: bool [n]."""
        return np.ones(len(keys), bool)

    def barrier(self) -> None:
        """Return when all ranks have come here."""

    def any(self, flag: bool) -> bool:
        """Whether `flag` is true on some rank."""
        return flag

    def attempt(self, action: Callable[[], _T]) -> _T:
        """The result of `action`, or an error on all ranks if it has failed on one.

        Raises
        ------
        CommandError, CommandSkippedError, TimeoutError
            It has failed here.
        PeerError
            It has failed elsewhere.
        """
        error: Exception | None = None
        try:
            result = action()
        except DEVICE_ERRORS as caught:
            error = caught
        if self.any(error is not None):
            raise error or PeerError("a command has failed on the device of another rank")
        return result

    def sum(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace tensors by their sums over the ranks, the same bits on all."""

    def concatenate(self, values: torch.Tensor) -> torch.Tensor:
        """The tensors [n, ...] of all ranks, one after the other; n may differ."""
        return values

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, which may be anything that can be pickled."""
        return [value]

    def to_owners(
        self, keys: np.ndarray, gradients: torch.Tensor
    ) -> tuple[np.ndarray, torch.Tensor]:
        """Send gradients of cold rows to their owners.

        Parameters
        ----------
        keys : np.ndarray
            Rows, uint64 [n].
        gradients : torch.Tensor
            Of their weights, [n, dim].

        Returns
        -------
        np.ndarray, torch.Tensor
            What this rank has got, in the order of the ranks, and each one's in its own order.
        """
        return keys, gradients
