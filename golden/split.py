"""SPLIT with all its flags, on a memory image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hotline.golden.bus import Bus
from hotline.golden.classifier import HOT_ROW, Classification, Classifier
from hotline.golden.descriptor import Descriptor, Flag, Regions
from hotline.golden.gather import GatherDMA, HotBuffers
from hotline.golden.hot_table import HotTable
from hotline.golden.key_stream import KeyStream, Samples
from hotline.golden.outcome import Outcome, require
from hotline.golden.pool import Pool
from hotline.golden.row_mover import dense_rows
from hotline.golden.tables import Tables

__all__ = ["LastSplit", "Split"]


class LastSplit(NamedTuple):
    """The `keys` list that GATHER LAST uses: its address, and its number of rows."""

    keys: int
    rows: int


class Split:
    """Classifies a mini-batch, writes the lists, and fetches or pools the rows.

    Parameters
    ----------
    bus : Bus
        What is read and written.
    tables : Tables
        Where the rows live.
    buffers : HotBuffers
        Where the slots of each GPU live.
    hot_table : HotTable
        Which keys are hot.
    """

    def __init__(self, bus: Bus, tables: Tables, buffers: HotBuffers, hot_table: HotTable) -> None:
        self.config = bus.config
        self.bus = bus
        self.tables = tables
        self.buffers = buffers
        self.hot_table = hot_table
        self.classifier = Classifier(self.config)
        self.pool = Pool()

    def run(self, descriptor: Descriptor, outcome: Outcome) -> LastSplit | None:
        """One SPLIT that has passed the checks; returns what GATHER LAST may use.

        Raises
        ------
        CommandError
            Something failed; `outcome.undefined` then names the regions.
        """
        regions = Regions.of(descriptor.lists, descriptor.count, descriptor.num_keys)
        all_rows = bool(descriptor.flags & Flag.SPLIT_GATHER_HOT)
        gathered = 0
        if descriptor.count == 0:
            rows = 0
        else:
            outcome.undefined = self._split_regions(descriptor, regions)
            samples = KeyStream(self.config, self.bus, self.tables).samples(
                descriptor.count,
                descriptor.num_tables,
                descriptor.num_keys,
                descriptor.indices,
                descriptor.lengths,
            )
            require(samples.fault)
            keys = self.hot_table.hash.key(samples.table, samples.row)
            hit, slot, z = self.hot_table.probe(keys)
            result = self.classifier.classify(samples.offsets, hit, slot, z, all_rows)
            rows = len(result.source)
            self._write_lists(regions, samples, result, hit)
            if descriptor.flags & Flag.SPLIT_POOL:
                gathered = self._pool(descriptor, samples, result, hit, slot)
            elif descriptor.flags & Flag.SPLIT_GATHER:
                gathered = self._fetch(descriptor, samples, result, hit, slot)
            popular = len(result.popular)
            outcome.words = (
                popular,
                descriptor.count - popular,
                rows,
                result.hits,
                result.misses,
                result.replacements,
            )
            outcome.counts = {
                "SAMPLES": descriptor.count,
                "POPULAR": popular,
                "KEYS": len(keys),
                "HITS": result.hits,
                "ROWS_GATHERED": gathered,
                "ROWS_SHARED": result.shared,
            }
        return None if all_rows else LastSplit(regions.keys, rows)

    def _split_regions(self, descriptor: Descriptor, regions: Regions) -> list[tuple[int, int]]:
        undefined = [(regions.popular, regions.end - regions.popular)]
        if descriptor.flags & Flag.SPLIT_GATHER:
            pooled = bool(descriptor.flags & Flag.SPLIT_POOL)
            rows = descriptor.count * descriptor.num_tables if pooled else descriptor.num_keys
            undefined.append((descriptor.rows, rows * self.tables.stride(descriptor.num_tables)))
        return undefined

    def _write_lists(
        self, regions: Regions, samples: Samples, result: Classification, hit: np.ndarray
    ) -> None:
        source = result.source
        keys = (samples.table[source].astype(np.uint64) << np.uint64(32)) | samples.row[
            source
        ].astype(np.uint64)
        keys[hit[source]] |= np.uint64(HOT_ROW)
        lists = (
            (regions.popular, result.popular.astype("<u4")),
            (regions.nonpopular, result.nonpopular.astype("<u4")),
            (regions.popular_slots, result.popular_slots.astype("<u4")),
            (regions.nonpopular_slots, result.nonpopular_slots.astype("<u4")),
            (regions.keys, keys.astype("<u8")),
        )
        for address, data in lists:
            require(self.bus.linear(address, data.nbytes, write=True))
        for address, data in lists:
            self.bus.memory.write(address, data)

    def _sources(
        self, table: np.ndarray, row: np.ndarray, hot: np.ndarray, slot: np.ndarray
    ) -> np.ndarray:
        """Where rows are read: the n-th hot one from GPU n mod GPU_COUNT, others at home."""
        sources = self.tables.home(table, row)
        gpu = np.arange(int(hot.sum())) % len(self.buffers.base)
        sources[hot] = self.buffers.address(gpu, slot[hot])
        return sources

    def _fetch(
        self,
        descriptor: Descriptor,
        samples: Samples,
        result: Classification,
        hit: np.ndarray,
        slot: np.ndarray,
    ) -> int:
        """Rows to `rows`, as first needed. Returns the rows read."""
        source = result.source
        table, row = samples.table[source], samples.row[source]
        sources = self._sources(table, row, hit[source], slot[source])
        stride = self.tables.stride(descriptor.num_tables)
        numbers = np.arange(len(source))
        gather = GatherDMA(self.bus, self.tables)
        require(gather.copy(sources, table, numbers, descriptor.rows, stride))
        return len(source)

    def _pool(
        self,
        descriptor: Descriptor,
        samples: Samples,
        result: Classification,
        hit: np.ndarray,
        slot: np.ndarray,
    ) -> int:
        """Sums by bag to `rows`. Returns the rows read."""
        keys = len(hit)
        weights = np.ones(keys, np.float32)
        if descriptor.weights:
            require(self.bus.linear(descriptor.weights, 4 * keys, write=False))
            weights = self.bus.memory.read(descriptor.weights, 4 * keys).view("<f4")
        all_rows = bool(descriptor.flags & Flag.SPLIT_GATHER_HOT)
        source = np.flatnonzero(result.in_nonpopular if all_rows else result.cold)
        table, row = samples.table[source], samples.row[source]
        tables = self.tables
        sizes = tables.row_bytes[table]
        sources = self._sources(table, row, hit[source], slot[source])
        require(self.bus.rows(sources, sizes, write=False))

        # Vector (n, t) of the n-th non-popular sample; bags of popular samples stay unused.
        num_tables = descriptor.num_tables
        order = np.zeros(descriptor.count, np.int64)
        order[result.nonpopular] = np.arange(len(result.nonpopular))
        sample = np.searchsorted(samples.offsets, source, side="right") - 1
        count = len(result.nonpopular) * num_tables
        stride = tables.stride(num_tables)
        rows = self.bus.memory.gather(sources, sizes, stride)
        sums = self.pool.sums(rows, weights[source], order[sample] * num_tables + table, count)
        targets = dense_rows(descriptor.rows, np.arange(count), stride)
        lengths = np.tile(tables.row_bytes[:num_tables], len(result.nonpopular))
        require(self.bus.rows(targets, lengths, write=True))
        self.bus.memory.scatter(targets, lengths, sums)
        return len(source)
