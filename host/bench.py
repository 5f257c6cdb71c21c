"""Measures the performance contract (spec section 9) on the Verilated RTL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hotline.gen.commands import Opcode
from hotline.gen.config import Config
from hotline.golden.descriptor import Descriptor
from hotline.golden.hot_table import HotTable
from hotline.host.backends import RtlBackend
from hotline.host.click_log import ClickLog
from hotline.host.datasets import open_log
from hotline.host.device import Device, Samples, table_bases
from hotline.host.efficiency import Beats, region_beats, row_beats
from hotline.host.popularity import popular_samples

__all__ = ["CONTRACT", "Measurement", "bench", "measure"]

_SAMPLES = 4096
_ROWS = 10_000

#: Least efficiency by line of section 9.
CONTRACT = {
    "SPLIT, 100 % popular": 0.90,
    "SPLIT, 75 % popular": 0.90,
    "SPLIT, 25 % popular": 0.90,
    "SPLIT + GATHER, 75 % popular": 0.90,
    "SPLIT + GATHER, 25 % popular": 0.90,
    "GATHER, 64-byte rows": 0.95,
    "GATHER, 256-byte rows, unaligned": 0.90,
    "SCATTER, 64-byte rows": 0.85,
    "LEARN": 0.25,
}


@dataclass(frozen=True)
class Measurement:
    """One line: fewest beats on both channels, and the cycles of the completion record."""

    line: str
    traffic: str
    beats: Beats
    cycles: int

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "line": self.line,
            "traffic": self.traffic,
            "read_beats": self.beats.read,
            "write_beats": self.beats.write,
            "cycles": self.cycles,
            "efficiency": self.beats.efficiency(self.cycles),
            "contract": CONTRACT[self.line],
        }


def measure(
    config: Config,
    log: ClickLog,
    seed: int = 1,
    progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Measurement]:
    """Run every line of section 9 with the memory model of section 9.

    Parameters
    ----------
    config : Config
        What to measure.
    log : ClickLog
        One-hot traffic; it must have popular and other samples for a hot table of this size.
    seed : int
        Of the choice of samples and rows.
    progress : callable
        Called with the name of each line before it is measured.

    Raises
    ------
    ValueError
        The log has too few samples of one kind.
    """
    bench = _Bench(config, log, np.random.default_rng(seed))
    try:
        for line, run in bench.lines():
            progress(line)
            beats, cycles = run()
            yield Measurement(line, log.name, beats, cycles)
    finally:
        bench.close()


def bench(
    config: Config, name: str, source: str, samples: int | None, seed: int, json_file: Path | None
) -> None:
    """Measure every line, show a table, and write it to `json_file`."""
    console = Console()
    console.print(f"[bold]Hotline[/] {name}, {source}, seed {seed}")
    log = open_log(source, samples, seed)
    table = Table()
    for column in ("command", "read beats", "write beats", "cycles", "efficiency", "contract"):
        table.add_column(column, justify="left" if column == "command" else "right")
    lines = []
    with console.status("building the simulation") as status:
        for done in measure(config, log, seed, status.update):
            row = done.as_dict()
            lines.append(row)
            numbers = (row["read_beats"], row["write_beats"], row["cycles"])
            colour = "green" if row["efficiency"] >= row["contract"] else "red"
            table.add_row(
                done.line,
                *(f"{number:,}" for number in numbers),
                f"[{colour}]{row['efficiency']:.3f}[/]",
                f"{row['contract']:.2f}",
            )
    console.print(table)
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        result = {"preset": name, "config_hash": f"{config.config_hash:08x}", "seed": seed}
        json_file.write_text(json.dumps(result | {"lines": lines}, indent=2) + "\n")


class _Bench:
    def __init__(self, config: Config, log: ClickLog, rng: np.random.Generator) -> None:
        self.config, self.log, self.rng = config, log, rng
        self.backend = RtlBackend(config)
        self.device = device = Device(self.backend)
        self.keys = log.keys(config.row_bits)
        self.bases = table_bases(log.table_rows, 64)
        # Untouched pages of the tables cost the host no memory.
        self.tables = device.allocate(int(self.bases[-1]))
        # Rows of 256 bytes, off the bus by one word: as many as fit the same memory.
        self.long_rows = np.maximum(1, np.array(log.table_rows) // 8)
        self.long_bases = table_bases(self.long_rows, 256) + 4
        self._set_tables(64)
        keys = _SAMPLES * log.num_tables
        self.indices = device.allocate(4 * keys)
        self.lists = device.allocate(device.list_bytes(_SAMPLES, keys))
        self.rows = device.allocate(max(64 * keys, 256 * _ROWS))
        self._fill_table()

    def close(self) -> None:
        self.backend.close()

    def lines(self) -> Iterator[tuple[str, Callable[[], tuple[Beats, int]]]]:
        for share in (1.0, 0.75, 0.25):
            yield f"SPLIT, {share:.0%} popular".replace("%", " %"), self._split(share, False)
        for share in (0.75, 0.25):
            name = f"SPLIT + GATHER, {share:.0%} popular".replace("%", " %")
            yield name, self._split(share, True)
        yield "GATHER, 64-byte rows", lambda: self._move(Opcode.GATHER, 64)
        yield "SCATTER, 64-byte rows", lambda: self._move(Opcode.SCATTER, 64)
        yield "GATHER, 256-byte rows, unaligned", lambda: self._move(Opcode.GATHER, 256)
        yield "LEARN", self._learn

    # ---- set-up -------------------------------------------------------------------------------

    def _set_tables(self, row_bytes: int) -> None:
        short = row_bytes == 64
        bases = self.bases if short else self.long_bases
        counts = self.log.table_rows if short else self.long_rows
        for table, count in enumerate(counts):
            base = self.tables.address + int(bases[table])
            self.device.set_table(table, base, int(count), row_bytes)

    def _fill_table(self) -> None:
        """The most frequent keys, to three quarters of the slots, as an offline profile."""
        keys, counts = np.unique(self.keys, return_counts=True)
        hottest = keys[np.argsort(-counts, kind="stable")][: self.config.slots * 3 // 4]
        bits = np.uint64(self.config.row_bits)
        mask = np.uint64((1 << self.config.row_bits) - 1)
        entries = ((hottest >> bits) << np.uint64(32)) | (hottest & mask)
        buffer = self.device.allocate(entries.nbytes)
        buffer.data[: entries.nbytes] = entries.view(np.uint8)
        self.device.load(len(entries), buffer.address)
        records = self.device.allocate(16 * self.config.slots)
        self.device.commit(records)
        model = HotTable(self.config)
        model.load(hottest)
        hit, _ = model.lookup(self.keys)
        self.popular = popular_samples(hit, self.log.offsets)

    def _batch(self, share: float) -> np.ndarray:
        """Numbers of 4096 samples of which `share` are popular, in random order."""
        wanted = round(share * _SAMPLES)
        parts = []
        for kind, count in ((True, wanted), (False, _SAMPLES - wanted)):
            found = np.flatnonzero(self.popular == kind)
            if len(found) < count:
                name = "popular" if kind else "other"
                raise ValueError(f"{self.log.name} has {len(found)} {name} samples, not {count}")
            parts.append(self.rng.choice(found, count, replace=False))
        return self.rng.permutation(np.concatenate(parts))

    def _samples(self, numbers: np.ndarray) -> Samples:
        tables = self.log.num_tables
        indices = self.log.indices.reshape(-1, tables)[numbers].ravel()
        return Samples.place(indices, tables, None, self.indices, self.indices)

    # ---- lines --------------------------------------------------------------------------------

    def _split(self, share: float, gather: bool) -> Callable[[], tuple[Beats, int]]:
        def run() -> tuple[Beats, int]:
            config = self.config
            samples = self._samples(self._batch(share))
            split = self.device.split(samples, self.lists, self.rows if gather else None)
            lists = (split.popular, split.nonpopular, split.popular_slots, split.nonpopular_slots)
            beats = Beats(
                region_beats(config, 4 * samples.num_keys),
                region_beats(config, *(part.nbytes for part in (*lists, split.keys))),
            )
            if gather:
                beats += self._row_beats(split.keys, 64)
            return beats, split.completion.cycles

        return run

    def _row_beats(self, keys: np.ndarray, size: int) -> Beats:
        """Beats of a gather: homes read, dense rows written."""
        tables = (keys >> np.uint64(32)).astype(np.int64)
        rows = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
        bases = self.bases if size == 64 else self.long_bases
        addresses = (self.tables.address + bases[tables] + rows * size).astype(np.uint64)
        homes = row_beats(self.config, addresses, np.full(len(keys), size))
        return Beats(homes, len(keys) * region_beats(self.config, size))

    def _move(self, opcode: Opcode, size: int) -> tuple[Beats, int]:
        """10 000 random rows of random tables."""
        self._set_tables(size)
        counts = np.array(self.log.table_rows if size == 64 else self.long_rows)
        tables = self.rng.integers(0, len(counts), _ROWS)
        rows = (self.rng.random(_ROWS) * counts[tables]).astype(np.uint64)
        keys = (tables.astype(np.uint64) << np.uint64(32)) | rows
        self.lists.data[: keys.nbytes] = keys.view(np.uint8)
        done = self.device.execute(
            Descriptor(
                opcode=opcode,
                count=_ROWS,
                num_tables=len(counts),
                lists=self.lists.address,
                rows=self.rows.address,
            )
        )
        self._set_tables(64)
        moved = self._row_beats(keys, size)
        if opcode == Opcode.SCATTER:
            moved = Beats(moved.write, moved.read)
        return Beats(region_beats(self.config, keys.nbytes)) + moved, done.cycles

    def _learn(self) -> tuple[Beats, int]:
        samples = self._samples(self.rng.choice(len(self.log), _SAMPLES, replace=False))
        done = self.device.learn(samples)
        return Beats(region_beats(self.config, 4 * samples.num_keys)), done.cycles
