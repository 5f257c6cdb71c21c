"""The main job: a click log through a device and the golden model, side by side.

Both get the same commands over the same memory image. After every command all memory is compared,
so every byte that the device wrote, and every byte that it should have left alone, is checked.
What the result says about the log comes from what the device wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from hotline.gen.config import Config
from hotline.golden.descriptor import Completion, Regions
from hotline.host.click_log import ClickLog
from hotline.host.device import Backend, Device, Samples, Split, table_bases
from hotline.host.efficiency import Beats, region_beats, row_beats
from hotline.host.popularity import lfu_share, tracker_share

__all__ = ["JobError", "JobOptions", "buffer_sizes", "run_job"]

_T = TypeVar("_T")

#: Words 8 and 9 of a record, the cycles: the golden model has none.
_CYCLES = slice(32, 40)


class JobError(ValueError):
    """The job does not fit the device."""


@dataclass(frozen=True)
class JobOptions:
    """What to do with a log.

    Parameters
    ----------
    batch : int
        Samples of a mini-batch.
    learn_share : float
        Share of the mini-batches, the first ones, that the hot table learns from; the others
        are split and gathered.
    row_bytes : int
        Bytes of an embedding row.
    seed : int
        Of the rows' contents.
    """

    batch: int = 1024
    learn_share: float = 0.3
    row_bytes: int = 64
    seed: int = 1


@dataclass
class _Tally:
    """Sums over the commands of one kind."""

    commands: int = 0
    beats: Beats = field(default_factory=Beats)
    fewest: int = 0
    cycles: int = 0

    def add(self, beats: Beats, cycles: int) -> None:
        self.commands += 1
        self.beats += beats
        self.fewest += beats.fewest
        self.cycles += cycles

    def as_dict(self) -> dict[str, Any]:
        return {
            "commands": self.commands,
            "read_beats": self.beats.read,
            "write_beats": self.beats.write,
            "beats": self.fewest,
            "cycles": self.cycles,
            "efficiency": self.fewest / self.cycles if self.cycles else 0.0,
        }


def buffer_sizes(
    config: Config, log: ClickLog, options: JobOptions, table_rows: Sequence[int]
) -> tuple[int, ...]:
    """Bytes for tables of so many rows, and for indices, lengths, lists and rows of a command."""
    starts = np.arange(0, len(log), options.batch)
    ends = np.minimum(starts + options.batch, len(log))
    keys = int((log.offsets[ends] - log.offsets[starts]).max())
    # What COMMIT reports has been learned: no more records than slots, nor than rows.
    records = 16 * min(config.slots, sum(table_rows))
    return (
        int(table_bases(table_rows, options.row_bytes)[-1]),
        4 * keys,
        2 * options.batch * log.num_tables,
        max(Device.list_bytes(options.batch, keys), records),
        keys * config.row_stride(options.row_bytes),
    )


class _Bench:
    """One device with its tables and buffers."""

    def __init__(self, backend: Backend, log: ClickLog, options: JobOptions) -> None:
        self.device = device = Device(backend)
        bases = table_bases(log.table_rows, options.row_bytes)
        self.tables, self.indices, self.lengths, self.lists, self.rows = (
            device.allocate(size)
            for size in buffer_sizes(device.config, log, options, log.table_rows)
        )
        rng = np.random.default_rng(options.seed)
        self.tables.data[:] = rng.integers(0, 256, len(self.tables.data), np.uint8)
        self.bases = bases[:-1].astype(np.uint64) + np.uint64(self.tables.address)
        for table, rows in enumerate(log.table_rows):
            device.set_table(table, int(self.bases[table]), rows, options.row_bytes)

    def place(self, part: ClickLog) -> Samples:
        """The samples of `part`, in device memory."""
        return Samples.place(
            part.indices, part.num_tables, part.lengths, self.indices, self.lengths
        )

    def image(self) -> list[tuple[int, np.ndarray]]:
        """All memory, by region."""
        return self.device.backend.memory.regions


def run_job(
    config: Config,
    log: ClickLog,
    options: JobOptions,
    device: Backend,
    golden: Backend,
    progress: Callable[[int, str], None] = lambda samples, what: None,
) -> dict[str, Any]:
    """Learn from the first mini-batches of `log`, split, gather and scatter the others.

    Parameters
    ----------
    config : Config
        Of both back-ends.
    log : ClickLog
        What to run.
    options : JobOptions
        How.
    device, golden : Backend
        The device under test and the golden model, both fresh from reset.
    progress : callable
        Called with the number of samples done and what is being done.

    Returns
    -------
    dict
        Counts, shares and efficiencies, ready for JSON.

    Raises
    ------
    JobError
        The log does not fit the device.
    """
    _check(config, log, options)
    under_test, reference = (_Bench(backend, log, options) for backend in (device, golden))
    return _Job(config, log, options, under_test, reference, progress).run()


def _check(config: Config, log: ClickLog, options: JobOptions) -> None:
    if (reason := log.misfit(config)) is not None:
        raise JobError(reason)
    if not 4 <= options.row_bytes <= config.max_row_bytes or options.row_bytes % 4:
        raise JobError(
            f"row bytes must be a multiple of 4 from 4 to {config.max_row_bytes}, "
            f"not {options.row_bytes}"
        )
    batches = -(-len(log) // options.batch)
    if batches < 2:
        raise JobError(
            f"the job needs at least two mini-batches: {len(log)} samples make {batches} "
            f"of {options.batch}"
        )


class _Job:
    def __init__(
        self,
        config: Config,
        log: ClickLog,
        options: JobOptions,
        device: _Bench,
        golden: _Bench,
        progress: Callable[[int, str], None],
    ) -> None:
        self.config, self.log, self.options = config, log, options
        self.device, self.golden, self.progress = device, golden, progress
        self.tallies: dict[str, _Tally] = {}
        self.mismatched_bytes = 0
        self.popular = self.hits = self.keys = self.rows = self.shared = self.replacements = 0
        self.table_keys = np.zeros(log.num_tables, np.int64)
        self.table_hits = np.zeros(log.num_tables, np.int64)

    def run(self) -> dict[str, Any]:
        log, batch = self.log, self.options.batch
        starts = range(0, len(log), batch)
        learned = min(len(starts) - 1, max(1, round(self.options.learn_share * len(starts))))
        for start in starts[:learned]:
            self._learn(log[start : start + batch])
            self.progress(min(start + batch, len(log)), "learning")
        self._commit()
        for start in starts[learned:]:
            self._split(log[start : start + batch])
            self.progress(min(start + batch, len(log)), "splitting and gathering")
        return self._result(learned * batch)

    # ---- commands -----------------------------------------------------------------------------

    def _both(self, action: Callable[[_Bench], _T]) -> _T:
        """Do the same on both, compare all memory, return what came from the device."""
        result = action(self.device)
        action(self.golden)
        self.mismatched_bytes += _differences(self.device, self.golden)
        return result

    def _count(self, name: str, beats: Beats, done: Completion) -> None:
        self.tallies.setdefault(name, _Tally()).add(beats, done.cycles)

    def _learn(self, part: ClickLog) -> None:
        done = self._both(lambda bench: bench.device.learn(bench.place(part)))
        self._count("LEARN", Beats(read=self._sample_beats(part)), done)

    def _commit(self) -> None:
        records, done = self._both(lambda bench: bench.device.commit(bench.lists))
        self._count("COMMIT", Beats(write=region_beats(self.config, records.nbytes)), done)

    def _split(self, part: ClickLog) -> None:
        config = self.config
        split = self._both(
            lambda bench: bench.device.split(bench.place(part), bench.lists, bench.rows)
        )
        homes = self._home_beats(split.keys)
        dense = self._dense_beats(len(split.keys))
        lists = region_beats(
            config,
            split.popular.nbytes,
            split.nonpopular.nbytes,
            split.popular_slots.nbytes,
            split.nonpopular_slots.nbytes,
            split.keys.nbytes,
        )
        self._count(
            "SPLIT + GATHER",
            Beats(self._sample_beats(part) + homes, lists + dense),
            split.completion,
        )
        self._tally_split(part, split)

        # What a trainer does next: new values for the gathered rows, back to their tables.
        keys = self.device.lists.address + Regions.of(0, len(part), len(part.indices)).keys
        count = len(split.keys)

        def update(bench: _Bench) -> Completion:
            np.add(bench.rows.data, 1, out=bench.rows.data)
            return bench.device.scatter(count, part.num_tables, keys, bench.rows)

        done = self._both(update)
        list_beats = region_beats(config, split.keys.nbytes)
        self._count("SCATTER", Beats(list_beats + dense, homes), done)

    def _tally_split(self, part: ClickLog, split: Split) -> None:
        words = split.completion.words
        self.popular += words[0]
        self.rows += words[2]
        self.hits += words[3]
        self.keys += words[3] + words[4]
        self.replacements += words[5]
        self.shared += int((split.nonpopular_slots >> 31).sum()) - words[2]
        tables, offsets = part.key_tables, part.offsets
        hit = np.zeros(len(part.indices), bool)
        hit[_positions(offsets, split.popular)] = True
        hit[_positions(offsets, split.nonpopular)] = split.nonpopular_slots >> 31 == 0
        self.table_keys += np.bincount(tables, minlength=part.num_tables)
        self.table_hits += np.bincount(tables[hit], minlength=part.num_tables)

    # ---- beats --------------------------------------------------------------------------------

    def _sample_beats(self, part: ClickLog) -> int:
        lengths = 0 if part.lengths is None else part.lengths.nbytes
        return region_beats(self.config, part.indices.nbytes, lengths)

    def _home_beats(self, keys: np.ndarray) -> int:
        size = self.options.row_bytes
        tables, rows = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
        addresses = self.device.bases[tables.astype(np.int64)] + rows * np.uint64(size)
        return row_beats(self.config, addresses, np.full(len(keys), size))

    def _dense_beats(self, rows: int) -> int:
        return rows * region_beats(self.config, self.options.row_bytes)

    # ---- result -------------------------------------------------------------------------------

    def _result(self, learned: int) -> dict[str, Any]:
        config, log = self.config, self.log
        learn, score = log[:learned], log[learned:]
        srrip = config.replace(policy="srrip", counter_bits=2)
        return {
            "data": log.name,
            "samples": len(log),
            "learned_samples": len(learn),
            "split_samples": len(score),
            "tables": log.num_tables,
            "rows": sum(log.table_rows),
            "batch": self.options.batch,
            "row_bytes": self.options.row_bytes,
            "seed": self.options.seed,
            "mismatched_bytes": self.mismatched_bytes,
            "popular_share": self.popular / len(score),
            "popular_share_srrip": tracker_share(srrip, learn, score),
            "popular_share_lfu": lfu_share(config.slots, learn, score),
            "hit_rate": self.hits / max(1, self.keys),
            "hit_rate_by_table": _rates(log.tables, self.table_hits, self.table_keys),
            "rows_gathered": self.rows,
            "rows_shared": self.shared,
            "dedup_replacements": self.replacements,
            "commands": {name: tally.as_dict() for name, tally in self.tallies.items()},
        }


def _rates(names: Sequence[str], hits: np.ndarray, keys: np.ndarray) -> dict[str, float]:
    shares = hits / np.maximum(1, keys)
    return {name: float(share) for name, share in zip(names, shares, strict=True)}


def _positions(offsets: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Positions of all keys of `samples` (sample numbers), in order: int64."""
    starts, sizes = offsets[samples], np.diff(offsets)[samples]
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def _differences(device: _Bench, golden: _Bench) -> int:
    """Bytes of memory that differ, the cycles of the record left out."""
    differing = 0
    record = device.device.record.address
    for (base, ours), (_, theirs) in zip(device.image(), golden.image(), strict=True):
        unequal = ours != theirs
        if base == record:
            unequal[_CYCLES] = False
        differing += int(unequal.sum())
    return differing
