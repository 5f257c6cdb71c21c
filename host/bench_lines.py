"""SPLIT and LEARN, on a click log and on the worst case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from hotline.gen.commands import Opcode
from hotline.gen.config import Config
from hotline.golden.descriptor import Completion
from hotline.host.bench_bounds import learn_cycles, lookup_cycles
from hotline.host.bench_measure import Line, Measurement, Size, Work, judge
from hotline.host.bench_rig import Rig
from hotline.host.bench_rows import move
from hotline.host.bench_traffic import Batch, LogTraffic, WorstTraffic
from hotline.host.device import Split
from hotline.host.efficiency import Beats, region_beats

__all__ = ["log_lines", "split_line", "worst_lines"]

_ROW_BYTES = 64


def log_lines(rig: Callable[[], Rig], traffic: LogTraffic, size: Size) -> Iterator[Line]:
    """The lines on a click log.

    Parameters
    ----------
    rig : callable
        Gives the device; called when a line runs.
    traffic : LogTraffic
        The log.
    size : Size
        How much.
    """

    def ready() -> Rig:
        return _prepared(rig(), traffic)

    def line(share: float, *, gather: bool = False, hot: bool = False) -> Line:
        def run() -> Measurement:
            return split_line(rig(), traffic, size, share, gather, hot)

        return Line(_split_name(share, gather, hot), traffic.name, run)

    def rows(opcode: Opcode, count: int, *, add: bool = False) -> Line:
        command = f"{opcode.name}{' ADD' * add}, rows as the log needs them"

        def run() -> Measurement:
            keys = traffic.row_keys(command, count)
            return move(ready(), command, traffic.name, opcode, keys, add=add)

        return Line(command, traffic.name, run)

    def learn() -> Measurement:
        return _learn(
            ready(), "LEARN", traffic, traffic.batch("LEARN", size.samples_of(len(traffic.rows)))
        )

    for share in (1.0, 0.75, 0.25):
        yield line(share)
    for share in (0.75, 0.25):
        yield line(share, gather=True)
    for share in (0.75, 0.25):
        yield line(share, gather=True, hot=True)
    yield rows(Opcode.GATHER, size.rows)
    yield rows(Opcode.SCATTER, size.rows)
    if traffic.config.scatter_add:
        # A row that comes again waits for its earlier sum, and in a log rows do come again.
        yield rows(Opcode.SCATTER, size.rows // 5, add=True)
    # Last, because it changes the hot table.
    yield Line("LEARN", traffic.name, learn)


def split_line(
    rig: Rig, traffic: LogTraffic, size: Size, share: float, gather: bool, hot: bool = False
) -> Measurement:
    """A SPLIT of samples of a log of which `share` are popular, with GATHER, and GATHER_HOT."""
    name = _split_name(share, gather, hot)
    batch = traffic.batch(name, size.samples_of(len(traffic.rows)), share)
    return _split(_prepared(rig, traffic), name, traffic.name, batch, gather, hot)


def _split_name(share: float, gather: bool, hot: bool) -> str:
    suffix = " + GATHER_HOT" if hot else " + GATHER" * gather
    return f"SPLIT{suffix}, {round(100 * share)} % popular"


def worst_lines(rig: Callable[[], Rig], config: Config, seed: int, size: Size) -> Iterator[Line]:
    """All lanes want one bank, all keys are equal, or all are cold. Parameters as above."""
    traffic = cache(lambda: WorstTraffic(config, seed))
    name, samples, lanes = WorstTraffic.name, size.samples, config.lanes
    # Up to two lanes own a port of each bank; more share the two ports of one.
    two = min(2, lanes)
    # Equal low bits of z: one new key a cycle in the store of seen keys.
    one = 1 if config.dedup_entries else two

    def split(
        command: str, batch: Callable[[], Batch], rate: int = lanes, gather: bool = False
    ) -> Line:
        def run() -> Measurement:
            ready = _prepared(rig(), traffic())
            return _split(ready, command, name, batch(), gather, False, rate)

        return Line(command, name, run)

    def learn(command: str, batch: Callable[[], Batch], rate: int = lanes) -> Line:
        def run() -> Measurement:
            return _learn(_prepared(rig(), traffic()), command, traffic(), batch(), rate)

        return Line(command, name, run)

    yield split("SPLIT, one bank, all hot", lambda: traffic().hot_one_bank(samples), two)
    yield split("SPLIT, one bank, all cold", lambda: traffic().cold(samples, one_bank=True), one)
    yield split("SPLIT, all keys one hot key", lambda: traffic().equal(samples, hot=True))
    yield split("SPLIT, all keys cold", lambda: traffic().cold(samples))
    command = "SPLIT + GATHER, all keys cold"
    yield split(command, lambda: traffic().cold(samples), gather=True)
    command = "SPLIT + GATHER, all keys one cold key"
    yield split(command, lambda: traffic().equal(samples, hot=False), gather=True)
    yield learn("LEARN, one bank", lambda: traffic().hot_one_bank(samples), two)
    yield learn("LEARN, all keys equal", lambda: traffic().equal(samples, hot=True))
    yield learn("LEARN, all keys cold", lambda: traffic().cold(samples))


def _prepared(rig: Rig, traffic: LogTraffic | WorstTraffic) -> Rig:
    """The device with the tables and the hot rows of this traffic."""
    if rig.loaded is not traffic:
        rig.set_tables(traffic.rows, _ROW_BYTES)
        rig.set_hot_buffers(rig.config.gpus)
        rig.load(traffic.hot_keys, traffic)
    return rig


def _split(
    rig: Rig,
    command: str,
    traffic: str,
    batch: Batch,
    gather: bool,
    hot: bool,
    rate: int | None = None,
) -> Measurement:
    """A SPLIT; `rate`: most keys a cycle that the hot table can look up, None for `lanes`."""
    config, device = rig.config, rig.device
    samples = rig.samples(batch.indices, batch.tables, batch.lengths)
    lists = rig.buffer("lists", device.list_bytes(samples.count, samples.num_keys))
    rows = rig.buffer("rows", samples.num_keys * config.row_stride(_ROW_BYTES)) if gather else None
    result: list[Split] = []

    def run() -> Completion:
        result.append(device.split(samples, lists, rows, gather_hot=hot))
        return result[0].completion

    seen = rig.observe(run)
    split = result[0]
    regions = (split.popular, split.nonpopular, split.popular_slots, split.nonpopular_slots)
    beats = rig.sample_beats(samples)
    beats += Beats(0, region_beats(config, *(r.nbytes for r in regions), split.keys.nbytes))
    if gather:
        beats += Beats(rig.home_beats(split.keys), rig.dense_beats(len(split.keys)))
    cycles = lookup_cycles(config, samples.num_keys, rate)
    return judge(rig, command, traffic, seen, Work(beats, samples.count, "samples", cycles))


def _learn(
    rig: Rig,
    command: str,
    traffic: LogTraffic | WorstTraffic,
    batch: Batch,
    rate: int | None = None,
) -> Measurement:
    """A LEARN; `rate` as for :func:`_split`."""
    config = rig.config
    samples = rig.samples(batch.indices, batch.tables, batch.lengths)
    rig.loaded = None
    seen = rig.observe(lambda: rig.device.learn(samples))
    keys = batch.keys(config)
    cycles = learn_cycles(config, traffic.hot_keys, keys, rate)
    work = Work(rig.sample_beats(samples), samples.count, "samples", cycles)
    return judge(rig, command, traffic.name, seen, work)
