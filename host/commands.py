"""Commands as the driver submits them: a descriptor, and what its record and lists mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from hotline.gen.commands import Flag, Opcode
from hotline.gen.config import Config
from hotline.golden.descriptor import Completion, Descriptor, Regions
from hotline.host.device_memory import Buffer
from hotline.host.future import Future
from hotline.host.micro_batch import Split
from hotline.host.samples import Samples

__all__ = [
    "Command",
    "age",
    "clear",
    "commit",
    "fill",
    "gather",
    "gather_last",
    "learn",
    "load",
    "plain",
    "scatter",
    "split",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Command(Generic[T]):
    """Something to submit.

    Parameters
    ----------
    descriptor : Descriptor
        With `completion` 0, unless the record is to go to a place of the caller's.
    decode : callable
        (configuration, record) to the result.
    needs : tuple of Future
        If one of these fails, the command is not run.
    """

    descriptor: Descriptor
    decode: Callable[[Config, Completion], T]
    needs: tuple[Future, ...] = ()

    def after(self, *futures: Future) -> Command[T]:
        """The same, not to be run if one of `futures` fails."""
        return replace(self, needs=(*self.needs, *futures))


def plain(descriptor: Descriptor) -> Command[Completion]:
    """Any descriptor; its result is the completion record."""
    return Command(descriptor, lambda config, done: done)


def learn(samples: Samples) -> Command[Completion]:
    """LEARN: update the hot table with `samples`."""
    return plain(samples.describe(Opcode.LEARN))


def commit(
    records: Buffer, *, everything: bool = False, fill: bool = False
) -> Command[tuple[np.ndarray, Completion]]:
    """COMMIT: uint32 [n, 4] of (slot, table, row, 0), and the record.

    `records` must have room for 16 bytes a slot of the hot table. `everything`: all valid slots,
    not only the changed ones. `fill`: copy the rows to the hot buffers too.
    """
    flags = Flag.COMMIT_ALL * everything | Flag.COMMIT_FILL * fill

    def decode(config: Config, done: Completion) -> tuple[np.ndarray, Completion]:
        size = 16 * done.words[0]
        return records.data[:size].view(np.uint32).reshape(-1, 4).copy(), done

    return Command(Descriptor(opcode=Opcode.COMMIT, flags=flags, lists=records.address), decode)


def split(
    samples: Samples,
    lists: Buffer,
    rows: Buffer | None = None,
    *,
    gather_hot: bool = False,
    pool: bool = False,
    weights: int = 0,
) -> Command[Split]:
    """SPLIT into `lists`, with GATHER into `rows` if they are given.

    `rows` must have room for a row of each index: nobody knows before how many are cold.
    `gather_hot`: with GATHER_HOT too, for which there must be hot buffers. `pool`: sums of bags
    instead of rows. Both need `rows`. `weights`: address of their weights, f32 [num_keys]; 0:
    those of the samples, or 1.0.
    """
    needed = Regions.of(0, samples.count, samples.num_keys).end
    if lists.data.size < needed:
        raise ValueError(
            f"the lists of {samples.count} samples with {samples.num_keys} indices need {needed} "
            f"bytes, the buffer has {lists.data.size}"
        )
    descriptor = samples.describe(Opcode.SPLIT)
    descriptor.lists = lists.address
    if rows is not None:
        descriptor.flags |= Flag.SPLIT_GATHER
        descriptor.rows = rows.address
    descriptor.flags |= Flag.SPLIT_GATHER_HOT * gather_hot | Flag.SPLIT_POOL * pool
    descriptor.weights = weights or descriptor.weights
    return Command(descriptor, lambda config, done: Split.read(samples, lists, done, config.slots))


def gather_last(num_tables: int, rows: Buffer) -> Command[Completion]:
    """GATHER LAST: fetch the rows that the last SPLIT needs."""
    flags = int(Flag.GATHER_LAST)
    return plain(
        Descriptor(opcode=Opcode.GATHER, flags=flags, num_tables=num_tables, rows=rows.address)
    )


def gather(count: int, num_tables: int, keys: int, rows: Buffer) -> Command[Completion]:
    """GATHER: fetch `count` rows; `keys` is the address of their list."""
    return plain(
        Descriptor(
            opcode=Opcode.GATHER,
            count=count,
            num_tables=num_tables,
            lists=keys,
            rows=rows.address,
        )
    )


def scatter(
    count: int, num_tables: int, keys: int, rows: Buffer, *, add: bool = False
) -> Command[Completion]:
    """SCATTER: write back `count` rows, or add them; `keys` is the address of their list."""
    return plain(
        Descriptor(
            opcode=Opcode.SCATTER,
            flags=Flag.SCATTER_ADD * add,
            count=count,
            num_tables=num_tables,
            lists=keys,
            rows=rows.address,
        )
    )


def fill(count: int, records: int, *, back: bool = False) -> Command[Completion]:
    """FILL: copy the rows of `count` records at address `records` to the hot buffers.

    `back`: from the hot buffer of GPU 0 to the tables instead.
    """
    flags = Flag.FILL_BACK * back
    return plain(Descriptor(opcode=Opcode.FILL, flags=flags, count=count, lists=records))


def load(count: int, keys: int) -> Command[Completion]:
    """LOAD: insert `count` u64 keys of an offline profile, at address `keys`."""
    return plain(Descriptor(opcode=Opcode.LOAD, count=count, lists=keys))


def clear() -> Command[Completion]:
    """CLEAR: empty the hot table."""
    return plain(Descriptor(opcode=Opcode.CLEAR))


def age() -> Command[Completion]:
    """AGE: make all hot rows a little colder."""
    return plain(Descriptor(opcode=Opcode.AGE))
