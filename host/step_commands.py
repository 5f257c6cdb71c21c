"""The commands of a training step, and the device memory that they work on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from hotline.golden.descriptor import Completion
from hotline.host import commands
from hotline.host.account import Account
from hotline.host.device import Device
from hotline.host.device_memory import Buffer
from hotline.host.future import Future
from hotline.host.micro_batch import Split
from hotline.host.mini_batches import MiniBatches
from hotline.host.row_homes import RowHomes
from hotline.host.samples import Samples

__all__ = ["StepCommands"]


@dataclass(frozen=True)
class _Buffers:
    """Device memory of one mini-batch; there are two, because the next one is split ahead."""

    indices: Buffer
    lengths: Buffer
    lists: Buffer
    rows: Buffer
    keys: Buffer


class StepCommands:
    """SPLIT, GATHER and SCATTER of mini-batches.

    Parameters
    ----------
    device : Device
        What runs them.
    batches : MiniBatches
        The mini-batches.
    homes : RowHomes
        The rows.
    account : Account
        Where they are counted.
    rank, world : int
        Which part of each mini-batch this process trains on.
    """

    def __init__(
        self,
        device: Device,
        batches: MiniBatches,
        homes: RowHomes,
        account: Account,
        rank: int,
        world: int,
    ) -> None:
        self.device, self.batches, self.homes, self.account = device, batches, homes, account
        self._rank, self._world = rank, world
        self._tables = batches.log.num_tables
        self._stride = device.config.row_stride(homes.row_bytes)
        self._buffers = (self._allocate(), self._allocate())

    def _allocate(self) -> _Buffers:
        device, most = self.device, self.batches.most_keys
        samples = min(self.batches.batch, len(self.batches.log))
        return _Buffers(
            device.allocate(4 * most),
            device.allocate(2 * samples * self._tables),
            device.allocate(device.list_bytes(samples, most)),
            device.allocate(most * self._stride),
            device.allocate(8 * most),
        )

    def part(self, number: int) -> tuple[int, int]:
        """First sample that this rank trains on in step `number`, and the end."""
        start, stop = self.batches.span(number)
        size = stop - start
        return (
            start + size * self._rank // self._world,
            start + size * (self._rank + 1) // self._world,
        )

    def split(self, number: int) -> Future[Split]:
        """Queue SPLIT of step `number`."""
        buffers = self._buffers[number % 2]
        indices, lengths = self.batches.indices(*self.part(number))
        samples = Samples.place(indices, self._tables, lengths, buffers.indices, buffers.lengths)
        return self.device.submit(commands.split(samples, buffers.lists))

    def count_split(self, number: int, split: Split) -> None:
        """Count a SPLIT that has succeeded."""
        samples = split.samples
        inputs = 4 * samples.num_keys + (0 if samples.lengths is None else samples.lengths.nbytes)
        lists = (split.popular, split.nonpopular, split.popular_slots, split.nonpopular_slots)
        outputs = sum(part.nbytes for part in (*lists, split.keys))
        self.account.command(
            number, "SPLIT", split.completion, host_to_device=inputs, device_to_host=outputs
        )

    def gather_last(self, number: int, split: Split) -> Future[Completion] | None:
        """Queue the GATHER of what the last SPLIT has found cold; None if that is nothing."""
        if len(split.keys) == 0:
            return None
        rows = self._buffers[number % 2].rows
        return self.device.submit(commands.gather_last(self._tables, rows))

    def gather(self, number: int, keys: np.ndarray) -> None:
        """Fetch the rows `keys`, uint64 [n]."""
        if len(keys):
            buffers = self._buffers[number % 2]
            buffers.keys.data[: keys.nbytes] = keys.view(np.uint8)
            done = self.device.gather(len(keys), self._tables, buffers.keys.address, buffers.rows)
            self.count_gather(number, len(keys), done)

    def count_gather(self, number: int, rows: int, done: Completion) -> None:
        """Count a GATHER that has succeeded."""
        size = rows * self.homes.row_bytes
        self.account.command(
            number, "GATHER", done, host_to_device=size + 8 * rows, device_to_gpu=size
        )

    def scatter(self, number: int, keys: np.ndarray, rows: torch.Tensor) -> None:
        """Write rows [n, width] to the homes `keys`, uint64 [n], each once."""
        if len(keys) == 0:
            return
        buffers = self._buffers[number % 2]
        self.rows(number)[: len(rows)] = rows
        buffers.keys.data[: keys.nbytes] = keys.view(np.uint8)
        done = self.device.scatter(len(keys), self._tables, buffers.keys.address, buffers.rows)
        size = len(keys) * self.homes.row_bytes
        moved = {"host_to_device": keys.nbytes, "gpu_to_device": size, "device_to_host": size}
        self.account.command(number, "SCATTER", done, **moved)

    def rows(self, number: int) -> torch.Tensor:
        """The gathered rows of a step: a view [most keys, width]."""
        most = self.batches.most_keys
        data = self._buffers[number % 2].rows.data[: most * self._stride]
        return torch.from_numpy(
            data.view(self.homes.dtype).reshape(most, -1)[:, : self.homes.width]
        )
