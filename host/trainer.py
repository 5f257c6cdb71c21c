"""Trains a DLRM whose embedding rows live on both sides of the bus, with a device in the loop."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn import functional

from hotline.host.account import Account
from hotline.host.click_log import ClickLog
from hotline.host.deferred_linear import DeferredLinear, discard_parts, sum_weight_gradients
from hotline.host.device import Device
from hotline.host.dlrm import Dlrm, DlrmShape, initial_table, sample_losses
from hotline.host.exchange import DEVICE_ERRORS, Exchange
from hotline.host.future import Future
from hotline.host.hot_tracker import HotTracker
from hotline.host.micro_batch import Split
from hotline.host.mini_batches import MiniBatches
from hotline.host.row_homes import RowHomes
from hotline.host.row_optimizers import dense_optimizer, row_optimizer
from hotline.host.step_commands import StepCommands
from hotline.host.step_plan import MicroBatch, StepPlan, plan_step, sum_by_key
from hotline.host.train_options import TrainOptions

__all__ = ["Trainer"]


@dataclass
class _Work:
    """What a step has computed before it changes anything.

    Parameters
    ----------
    plan : StepPlan
        Rows and micro-batches.
    low : int
        Number of the first sample in the log.
    losses, logits : torch.Tensor
        Of each sample, [n].
    bag_gradients : torch.Tensor
        Of each bag, [n, T, dim].
    places : list of torch.Tensor
        The samples of each backward pass, int64.
    """

    plan: StepPlan
    low: int
    losses: torch.Tensor
    logits: torch.Tensor
    bag_gradients: torch.Tensor
    places: list[torch.Tensor] = field(default_factory=list)


class Trainer:
    """Runs steps of plain mini-batch training, each in two micro-batches.

    Parameters
    ----------
    device : Device
        Fresh from reset.
    log : ClickLog
        What to train on. Its tables must fit the device.
    options : TrainOptions
        How.
    exchange : Exchange
        The other ranks; by default there are none.
    memory : np.ndarray, optional
        Where the host tables lie if the ranks share them; rank 0 gives them their first values.

    Members
    -------
    position, total : int
        Steps done, and to do.
    model : Dlrm
        MLPs and interaction.
    homes : RowHomes
        Embedding rows.
    tracker : HotTracker
        Learns what is hot.
    losses, popular, predictions : np.ndarray
        Mean loss and share of popular samples of each step, and predicted probability of each
        sample before its step; NaN where it has not been trained yet.
    account : Account
        What has been done on the device.
    """

    def __init__(
        self,
        device: Device,
        log: ClickLog,
        options: TrainOptions,
        exchange: Exchange | None = None,
        memory: np.ndarray | None = None,
    ) -> None:
        self.device, self.log, self.options = device, log, options
        self.exchange = exchange = exchange or Exchange()
        dtype = options.numpy_dtype
        self.batches = MiniBatches(log, options.batch, dtype)
        self.row_optimizer = row_optimizer(options.optimizer, options.lr, options.dim)
        width = self.row_optimizer.width
        self.homes = RowHomes(device, log.table_rows, width, dtype, exchange, memory)
        shape = DlrmShape(
            log.dense.shape[1], log.num_tables, options.dim, options.bottom, options.top
        )
        rng = np.random.default_rng(options.seed)
        self._hot = torch.from_numpy(self.homes.hot)
        self.model = Dlrm(shape, rng, self._hot.dtype, DeferredLinear)
        self.dense_optimizer = dense_optimizer(
            options.optimizer, self.model.parameters(), options.lr
        )
        if exchange.rank == 0:
            for table, rows in enumerate(self.homes.tables):
                rows[:, : options.dim] = initial_table(options.seed, table, len(rows), options.dim)
        exchange.barrier()
        self.account = Account()
        self.commands = StepCommands(
            device, self.batches, self.homes, self.account, exchange.rank, exchange.world
        )
        self.tracker = HotTracker(device, self.homes, self.batches, options, self.account)
        self.position = 0
        self.total = options.epochs * len(self.batches)
        self.losses = np.full(self.total, np.nan)
        self.popular = np.full(self.total, np.nan)
        self.predictions = np.full(options.epochs * len(log), np.nan)
        self._ahead: Future[Split] | None = None
        self._stopped = False

    def step(self) -> float:
        """One step of training; returns the mean loss of the mini-batch before it.

        Raises
        ------
        CommandError, PeerError
            A command of the device has failed. Parameters, optimiser state and `position` agree
            all the same: the step has not begun, or it is complete. The hot table may not be what
            the host takes it for, so it goes on from a checkpoint only.
        """
        if self._stopped:
            raise RuntimeError("the trainer has stopped: it goes on from a checkpoint only")
        self._stopped = True
        number = self.position
        if self.tracker.due(number):
            self.tracker.learn(number)
        work = self.exchange.attempt(lambda: self._compute(number))
        start = time.perf_counter()
        self._weight_gradients(work)
        slots, hot_gradients, keys, cold_gradients = self._row_gradients(work)
        rows = self._cold_rows(number, work.plan, keys)
        gradients_ready = time.perf_counter()

        # Nothing has been changed up to here; from here on, nothing of the device is needed.
        self.dense_optimizer.step()
        hot = self._hot[slots]
        self.row_optimizer.update(hot, hot_gradients)
        self._hot[slots] = hot
        self.row_optimizer.update(rows, cold_gradients)
        self._note_outcome(number, work)
        self.position = number + 1
        self.account.work(number, "gradients", gradients_ready - start)
        self.account.work(number, "update", time.perf_counter() - gradients_ready)
        self.exchange.attempt(lambda: self._write_back(number, keys, rows))
        self._stopped = False
        return float(self.losses[number])

    # ---- the two micro-batches ----------------------------------------------------------------

    def _compute(self, number: int) -> _Work:
        """Forward and backward of both micro-batches; parameters keep their values."""
        discard_parts(self.model)
        ahead, self._ahead = self._ahead, None
        split = (ahead or self.commands.split(number)).result()
        self.commands.count_split(number, split)
        gather = self.commands.gather_last(number, split)
        if number + 1 < self.total and not self.tracker.due(number + 1):
            self._ahead = self.commands.split(number + 1)

        low, high = self.commands.part(number)
        _, lengths = self.batches.indices(low, high)
        tables, dim = self.log.num_tables, self.options.dim
        deduplicated = self.device.config.dedup_entries > 0
        plan = plan_step(split, tables, lengths, deduplicated=deduplicated)
        self._count(split, plan)
        work = _Work(
            plan,
            low,
            self._hot.new_zeros(high - low),
            self._hot.new_zeros(high - low),
            self._hot.new_zeros((high - low, tables, dim)),
        )
        hot = self._hot[torch.from_numpy(plan.slots), :dim]
        self._train(number, "popular", plan.popular, hot, work)
        if gather is not None:
            self.commands.count_gather(number, len(split.keys), gather.result())
        cold = self.commands.rows(number)[torch.from_numpy(plan.copies), :dim]
        self._train(number, "nonpopular", plan.nonpopular, torch.cat([hot, cold]), work)
        return work

    def _train(
        self, number: int, name: str, part: MicroBatch, rows: torch.Tensor, work: _Work
    ) -> None:
        """Forward and backward of one micro-batch, as far as it does not need the other one."""
        if len(part) == 0:
            return
        start = time.perf_counter()
        samples = work.low + part.samples
        bags = functional.embedding_bag(part.rows, rows, part.offsets, mode="sum")
        bags = bags.view(len(part), self.log.num_tables, -1).requires_grad_()
        logits = self.model(self.batches.dense(samples), bags)
        losses = sample_losses(logits, self.batches.targets(samples))
        # Divided by the samples of the mini-batch, so that the gradients of both micro-batches, and
        # of all ranks, add up to that of the mean loss.
        first, stop = self.batches.span(number)
        (losses.sum() / (stop - first)).backward()
        work.losses[part.samples] = losses.detach()
        work.logits[part.samples] = logits.detach()
        work.bag_gradients[part.samples] = bags.grad
        work.places.append(part.samples)
        self.account.work(number, name, time.perf_counter() - start)

    # ---- gradients of the mini-batch ----------------------------------------------------------

    def _weight_gradients(self, work: _Work) -> None:
        """Gradients of the MLPs, over all ranks."""
        ordered = self.options.reduce == "ordered"
        exchange = self.exchange
        sum_weight_gradients(
            self.model, work.places, len(work.losses), exchange.concatenate if ordered else None
        )
        if exchange.world > 1 and not ordered:
            exchange.sum([parameter.grad for parameter in self.model.parameters()])

    def _row_gradients(
        self, work: _Work
    ) -> tuple[torch.Tensor, torch.Tensor, np.ndarray, torch.Tensor]:
        """Slots and gradients of hot rows; keys and gradients of the cold rows of this rank."""
        plan, hot = work.plan, len(work.plan.slots)
        bag_gradients = work.bag_gradients.view(-1, self.options.dim)
        if self.exchange.world == 1:
            sums = plan.row_gradients(bag_gradients)
            return torch.from_numpy(plan.slots), sums[:hot], plan.keys, sums[hot:]
        if self.options.reduce == "ordered":
            rows, parts = plan.rows, bag_gradients[plan.bags]
        else:
            parts = plan.row_gradients(bag_gradients)
            rows = torch.arange(len(parts))
        cold = rows >= hot
        slots, hot_sums = sum_by_key(
            self.exchange.concatenate(torch.from_numpy(plan.slots)[rows[~cold]]).numpy(),
            self.exchange.concatenate(parts[~cold]),
        )
        keys, cold_sums = sum_by_key(
            *self.exchange.to_owners(plan.keys[(rows[cold] - hot).numpy()], parts[cold])
        )
        return torch.from_numpy(slots), hot_sums, keys, cold_sums

    def _cold_rows(self, number: int, plan: StepPlan, keys: np.ndarray) -> torch.Tensor:
        """Copies of the cold rows that this rank has to update, [n, width]."""
        if self.exchange.world == 1:
            return self.commands.rows(number)[torch.from_numpy(plan.copies)]
        self.exchange.attempt(lambda: self.commands.gather(number, keys))
        return self.commands.rows(number)[: len(keys)].clone()

    def _write_back(self, number: int, keys: np.ndarray, rows: torch.Tensor) -> None:
        try:
            self.commands.scatter(number, keys, rows)
        except DEVICE_ERRORS:
            self.homes.write(keys, rows.numpy())
            raise

    # ---- what is known about the run ----------------------------------------------------------

    def _note_outcome(self, number: int, work: _Work) -> None:
        self.losses[number] = float(self.exchange.concatenate(work.losses).mean())
        logits = self.exchange.concatenate(work.logits)
        popular = torch.tensor([len(work.plan.popular)])
        self.exchange.sum([popular])
        first, stop = self.batches.span(number)
        self.popular[number] = int(popular) / (stop - first)
        epoch = number // len(self.batches) * len(self.log)
        self.predictions[epoch + first : epoch + stop] = torch.sigmoid(logits)

    def _count(self, split: Split, plan: StepPlan) -> None:
        words, account = split.completion.words, self.account
        account.samples += words[0] + words[1]
        account.popular += words[0]
        account.hits += words[3]
        account.keys += words[3] + words[4]
        account.gathered += len(split.keys)
        account.duplicates += len(split.keys) - len(plan.keys)
        account.plain_bytes += 2 * (len(plan.slots) + len(plan.keys)) * self.homes.row_bytes

    def dense_state(self) -> dict[str, torch.Tensor]:
        """Parameters of the MLPs and their optimiser state, by name: the tensors themselves."""
        result = {}
        for name, parameter in self.model.named_parameters():
            result[name] = parameter.detach()
            state = self.dense_optimizer.state.get(parameter, {})
            if "sum" in state:
                result[f"{name}.sum"] = state["sum"]
        return result

    def digest(self) -> str:
        """SHA-256 of all parameters and optimiser state, as 64 hex digits."""
        digest = hashlib.sha256()
        dense = [tensor.numpy() for tensor in self.dense_state().values()]
        for array in (*self.homes.current(), *dense):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def memory_digest(self) -> str:
        """SHA-256 of all memory that the device sees, ring and records left out."""
        own = {self.device.ring.address, self.device.record.address}
        digest = hashlib.sha256()
        for base, data in self.device.backend.memory.regions:
            if base not in own:
                digest.update(data.data)
        return digest.hexdigest()
