"""A click log cut into mini-batches, as the device and the model take them."""

from __future__ import annotations

import numpy as np
import torch

from hotline.host.click_log import ClickLog
from hotline.host.dlrm import dense_inputs

__all__ = ["MiniBatches"]


class MiniBatches:
    """Mini-batches in the order of the log; the last one of an epoch may be smaller.

    Parameters
    ----------
    log : ClickLog
        All samples.
    batch : int
        Samples of a mini-batch.
    dtype : np.dtype
        Of what the model takes.

    Members
    -------
    most_keys : int
        The most indices of a mini-batch.
    """

    def __init__(self, log: ClickLog, batch: int, dtype: np.dtype) -> None:
        self.log, self.batch = log, batch
        self._offsets = log.offsets
        starts = np.arange(0, len(log), batch)
        stops = np.minimum(starts + batch, len(log))
        self.most_keys = int((self._offsets[stops] - self._offsets[starts]).max())
        self._dense = torch.from_numpy(dense_inputs(log.dense, dtype))
        # Some formats write -1 where there was no click.
        self.labels = (log.labels > 0).astype(dtype)
        self._targets = torch.from_numpy(self.labels)

    def __len__(self) -> int:
        """Mini-batches in an epoch."""
        return -(-len(self.log) // self.batch)

    def span(self, number: int) -> tuple[int, int]:
        """First sample of mini-batch `number` (counted over all epochs), and the end."""
        start = number % len(self) * self.batch
        return start, min(start + self.batch, len(self.log))

    def indices(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows, uint32 [keys], and bag lengths, uint16 [n, T] or None, of samples start..stop-1."""
        lengths = None if self.log.lengths is None else self.log.lengths[start:stop]
        return self.log.indices[self._offsets[start] : self._offsets[stop]], lengths

    def keys(self, start: int, stop: int) -> np.ndarray:
        """Key (table << 32) + row of each index of samples start..stop-1, uint64 [keys]."""
        rows, lengths = self.indices(start, stop)
        tables = np.tile(np.arange(self.log.num_tables, dtype=np.uint64), stop - start)
        if lengths is not None:
            tables = np.repeat(tables, lengths.ravel())
        return (tables << np.uint64(32)) | rows

    def dense(self, samples: torch.Tensor) -> torch.Tensor:
        """Numerical features of samples (numbers in the log, int64), [n, D]."""
        return self._dense[samples]

    def targets(self, samples: torch.Tensor) -> torch.Tensor:
        """1 where there was a click, else 0, [n]."""
        return self._targets[samples]
