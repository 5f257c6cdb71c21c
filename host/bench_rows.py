"""Commands that move rows: GATHER, SCATTER, FILL, BACK and COMMIT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from hotline.gen.commands import Opcode
from hotline.golden.descriptor import Completion, Descriptor
from hotline.host.bench_bounds import commit_cycles
from hotline.host.bench_measure import Line, Measurement, Size, Work, judge
from hotline.host.bench_rig import Rig
from hotline.host.bench_traffic import LogTraffic, draws
from hotline.host.efficiency import Beats, region_beats

__all__ = ["ROW_BYTES", "move", "random_rows", "row_lines"]

#: Lengths of rows in the worst case.
ROW_BYTES = (40, 64, 256, 1024)
#: Bytes from the start of a bus beat to an unaligned table.
_UNALIGNED = 4
#: Long rows are fewer, so that a line moves no more bytes than this.
_MOST_BYTES = 2_560_000


def random_rows(
    rig: Rig, rows: Sequence[int], row_bytes: int, count: int, rng: np.random.Generator,
    *, offset: int = 0, distinct: bool = False,
) -> np.ndarray:  # fmt: skip
    """Set tables of the shapes `rows`, and draw rows of random tables.

    Tables of longer rows than 64 bytes get fewer of them, so that they take no more memory.

    Parameters
    ----------
    rig : Rig
        The device.
    rows : sequence of int
        Rows by table.
    row_bytes, offset : int
        Of the tables, see :meth:`Rig.set_tables`.
    count : int
        Rows to draw.
    rng : Generator
        Draws.
    distinct : bool
        No row twice.

    Returns
    -------
    np.ndarray
        Entries of a `keys` list, uint64 [count], fewer if `distinct` and there are not so many.
    """
    counts = np.maximum(1, np.array(rows, np.int64) * 64 // max(64, row_bytes))
    rig.set_tables(counts.tolist(), row_bytes, offset)
    drawn = count if not distinct else 2 * count
    tables = rng.integers(0, len(counts), drawn)
    picks = (rng.random(drawn) * counts[tables]).astype(np.uint64)
    keys = (tables.astype(np.uint64) << np.uint64(32)) | picks
    return rng.permutation(np.unique(keys))[:count] if distinct else keys


def move(
    rig: Rig, command: str, traffic: str, opcode: Opcode, keys: np.ndarray, *, add: bool = False
) -> Measurement:
    """GATHER or SCATTER the rows of `keys`, entries of a `keys` list, in tables as they are set."""
    config, device = rig.config, rig.device
    lists = rig.put("keys", keys)
    rows = rig.buffer("rows", len(keys) * config.row_stride(rig.row_bytes))
    tables = rig.tables

    def run() -> Completion:
        if opcode == Opcode.SCATTER:
            return device.scatter(len(keys), tables, lists.address, rows, add=add)
        return device.execute(
            Descriptor(
                opcode=opcode,
                count=len(keys),
                num_tables=tables,
                lists=lists.address,
                rows=rows.address,
            )
        )

    seen = rig.observe(run)
    homes, dense = rig.home_beats(keys), rig.dense_beats(len(keys))
    beats = Beats(region_beats(config, keys.nbytes))
    if opcode == Opcode.SCATTER:
        beats += Beats(dense + homes * add, homes)
    else:
        beats += Beats(homes, dense)
    return judge(rig, command, traffic, seen, Work(beats, len(keys), "rows"))


def row_lines(rig: Callable[[], Rig], traffic: LogTraffic, size: Size) -> Iterator[Line]:
    """The lines on random rows of tables with the shapes of `traffic`.

    Parameters
    ----------
    rig : callable
        Gives the device; called when a line runs.
    traffic : LogTraffic
        Whose tables, and whose hot rows.
    size : Size
        How much.
    """
    name = f"random rows, tables of {traffic.name}"
    config = traffic.config

    def moved(opcode: Opcode, command: str, row_bytes: int, offset: int) -> Measurement:
        device, count = rig(), min(size.rows, _MOST_BYTES // row_bytes)
        rng = draws(traffic.seed, command)
        keys = random_rows(device, traffic.rows, row_bytes, count, rng, offset=offset)
        return move(device, command, name, opcode, keys)

    for row_bytes in ROW_BYTES:
        if row_bytes > config.max_row_bytes:
            continue
        for offset in (0, _UNALIGNED):
            for opcode in (Opcode.GATHER, Opcode.SCATTER):
                command = f"{opcode.name}, {row_bytes}-byte rows{', unaligned' * bool(offset)}"
                run = partial(moved, opcode, command, row_bytes, offset)
                yield Line(command, name, run)

    def added(command: str) -> Measurement:
        device = rig()
        rng = draws(traffic.seed, command)
        keys = random_rows(device, traffic.rows, 64, size.rows, rng, distinct=True)
        return move(device, command, name, Opcode.SCATTER, keys, add=True)

    if config.scatter_add:
        command = "SCATTER ADD, 64-byte rows"
        yield Line(command, name, partial(added, command))
    for gpus in sorted({1, config.gpus}):
        command = "FILL, 64-byte rows" + (f", {gpus} GPUs" if gpus > 1 else "")
        yield Line(command, name, partial(_fill, rig, command, name, traffic, size, gpus))
    command = "BACK, 64-byte rows"
    yield Line(command, name, partial(_fill, rig, command, name, traffic, size, 1, back=True))
    for command in ("COMMIT, nothing changed", "COMMIT, all slots", "COMMIT FILL, a fresh table"):
        yield Line(command, traffic.name, partial(_commit, rig, command, traffic))


def _fill(
    rig_of: Callable[[], Rig], command: str, name: str, traffic: LogTraffic, size: Size,
    gpus: int, back: bool = False,
) -> Measurement:  # fmt: skip
    """Random rows to different slots of the hot buffers, or back."""
    rig = rig_of()
    config, rng = rig.config, draws(traffic.seed, command)
    count = min(size.rows, config.slots)
    keys = random_rows(rig, traffic.rows, 64, count, rng, distinct=True)
    rig.set_hot_buffers(gpus)
    records = np.zeros((len(keys), 4), np.uint32)
    records[:, 0] = rng.permutation(config.slots)[: len(keys)]
    records[:, 1], records[:, 2] = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
    address = rig.put("records to fill", records).address
    seen = rig.observe(lambda: rig.device.fill(len(keys), address, back=back))
    homes, slots = rig.home_beats(keys), rig.dense_beats(len(keys))
    beats = Beats(region_beats(config, records.nbytes))
    beats += Beats(slots, homes) if back else Beats(homes, gpus * slots)
    return judge(rig, command, name, seen, Work(beats, len(keys), "rows"))


def _commit(rig_of: Callable[[], Rig], command: str, traffic: LogTraffic) -> Measurement:
    """COMMIT of the hot rows of a log."""
    rig = rig_of()
    config, fill = rig.config, command.startswith("COMMIT FILL")
    rig.set_tables(traffic.rows, 64)
    rig.set_hot_buffers(1)
    rig.load(traffic.hot_keys, None, commit=not fill)
    buffer = rig.buffer("records", 16 * config.slots)
    result: list[np.ndarray] = []

    def run() -> Completion:
        everything = command.endswith("all slots")
        records, done = rig.device.commit(buffer, everything=everything, fill=fill)
        result.append(records)
        return done

    seen = rig.observe(run)
    records = result[0]
    beats = Beats(0, region_beats(config, records.nbytes))
    if fill:
        keys = (records[:, 1].astype(np.uint64) << np.uint64(32)) | records[:, 2]
        beats += Beats(rig.home_beats(keys), rig.dense_beats(len(keys)))
    cycles = commit_cycles(config, records[:, 0])
    work = Work(beats, config.slots, "slots", cycles)
    return judge(rig, command, traffic.name, seen, work)
