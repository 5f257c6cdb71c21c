"""SPLIT with POOL on samples with as many indices as those of MLPerf."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hotline.gen.config import Config
from hotline.golden.descriptor import Completion
from hotline.host.bench_bounds import lookup_cycles
from hotline.host.bench_measure import Line, Measurement, Size, Work, judge
from hotline.host.bench_rig import Rig
from hotline.host.bench_traffic import draws
from hotline.host.device import Split
from hotline.host.efficiency import Beats, region_beats

__all__ = ["MLPERF_BAGS", "pool_lines"]

#: Indices a bag of the multi-hot Criteo set of MLPerf (DLRM-DCNv2), table by table; 214 in all.
MLPERF_BAGS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)

_ROW_BYTES, _ROWS = 64, 1 << 20
_TRAFFIC = "random rows"
#: Such a sample has eight times the indices of a one-hot one.
_FEWER = 8


def pool_lines(rig: Callable[[], Rig], config: Config, seed: int, size: Size) -> Iterator[Line]:
    """All rows cold, drawn at random; without and with weights. Parameters as for other lines."""
    if not config.pool or sum(MLPERF_BAGS) > config.max_sample_keys:
        return
    for weighted in (False, True):
        command = "SPLIT + POOL, MLPerf bags" + ", weighted" * weighted

        def run(command: str = command, weighted: bool = weighted) -> Measurement:
            return _pool(rig(), command, seed, max(1, size.samples // _FEWER), weighted)

        yield Line(command, _TRAFFIC, run)


def _pool(rig: Rig, command: str, seed: int, count: int, weighted: bool) -> Measurement:
    config, device, rng = rig.config, rig.device, draws(seed, command)
    bags = np.array(MLPERF_BAGS[: config.max_tables], np.uint16)
    tables = len(bags)
    table_rows = min(_ROWS, 1 << config.row_bits)
    rig.set_tables([table_rows] * tables, _ROW_BYTES)
    rig.load(np.zeros(0, np.uint64), None)
    lengths = np.tile(bags, (count, 1))
    keys = int(lengths.sum())
    indices = rng.integers(0, table_rows, keys).astype(np.uint32)
    samples = rig.samples(indices, tables, lengths)
    weights = rng.random(keys).astype(np.float32)
    address = rig.put("weights", weights).address if weighted else 0
    lists = rig.buffer("lists", device.list_bytes(count, keys))
    rows = rig.buffer("rows", count * tables * config.row_stride(_ROW_BYTES))
    result: list[Split] = []

    def run() -> Completion:
        result.append(device.split(samples, lists, rows, pool=True, weights=address))
        return result[0].completion

    seen = rig.observe(run)
    split = result[0]
    homes = np.tile(np.repeat(np.arange(tables, dtype=np.uint64), bags), count) << np.uint64(32)
    beats = rig.sample_beats(samples)
    beats += Beats(
        rig.home_beats(homes | indices) + region_beats(config, weights.nbytes * weighted),
        rig.dense_beats(count * tables),
    )
    regions = (split.popular, split.nonpopular, split.popular_slots, split.nonpopular_slots)
    beats += Beats(0, region_beats(config, *(r.nbytes for r in regions), split.keys.nbytes))
    work = Work(beats, keys, "rows", lookup_cycles(config, keys))
    return judge(rig, command, _TRAFFIC, seen, work)
