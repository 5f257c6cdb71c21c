"""Trains a TorchRec model, such as its DLRM, with its embedding rows kept by a device.

``DeviceEmbeddingBags`` takes the place of the model's ``EmbeddingBagCollection``; the rest of the
model stays as it is. Every TorchRec table is a table of the device, its rows
``[weights | optimiser state]`` live in host memory and, while they are hot, in the hot buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torchrec import EmbeddingBagCollection, KeyedJaggedTensor, KeyedTensor
from torchrec.modules.embedding_configs import EmbeddingBagConfig, PoolingType

from hotline.golden.descriptor import Regions
from hotline.host import commands
from hotline.host.batch import Batch
from hotline.host.device import Device
from hotline.host.device_memory import Buffer
from hotline.host.exchange import Exchange
from hotline.host.row_homes import RowHomes, pack_keys
from hotline.host.row_optimizers import RowOptimizer
from hotline.host.step_plan import MicroBatch, plan_step

__all__ = ["DeviceEmbeddingBags", "TorchRecTrainer"]


@dataclass(frozen=True)
class _Bags:
    """What the model gets instead of a KeyedJaggedTensor: a micro-batch and the rows it needs."""

    part: MicroBatch
    rows: torch.Tensor


class DeviceEmbeddingBags(nn.Module):
    """An ``EmbeddingBagCollection`` whose rows live where a device keeps them.

    Called with a KeyedJaggedTensor it looks rows up in whichever home they are, without gradients:
    for evaluation. For training see :class:`TorchRecTrainer`.

    Parameters
    ----------
    bags : EmbeddingBagCollection
        Sum pooling, one feature a table, all of one width, no weights. The rows begin with its
        values.
    device : Device
        Fresh from reset.
    optimizer : RowOptimizer
        Says how wide a row is.

    Members
    -------
    homes : RowHomes
        The rows.
    features : list of str
        The feature of each table, in the order of the device's tables.
    """

    def __init__(
        self, bags: EmbeddingBagCollection, device: Device, optimizer: RowOptimizer
    ) -> None:
        super().__init__()
        self._configs = bags.embedding_bag_configs()
        _check(bags, self._configs, device, optimizer)
        self.features = [config.feature_names[0] for config in self._configs]
        self.dim = self._configs[0].embedding_dim
        weights = [bags.embedding_bags[config.name].weight for config in self._configs]
        dtype = weights[0].detach().numpy().dtype
        rows = [config.num_embeddings for config in self._configs]
        self.homes = RowHomes(device, rows, optimizer.width, dtype, Exchange())
        for table, weight in zip(self.homes.tables, weights, strict=True):
            table[:, : self.dim] = weight.detach().numpy()

    def embedding_bag_configs(self) -> list[EmbeddingBagConfig]:
        """The tables, as TorchRec describes them."""
        return self._configs

    def is_weighted(self) -> bool:
        """False: bags have no weights."""
        return False

    def forward(self, features: KeyedJaggedTensor | _Bags) -> KeyedTensor:
        if isinstance(features, _Bags):
            part, rows = features.part, features.rows
        else:
            batch = self.batch(features)
            keys = pack_keys(_tables_of(batch), batch.indices)
            rows = torch.from_numpy(self.homes.read(keys)[:, : self.dim])
            sizes = _lengths_of(batch).astype(np.int64).reshape(-1)
            offsets = torch.from_numpy(np.cumsum(sizes) - sizes)
            part = MicroBatch(torch.arange(batch.count), torch.arange(len(keys)), offsets)
        pooled = functional.embedding_bag(part.rows, rows, part.offsets, mode="sum")
        widths = [self.dim] * len(self.features)
        return KeyedTensor(self.features, widths, pooled.view(len(part), -1))

    def batch(self, features: KeyedJaggedTensor) -> Batch:
        """The samples as the device takes them; features that have no table are left out.

        Raises
        ------
        ValueError
            A table's feature is missing.
        """
        names = features.keys()
        for feature in self.features:
            if feature not in names:
                raise ValueError(f"the batch has no feature {feature!r}, only {', '.join(names)}")
        ours = features.permute([names.index(feature) for feature in self.features])
        return Batch.from_kjt(self.features, ours.values().numpy(), ours.lengths().numpy())

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Name and current weights (a copy) of each table."""
        for config, rows in zip(self._configs, self.homes.current(), strict=True):
            yield config.name, torch.from_numpy(rows[:, : self.dim])


