"""Mini-batches through the device with look-ahead: the next SPLIT runs before this one's SCATTER.

For mini-batch n the ring gets, in this order::

    SPLIT n | GATHER n | SPLIT n+1 |  (training on n)  | SCATTER n | GATHER n+1 | SPLIT n+2 | ...

So the popular samples of a mini-batch are known before the one before it is finished, its cold rows
are gathered while they train, and GATHER n+1 sees the rows that SCATTER n has written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from hotline.golden.descriptor import Completion, Regions
from hotline.host import commands
from hotline.host.batch import Batch
from hotline.host.device import Device
from hotline.host.future import Future
from hotline.host.micro_batch import MicroBatch, Split
from hotline.host.samples import Samples

__all__ = ["Lookahead", "Step"]


class _Slot:
    """One of the two sets of buffers, in which every second mini-batch lives."""

    def __init__(self, device: Device, count: int, num_keys: int, stride: int) -> None:
        self.lists = device.allocate(device.list_bytes(count, num_keys))
        self.rows = device.allocate(num_keys * stride)


class Step:
    """One mini-batch on its way.

    Members
    -------
    number : int
        Of the mini-batch, from 0 on.
    split : Split
        What SPLIT said.
    popular, nonpopular : MicroBatch
        With indices into the hot buffer, with the gathered rows behind it.
    gather : Future of Completion
        GATHER of this mini-batch.
    scattered : Future of Completion or None
        SCATTER, once :meth:`scatter` was called.
    """

    def __init__(
        self, device: Device, number: int, slot: _Slot, split: Split, before: Step | None
    ) -> None:
        self.number = number
        self.split = split
        self.popular: MicroBatch = split.popular_batch()
        self.nonpopular: MicroBatch = split.nonpopular_batch()
        self.scattered: Future[Completion] | None = None
        self._device, self._slot, self._before = device, slot, before
        gather = commands.gather_last(split.samples.num_tables, slot.rows)
        # Rows that were not written back must not be read again.
        if before is not None and before.scattered is not None:
            gather = gather.after(before.scattered)
        self.gather = device.submit(gather)

    def rows(self, row_bytes: int, dtype: type | np.dtype = np.float32) -> np.ndarray:
        """Wait for GATHER; the rows [g, elements], in place: what is changed is scattered.

        Parameters
        ----------
        row_bytes : int
            Of all tables.
        dtype : dtype
            Of the elements.
        """
        if self._before is not None and self._before.scattered is not None:
            self._before.scattered.result()
        self.gather.result()
        stride = self._device.config.row_stride(row_bytes)
        count = len(self.split.keys)
        dense = self._slot.rows.data[: count * stride].reshape(count, stride)
        return dense[:, :row_bytes].view(dtype)

    def scatter(self, *, add: bool = False) -> Future[Completion]:
        """Queue SCATTER of all rows; the step must not change them any more."""
        samples = self.split.samples
        keys = Regions.of(self._slot.lists.address, samples.count, samples.num_keys).keys
        command = commands.scatter(
            len(self.split.keys), samples.num_tables, keys, self._slot.rows, add=add
        )
        self.scattered = self._device.submit(command.after(self.gather))
        return self.scattered


class Lookahead:
    """Iterates over the steps of mini-batches. The hot table must not change meanwhile.

    Parameters
    ----------
    device : Device
        With tables and hot buffers, and a committed hot table.
    batches : iterable of Batch, Samples or np.ndarray
        At most `count` samples with `num_keys` indices in all. An array is a dense batch.
    count, num_keys : int
        Room for a mini-batch.
    row_bytes : int
        The longest row of all tables.

    Notes
    -----
    The iterator frees its buffers, and what it has mapped, when it ends for any reason.
    """

    def __init__(
        self,
        device: Device,
        batches: Iterable[Batch | Samples | np.ndarray],
        *,
        count: int,
        num_keys: int,
        row_bytes: int,
    ) -> None:
        if count < 1 or num_keys < 1:
            raise ValueError(
                f"there must be room for at least one sample and one key, not {count} and "
                f"{num_keys}"
            )
        self.device = device
        self._batches = iter(batches)
        self._count, self._num_keys = count, num_keys
        self._stride = device.config.row_stride(row_bytes)
        #: Mini-batches on their way; None for one that the caller has placed.
        self._placed: list[Samples | None] = []

    def __iter__(self) -> Iterator[Step]:
        device = self.device
        slots = [_Slot(device, self._count, self._num_keys, self._stride) for _ in range(2)]
        step: Step | None = None
        try:
            ahead = self._split(slots[0])
            number = 0
            while ahead is not None:
                slot = slots[number % 2]
                split = ahead.result()
                step = Step(device, number, slot, split, step)
                if number >= 1:
                    self._release_oldest()
                ahead = self._split(slots[(number + 1) % 2])
                yield step
                step._before = None
                number += 1
            if step is not None and step.scattered is not None:
                step.scattered.result()
        finally:
            device.drain()
            while self._placed:
                self._release_oldest()
            for slot in slots:
                for buffer in (slot.lists, slot.rows):
                    device.unmap(buffer.address)

    def _split(self, slot: _Slot) -> Future[Split] | None:
        """Queue the SPLIT of the next mini-batch; None if there is none."""
        batch = next(self._batches, None)
        if batch is None:
            return None
        given = isinstance(batch, Samples)
        samples = batch if isinstance(batch, Samples) else self.device.place(batch)
        self._placed.append(None if given else samples)
        if samples.count > self._count or samples.num_keys > self._num_keys:
            raise ValueError(
                f"a mini-batch has {samples.count} samples with {samples.num_keys} indices, there "
                f"is room for {self._count} with {self._num_keys}"
            )
        return self.device.submit(commands.split(samples, slot.lists))

    def _release_oldest(self) -> None:
        placed = self._placed.pop(0)
        if placed is not None:
            self.device.release(placed)
