"""From the lists of SPLIT to two micro-batches that an embedding bag takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from hotline.host.micro_batch import Split

__all__ = ["MicroBatch", "StepPlan", "plan_step", "sum_by_key"]

_COLD = np.uint32(0x8000_0000)


@dataclass(frozen=True)
class MicroBatch:
    """Samples of a mini-batch that are trained together.

    Parameters
    ----------
    samples : torch.Tensor
        Their numbers in the mini-batch, int64 [n].
    rows : torch.Tensor
        For each index, which of the rows of the step it means, int64 [keys].
    offsets : torch.Tensor
        Where each bag begins in `rows`, int64 [n * T].
    """

    samples: torch.Tensor
    rows: torch.Tensor
    offsets: torch.Tensor

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True)
class StepPlan:
    """Which rows a step needs, and by what numbers its micro-batches know them.

    The rows are those in the hot buffer first, the cold ones after them, each once.

    Parameters
    ----------
    slots : np.ndarray
        Slots of the hot rows, ascending, int64 [hot].
    keys : np.ndarray
        Keys of the cold rows, uint64 [cold].
    copies : np.ndarray
        Where the device has put each cold row among the gathered ones; if there are several copies,
        the first; int64 [cold].
    popular, nonpopular : MicroBatch
        The popular one needs hot rows alone.
    rows, bags : torch.Tensor
        Row and bag (sample * T + table) of each index of the mini-batch, in its order; int64.
    """

    slots: np.ndarray
    keys: np.ndarray
    copies: np.ndarray
    popular: MicroBatch
    nonpopular: MicroBatch
    rows: torch.Tensor
    bags: torch.Tensor

    def row_gradients(self, bag_gradients: torch.Tensor) -> torch.Tensor:
        """Gradients of the rows, [hot + cold, dim], from those of the bags, [n * T, dim].

        They are summed in the order of the samples, however these were split.
        """
        count = len(self.slots) + len(self.keys)
        result = bag_gradients.new_zeros((count, bag_gradients.shape[1]))
        return result.index_add_(0, self.rows, bag_gradients[self.bags])


def plan_step(
    split: Split, num_tables: int, lengths: np.ndarray | None, *, deduplicated: bool
) -> StepPlan:
    """What to train on after SPLIT.

    Parameters
    ----------
    split : Split
        What SPLIT has written.
    num_tables : int
        Tables.
    lengths : np.ndarray or None
        Bag lengths of the mini-batch, uint16 [n, T]; None for one-hot.
    deduplicated : bool
        Whether the device removes duplicates at all (`dedup_entries`). If it does, it says in the
        record whether its store was too small for some.
    """
    is_cold = split.nonpopular_slots >= _COLD
    hot_slots = split.nonpopular_slots[~is_cold]
    slots, hot_rows = np.unique(
        np.concatenate([split.popular_slots, hot_slots]).astype(np.int64), return_inverse=True
    )
    gathered = (split.nonpopular_slots[is_cold] - _COLD).astype(np.int64)
    if deduplicated and split.completion.words[5] == 0:
        keys, copies = split.keys, np.arange(len(split.keys))
    else:
        keys, copies, place = np.unique(split.keys, return_index=True, return_inverse=True)
        gathered = place[gathered]
    nonpopular_rows = np.empty(len(split.nonpopular_slots), np.int64)
    nonpopular_rows[~is_cold] = hot_rows[len(split.popular_slots) :]
    nonpopular_rows[is_cold] = len(slots) + gathered
    popular_rows = hot_rows[: len(split.popular_slots)]

    count = len(split.popular) + len(split.nonpopular)
    if lengths is None:
        lengths = np.ones((count, num_tables), np.uint16)
    sizes = lengths.sum(axis=1, dtype=np.int64)
    rows = np.empty(int(sizes.sum()), np.int64)
    of_popular = np.zeros(count, bool)
    of_popular[split.popular] = True
    of_popular = np.repeat(of_popular, sizes)
    rows[of_popular], rows[~of_popular] = popular_rows, nonpopular_rows
    bags = np.repeat(np.arange(count * num_tables), lengths.reshape(-1))
    return StepPlan(
        slots,
        keys,
        copies,
        _micro_batch(split.popular, popular_rows, lengths),
        _micro_batch(split.nonpopular, nonpopular_rows, lengths),
        torch.from_numpy(rows),
        torch.from_numpy(bags),
    )


def sum_by_key(keys: np.ndarray, parts: torch.Tensor) -> tuple[np.ndarray, torch.Tensor]:
    """Distinct keys [m], ascending, and for each the sum of its parts [n, dim], in their order."""
    distinct, places = np.unique(keys, return_inverse=True)
    sums = parts.new_zeros((len(distinct), parts.shape[1]))
    return distinct, sums.index_add_(0, torch.from_numpy(places), parts)


def _micro_batch(numbers: np.ndarray, rows: np.ndarray, lengths: np.ndarray) -> MicroBatch:
    samples = numbers.astype(np.int64)
    bags = lengths[samples].astype(np.int64).reshape(-1)
    offsets = np.cumsum(bags) - bags
    return MicroBatch(*map(torch.from_numpy, (samples, np.ascontiguousarray(rows), offsets)))