class TorchRecTrainer:
    """Steps of a TorchRec model with a device in the loop.

    Parameters
    ----------
    device : Device
        Fresh from reset.
    model : nn.Module
        Called with numerical features and a KeyedJaggedTensor; gives logits [n] or [n, 1]. Its one
        EmbeddingBagCollection is replaced.
    row_optimizer : callable
        Makes the optimiser of rows for their width, such as ``lambda dim: RowSgd(0.1, dim)``.
    dense_optimizer : callable
        Makes the optimiser of all other parameters, such as
        ``lambda parameters: torch.optim.SGD(parameters, 0.1)``.

    Members
    -------
    bags : DeviceEmbeddingBags
        What is now in the model.
    popular, samples : int
        Popular samples, and all, that were trained on.
    """

    def __init__(
        self,
        device: Device,
        model: nn.Module,
        row_optimizer: Callable[[int], RowOptimizer],
        dense_optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
    ) -> None:
        self.device, self.model = device, model
        found = [
            (name, module)
            for name, module in model.named_modules()
            if isinstance(module, EmbeddingBagCollection)
        ]
        if len(found) != 1:
            raise ValueError(f"the model must have one EmbeddingBagCollection, not {len(found)}")
        name, original = found[0]
        self.row_optimizer = row_optimizer(original.embedding_bag_configs()[0].embedding_dim)
        self.bags = DeviceEmbeddingBags(original, device, self.row_optimizer)
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, self.bags)
        self.dense_optimizer = dense_optimizer(model.parameters())
        self.popular = self.samples = 0
        self._buffers: dict[str, Buffer] = {}

    def learn(self, batches: Iterable[KeyedJaggedTensor], *, forget: bool = False) -> None:
        """Let the hot table learn from batches, and move rows to their new homes.

        `forget`: empty it first.
        """
        if forget:
            self.device.clear()
        for features in batches:
            self.device.learn(self.bags.batch(features))
        records, _ = self.device.commit(self.bags.homes.records)
        self.bags.homes.fill(self.bags.homes.save(records, everything=forget))

    def step(self, dense: torch.Tensor, features: KeyedJaggedTensor, labels: torch.Tensor) -> float:
        """One step; returns the mean loss of the batch before it.

        Parameters
        ----------
        dense : torch.Tensor
            Numerical features [n, D].
        features : KeyedJaggedTensor
            Row numbers.
        labels : torch.Tensor
            0 or 1, [n].
        """
        homes, dim = self.bags.homes, self.bags.dim
        batch = self.bags.batch(features)
        tables = batch.num_tables
        lists = self._buffer("lists", self.device.list_bytes(batch.count, len(batch.indices)))
        stride = self.device.config.row_stride(homes.row_bytes)
        buffer = self._buffer("rows", len(batch.indices) * stride)
        placed = self.device.place(batch)
        try:
            split = self.device.split(placed, lists)
            gather = self.device.submit(commands.gather_last(tables, buffer))
            deduplicated = self.device.config.dedup_entries > 0
            plan = plan_step(split, tables, batch.lengths, deduplicated=deduplicated)
            hot_slots = torch.from_numpy(plan.slots)
            hot_buffer = torch.from_numpy(homes.hot)
            self.dense_optimizer.zero_grad()
            hot = hot_buffer[hot_slots, :dim].requires_grad_()
            loss = self._train(plan.popular, hot, dense, labels)
            gather.result()
            count = len(split.keys)
            dense_rows = buffer.data[: count * stride].view(homes.dtype).reshape(count, -1)
            gathered = torch.from_numpy(dense_rows[:, : homes.width])
            copies = torch.from_numpy(plan.copies)
            cold = gathered[copies, :dim].requires_grad_()
            loss += self._train(plan.nonpopular, torch.cat([hot, cold]), dense, labels)

            self.dense_optimizer.step()
            self._update(hot_buffer, hot_slots, hot)
            updated = gathered[copies]
            if cold.grad is not None:
                self.row_optimizer.update(updated, cold.grad)
            if len(plan.keys):
                gathered[: len(plan.keys)] = updated
                address = Regions.of(lists.address, batch.count, len(batch.indices)).keys
                lists.data[address - lists.address :][: plan.keys.nbytes] = plan.keys.view(np.uint8)
                self.device.scatter(len(plan.keys), tables, address, buffer)
        finally:
            self.device.drain()
            self.device.release(placed)
        self.popular += len(plan.popular)
        self.samples += batch.count
        return loss

    def _train(
        self, part: MicroBatch, rows: torch.Tensor, dense: torch.Tensor, labels: torch.Tensor
    ) -> float:
        """Forward and backward of a micro-batch; its part of the mean loss."""
        if len(part) == 0:
            return 0.0
        logits = self.model(dense[part.samples], _Bags(part, rows)).reshape(-1)
        targets = labels[part.samples].to(logits.dtype)
        losses = functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        loss = losses / len(labels)
        loss.backward()
        return float(loss.detach())

    def _update(self, buffer: torch.Tensor, slots: torch.Tensor, hot: torch.Tensor) -> None:
        if hot.grad is not None:
            rows = buffer[slots]
            self.row_optimizer.update(rows, hot.grad)
            buffer[slots] = rows

    def _buffer(self, name: str, size: int) -> Buffer:
        """Device memory of at least `size` bytes."""
        found = self._buffers.get(name)
        if found is None or len(found.data) < size:
            if found is not None:
                self.device.unmap(found.address)
            found = self._buffers[name] = self.device.allocate(size)
        return found


def _check(
    bags: EmbeddingBagCollection,
    configs: list[EmbeddingBagConfig],
    device: Device,
    optimizer: RowOptimizer,
) -> None:
    if bags.is_weighted():
        raise ValueError("the EmbeddingBagCollection must not be weighted")
    if len(configs) > device.config.max_tables:
        raise ValueError(
            f"the EmbeddingBagCollection has {len(configs)} tables, the device takes at most "
            f"{device.config.max_tables}"
        )
    for config in configs:
        if len(config.feature_names) != 1:
            raise ValueError(
                f"table {config.name!r} must have one feature, not {len(config.feature_names)}"
            )
        if config.pooling != PoolingType.SUM:
            raise ValueError(f"table {config.name!r} must pool by sum, not {config.pooling.name}")
        if config.embedding_dim != optimizer.dim:
            raise ValueError(
                f"table {config.name!r} must have vectors of {optimizer.dim} numbers as the first "
                f"one has, not {config.embedding_dim}"
            )


def _lengths_of(batch: Batch) -> np.ndarray:
    """Bag lengths [n, T]."""
    if batch.lengths is not None:
        return batch.lengths
    return np.ones((batch.count, batch.num_tables), np.uint16)


def _tables_of(batch: Batch) -> np.ndarray:
    """Table of each index, int64."""
    tables = np.tile(np.arange(batch.num_tables), batch.count)
    return np.repeat(tables, _lengths_of(batch).reshape(-1))
