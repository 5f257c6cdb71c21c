"""Traffic for the bench: a click log, and the worst that a host could ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hotline.gen.config import Config, log2
from hotline.golden.hash import KeyHash
from hotline.golden.hot_table import HotTable
from hotline.host.bench_measure import TABLES
from hotline.host.click_log import ClickLog
from hotline.host.popularity import popular_samples
from hotline.rtl.pass_splitter import store_banks

__all__ = ["Batch", "LogTraffic", "WorstTraffic", "draws"]

#: Share of the slots that are filled: the hash finds a place for nearly all of these keys.
_FILL = 0.75
#: At most this share of a log's samples is made popular, so that there are others to draw from.
_POPULAR = 0.75
#: Rows of each table of the worst case.
_ROWS = 1 << 20


def draws(seed: int, purpose: str) -> np.random.Generator:
    """A generator of its own for each purpose."""
    return np.random.default_rng([seed, *purpose.encode()])


def _draw(rng: np.random.Generator, found: np.ndarray, count: int) -> np.ndarray:
    """`count` of `found`; some more than once only if there are not so many."""
    return rng.choice(found, count, replace=count > len(found))


@dataclass(frozen=True)
class Batch:
    """Samples for one command.

    Parameters
    ----------
    indices : np.ndarray
        Rows, uint32, sample-major.
    tables : int
        Tables.
    lengths : np.ndarray or None
        Bag lengths, uint16 [n, tables]; None for one-hot.
    """

    indices: np.ndarray
    tables: int
    lengths: np.ndarray | None = None

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.lengths) if self.lengths is not None else len(self.indices) // self.tables

    def keys(self, config: Config) -> np.ndarray:
        """Key integers, int64 [samples, keys of a sample]; every sample must have as many."""
        rows = self.indices.astype(np.int64).reshape(self.samples, -1)
        tables = np.arange(self.tables, dtype=np.int64).repeat(rows.shape[1] // self.tables)
        return (tables << config.row_bits) | rows


class LogTraffic:
    """Mini-batches of a click log with a chosen share of popular samples.

    The hot table holds the most frequent keys of the log: three quarters of its slots, or fewer
    where that would make more than three quarters of the samples popular.

    Parameters
    ----------
    config : Config
        Of the device.
    log : ClickLog
        One-hot.
    seed : int
        Of the choice of samples.

    Members
    -------
    name : str
        Of the log.
    rows : tuple of int
        Rows of each table.
    hot_keys : np.ndarray
        Key integers to LOAD, uint64.

    Raises
    ------
    ValueError
        The log does not fit the device.
    """

    def __init__(self, config: Config, log: ClickLog, seed: int) -> None:
        if log.lengths is not None:
            raise ValueError(f"the bench needs one index for each table; {log.name} has bags")
        if (reason := log.misfit(config)) is not None:
            raise ValueError(f"{log.name}: {reason}")
        self.config, self.log, self.name, self.rows = config, log, log.name, log.table_rows
        self.seed = seed
        keys, self._place, counts = np.unique(
            log.keys(config.row_bits), return_inverse=True, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")
        rank = np.empty(len(keys), np.int64)
        rank[order] = np.arange(len(keys))
        # A sample is popular if its least frequent key is hot.
        worst = np.sort(rank[self._place].reshape(len(log), -1).max(axis=1))
        most = int(worst[min(len(worst) - 1, int(_POPULAR * len(worst)))])
        self.hot_keys = keys[order[: max(1, min(int(_FILL * config.slots), most))]]
        self._keys = keys

    @cached_property
    def hot(self) -> np.ndarray:
        """Whether each index of the log is in the hot table after LOAD: bool."""
        model = HotTable(self.config)
        model.load(self.hot_keys)
        hit, _ = model.lookup(self._keys)
        return hit[self._place]

    @cached_property
    def popular(self) -> np.ndarray:
        """Whether each sample of the log is popular: bool."""
        return popular_samples(self.hot, self.log.offsets)

    def batch(self, purpose: str, samples: int, share: float | None = None) -> Batch:
        """So many samples in random order.

        Samples come more than once only if the log has too few of a kind.

        Parameters
        ----------
        purpose : str
            What they are for. Each purpose has draws of its own, whatever was drawn before.
        samples : int
            How many.
        share : float or None
            Of popular samples; None: as the log has them.

        Raises
        ------
        ValueError
            The log has no sample of a kind that is wanted.
        """
        rng = draws(self.seed, purpose)
        if share is None:
            numbers = _draw(rng, np.arange(len(self.log)), samples)
        else:
            wanted = round(share * samples)
            parts = []
            for kind, count in ((True, wanted), (False, samples - wanted)):
                found = np.flatnonzero(self.popular == kind)
                if count and not len(found):
                    name = "popular" if kind else "non-popular"
                    raise ValueError(f"{self.name} has no {name} sample for this hot table")
                parts.append(_draw(rng, found, count))
            numbers = rng.permutation(np.concatenate(parts))
        tables = self.log.num_tables
        return Batch(self.log.indices.reshape(-1, tables)[numbers].ravel(), tables)

    def row_keys(self, purpose: str, count: int) -> np.ndarray:
        """Entries of a `keys` list: rows as the log needs them, frequent ones often. uint64."""
        places = _draw(draws(self.seed, purpose), np.arange(len(self.log.indices)), count)
        tables = (places % self.log.num_tables).astype(np.uint64)
        return (tables << np.uint64(32)) | self.log.indices[places].astype(np.uint64)


class WorstTraffic:
    """Keys that a bank, or the store of seen keys, must take one by one; and keys all cold.

    Parameters
    ----------
    config : Config
        Of the device.
    seed : int
        Of the draws.

    Members
    -------
    rows : tuple of int
        Rows of each table.
    hot_keys : np.ndarray
        Key integers to LOAD, all of one bank, uint64.
    """

    name = "worst case"

    def __init__(self, config: Config, seed: int) -> None:
        self.config, self.seed = config, seed
        tables = min(TABLES, config.max_tables)
        self.rows = (min(_ROWS, 1 << config.row_bits),) * tables
        # Equal low bits of z: the same bank of the hot table and of the store of seen keys.
        bits = max(config.bank_bits, log2(store_banks(config)))
        rows = np.arange(self.rows[0], dtype=np.int64)
        z = KeyHash(config)
        self._one_bank = [
            rows[(z.z((np.int64(table) << config.row_bits) | rows) & ((1 << bits) - 1)) == 0]
            for table in range(tables)
        ]
        each = max(1, int(_FILL * config.slots / config.banks) // tables)
        offered = np.concatenate(
            [self._keys(table, found[:each]) for table, found in enumerate(self._one_bank)]
        )
        model = HotTable(config)
        model.load(offered)
        hit, _ = model.lookup(offered)
        self.hot_keys = offered[hit].astype(np.uint64)
        self._hot_rows = [
            found[:each][hit[table * each : (table + 1) * each]]
            for table, found in enumerate(self._one_bank)
        ]

    def _keys(self, table: int, rows: np.ndarray) -> np.ndarray:
        return (np.int64(table) << self.config.row_bits) | rows

    def hot_one_bank(self, samples: int) -> Batch:
        """Hot keys, all of one bank."""
        rng = draws(self.seed, "hot keys of one bank")
        return self._columns([rng.choice(found, samples) for found in self._hot_rows])

    def cold(self, samples: int, *, one_bank: bool = False) -> Batch:
        """Cold keys, different ones as long as there are enough; of one bank, or random."""
        rng, columns = draws(self.seed, "cold keys"), []
        for found, hot in zip(self._one_bank, self._hot_rows, strict=True):
            pool = found if one_bank else np.arange(self.rows[0])
            pool = np.setdiff1d(pool, hot, assume_unique=True)
            columns.append(_draw(rng, pool, samples))
        return self._columns(columns)

    def equal(self, samples: int, *, hot: bool) -> Batch:
        """One table, all keys the same one; about as many keys as `samples` of all tables.

        A bag begins a new group of `lanes` keys. So that this does not slow the stream down, a
        bag has as many keys as there are tables, rounded up to whole groups.
        """
        tables, lanes = len(self.rows), self.config.lanes
        keys = -(-tables // lanes) * lanes
        bags = samples * tables // keys
        row = self._hot_rows[0][0] if hot else self._one_bank[0][-1]
        indices = np.full(bags * keys, row, np.uint32)
        return Batch(indices, 1, np.full((bags, 1), keys, np.uint16))

    @staticmethod
    def _columns(columns: list[np.ndarray]) -> Batch:
        return Batch(np.stack(columns, axis=1).astype(np.uint32).ravel(), len(columns))
