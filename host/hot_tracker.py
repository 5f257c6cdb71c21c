"""When the device learns what is hot, and what then moves."""

from __future__ import annotations

import numpy as np

from hotline.golden.descriptor import Completion
from hotline.host.account import Account
from hotline.host.device import Device
from hotline.host.mini_batches import MiniBatches
from hotline.host.row_homes import RowHomes
from hotline.host.samples import Samples
from hotline.host.train_options import TrainOptions

__all__ = ["HotTracker"]

#: A call that changed the hot table: its name, first sample and end (0, 0 for AGE).
Call = tuple[str, int, int]


class HotTracker:
    """Keeps the hot table up to date, and knows how to make it again.

    Parameters
    ----------
    device : Device
        Its hot table learns.
    homes : RowHomes
        Moves rows.
    batches : MiniBatches
        What it learns from.
    options : TrainOptions
        When and how.
    account : Account
        Where commands are counted.

    Members
    -------
    calls : list of (str, int, int)
        LEARN, LOAD and AGE since the last CLEAR, with the samples that they had. The same calls on
        a fresh device give the same hot table.
    last : int
        The step before which it learned last; -1: never.
    """

    def __init__(
        self,
        device: Device,
        homes: RowHomes,
        batches: MiniBatches,
        options: TrainOptions,
        account: Account,
    ) -> None:
        self.device, self.homes, self.batches, self.options = device, homes, batches, options
        self.calls: list[Call] = []
        self.last = -1
        self._note = account.command
        steps = len(batches)
        options.check_epoch(steps)
        self._window = max(1, round(options.learn_share * steps))
        self._total = options.epochs * steps
        again = range(1, options.relearn + 1)
        self._moments = {i * steps // (options.relearn + 1) for i in again}
        most = batches.most_keys
        self._indices = device.allocate(4 * most)
        self._lengths = device.allocate(2 * options.batch * batches.log.num_tables)
        self._keys = device.allocate(8 * device.config.slots)

    def due(self, number: int) -> bool:
        """Whether the hot table learns before step `number`."""
        moment = number == 0 or number % len(self.batches) in self._moments
        return moment and self.last != number

    def learn(self, number: int) -> None:
        """Learn before step `number`, and move the rows that become hot or cold.

        Raises
        ------
        CommandError, PeerError
            A command has failed. Either rows, map and calls are as before, or the move is complete.
        """
        exchange = self.homes.exchange
        calls, records = exchange.attempt(lambda: self._learn(number))
        cleared = number > 0 and self.options.forget == "clear"
        moves = self.homes.save(records, everything=cleared)
        self._count(number, "BACK", moves.back)
        self.calls, self.last = calls, number
        self._count(number, "FILL", self.homes.fill(moves))

    def replay(self, calls: list[Call]) -> None:
        """Give a fresh device the hot table that `calls` made, and the map that goes with it.

        The hot buffer is left to the caller.
        """
        for call in calls:
            self._repeat(self.last, call)
        if calls:
            records, _ = self.device.commit(self.homes.records, everything=True)
            self.homes.adopt(records)
        self.calls = list(calls)

    def _learn(self, number: int) -> tuple[list[Call], np.ndarray]:
        """Change the hot table and COMMIT; returns the calls since CLEAR, and COMMIT's records."""
        calls = list(self.calls)
        again = number > 0
        if again and self.options.forget == "clear":
            self._note(number, "CLEAR", self.device.clear())
            calls = []
        elif again and self.options.forget == "age":
            calls.append(("AGE", 0, 0))
            self._repeat(number, calls[-1])
        first = max(0, number - self._window)
        last = min(first + self._window, self._total)
        spans = [self.batches.span(batch) for batch in range(first, last)]
        name = "LEARN"
        if self.options.profile and not again:
            name, spans = "LOAD", [(spans[0][0], spans[-1][1])]
        for span in spans:
            calls.append((name, *span))
            self._repeat(number, calls[-1])
        records, done = self.device.commit(self.homes.records)
        self._note(number, "COMMIT", done, device_to_host=records.nbytes)
        return calls, records

    def _repeat(self, number: int, call: Call) -> None:
        name, start, stop = call
        if name == "AGE":
            self._note(number, name, self.device.age())
        elif name == "LOAD":
            self._load(number, self.batches.keys(start, stop))
        else:
            indices, lengths = self.batches.indices(start, stop)
            samples = Samples.place(
                indices, self.batches.log.num_tables, lengths, self._indices, self._lengths
            )
            size = indices.nbytes + (0 if lengths is None else lengths.nbytes)
            self._note(number, name, self.device.learn(samples), host_to_device=size)

    def _load(self, number: int, keys: np.ndarray) -> None:
        """LOAD the most frequent keys, as many as there are slots; ties go to the smaller key."""
        distinct, counts = np.unique(keys, return_counts=True)
        hottest = distinct[np.argsort(-counts, kind="stable")[: self.device.config.slots]]
        self._keys.data[: hottest.nbytes] = hottest.view(np.uint8)
        done = self.device.load(len(hottest), self._keys.address)
        self._note(number, "LOAD", done, host_to_device=hottest.nbytes)

    def _count(self, number: int, name: str, done: Completion | None) -> None:
        if done is None:
            return
        rows = done.words[0]
        size = rows * self.homes.row_bytes
        if name == "BACK":
            moved = {"gpu_to_device": size, "device_to_host": size}
        else:
            moved = {"device_to_gpu": size, "host_to_device": size}
        moved["host_to_device"] = moved.get("host_to_device", 0) + 16 * rows
        self._note(number, name, done, **moved)
