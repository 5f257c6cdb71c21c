"""Sweeps: efficiency against latency, row size and outstanding reads; the arbiter of the banks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hotline.gen.commands import Opcode
from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.golden.hash import KeyHash
from hotline.host.bench_arbiter import crossbar_rate
from hotline.host.bench_lines import split_line
from hotline.host.bench_measure import Measurement, Size
from hotline.host.bench_probe import GROUPS, ProbedTable
from hotline.host.bench_rig import Rig
from hotline.host.bench_rows import move, random_rows
from hotline.host.bench_traffic import LogTraffic

__all__ = ["Task", "arbiter_tasks", "latency_tasks", "outstanding_tasks", "row_size_tasks"]

LATENCIES = (20, 50, 100, 200, 400, 700, 1000)
ROW_SIZES = (4, 16, 32, 64, 128, 256, 512, 1024)
OUTSTANDING = (8, 16, 32)
BANKS = (8, 16, 32, 64)
#: Depths of a lane's queue that the model is asked for, besides the one of the hardware.
DEPTHS = (1, 2, 4, 8, 16, 32, 64)

_LATENCY = 200
_ROW_BYTES = 64
_MOST_BYTES = 640_000
_LANES = 16
#: How often the probe sends its keys, so that beginning and end do not count.
_ROUNDS = 8
#: Tables of a sweep, and rows of each.
_SHAPE = (1 << 18,) * 8

#: Everything that costs time to build and does not matter to a GATHER is small.
_OUTSTANDING_BASE = preset("ecp5").replace(
    sets=64, ways=1, policy="srrip", counter_bits=2, lanes=1, dedup_entries=0, gpus=1,
    scatter_add=False, perf_counters=False,
)  # fmt: skip

#: The arbiter sees keys and banks only.
_ARBITER_BASE = _OUTSTANDING_BASE.replace(lanes=_LANES, row_bits=16, data_width=32, addr_width=32)


@dataclass(frozen=True)
class Task:
    """A piece of work of the bench: `run` returns records for `section` of the result."""

    section: str
    name: str
    run: Callable[[], list[dict[str, Any]]]


def latency_tasks(
    rig: Callable[[], Rig], traffic: LogTraffic, size: Size, seed: int
) -> Iterator[Task]:
    """Commands of the contract at other latencies of the memory.

    Parameters
    ----------
    rig : callable
        Gives the device; called when a task runs.
    traffic : LogTraffic
        For SPLIT.
    size : Size
        How much.
    seed : int
        Of the choice of rows.
    """

    def rows(device: Rig, opcode: Opcode) -> Measurement:
        rng = np.random.default_rng(seed)
        keys = random_rows(device, traffic.rows, _ROW_BYTES, size.rows, rng)
        return move(device, f"{opcode.name}, 64-byte rows", "random rows", opcode, keys)

    commands: dict[str, Callable[[Rig], Measurement]] = {
        "GATHER": lambda device: rows(device, Opcode.GATHER),
        "SCATTER": lambda device: rows(device, Opcode.SCATTER),
        "SPLIT, 75 % popular": lambda device: split_line(device, traffic, size, 0.75, False),
        "SPLIT + GATHER, 25 % popular": lambda device: split_line(
            device, traffic, size, 0.25, True
        ),
    }

    def run(command: str, latency: int) -> list[dict[str, Any]]:
        device = rig()
        device.set_read_latency(latency)
        try:
            return [_point(command, commands[command](device), latency=latency)]
        finally:
            device.set_read_latency(_LATENCY)

    for command in commands:
        for latency in LATENCIES:
            yield Task("latency", f"{command}, {latency} cycles", partial(run, command, latency))


def row_size_tasks(rig: Callable[[], Rig], config: Config, size: Size, seed: int) -> Iterator[Task]:
    """GATHER and SCATTER of random rows of other lengths. Parameters as above."""

    def run(opcode: Opcode, row_bytes: int, offset: int) -> list[dict[str, Any]]:
        device, rng = rig(), np.random.default_rng(seed)
        count = min(size.rows, _MOST_BYTES // row_bytes)
        keys = random_rows(device, _shape(config), row_bytes, count, rng, offset=offset)
        command = f"{opcode.name}{', unaligned' * bool(offset)}"
        measured = move(device, command, "random rows", opcode, keys)
        return [_point(command, measured, row_bytes=row_bytes)]

    for opcode in (Opcode.GATHER, Opcode.SCATTER):
        for offset in (0, 4):
            for row_bytes in ROW_SIZES:
                if row_bytes <= config.max_row_bytes:
                    name = f"{opcode.name}, {row_bytes} bytes at offset {offset}"
                    yield Task("row_bytes", name, partial(run, opcode, row_bytes, offset))


def outstanding_tasks(size: Size, seed: int) -> Iterator[Task]:
    """GATHER of 64-byte rows on a 64-bit bus, by outstanding reads and latency.

    Outstanding reads are part of the hardware, so each point of them is a device of its own, as
    small as can be.
    """

    def run(outstanding: int) -> list[dict[str, Any]]:
        rig = Rig(_OUTSTANDING_BASE.replace(read_outstanding=outstanding))
        records = []
        try:
            for latency in LATENCIES:
                rig.set_read_latency(latency)
                rng = np.random.default_rng(seed)
                keys = random_rows(rig, _SHAPE, _ROW_BYTES, size.rows, rng)
                measured = move(rig, "GATHER", "random rows", Opcode.GATHER, keys)
                records.append(
                    _point("GATHER", measured, read_outstanding=outstanding, latency=latency)
                )
        finally:
            rig.close()
        return records

    for outstanding in OUTSTANDING:
        yield Task("outstanding", f"{outstanding} outstanding reads", partial(run, outstanding))


def arbiter_tasks(traffic: LogTraffic, seed: int) -> Iterator[Task]:
    """Keys a cycle of the hot table alone, 16 lanes, by banks and traffic."""

    def run(banks: int) -> list[dict[str, Any]]:
        config = _ARBITER_BASE.replace(banks=banks, sets=2 * banks)
        hashes = KeyHash(config)
        table = ProbedTable(config)
        records = []
        try:
            for name, keys in _arbiter_keys(config, traffic, seed).items():
                rate, stalls = table.rate(keys, _ROUNDS * GROUPS)
                sent = np.tile(keys, (_ROUNDS, 1))
                own = hashes.bank(sent)
                records.append(
                    {
                        "banks": banks,
                        "lanes": config.lanes,
                        "traffic": name,
                        "per_cycle": round(rate, 4),
                        "stalls": round(stalls, 4),
                        "model": round(crossbar_rate(sent, own), 4),
                    }
                )
                if name == "random":
                    by_depth = [round(crossbar_rate(sent, own, depth), 4) for depth in DEPTHS]
                    records[-1]["model_by_depth"] = by_depth
        finally:
            table.close()
        return records

    for banks in BANKS:
        yield Task("arbiter", f"{_LANES} lanes, {banks} banks", partial(run, banks))


def _arbiter_keys(config: Config, traffic: LogTraffic, seed: int) -> dict[str, np.ndarray]:
    """Groups of keys by kind of traffic: int64 [GROUPS, lanes]."""
    rng, shape = np.random.default_rng(seed), (GROUPS, config.lanes)
    count, keys = GROUPS * config.lanes, np.arange(1 << config.key_bits)
    one_bank = keys[KeyHash(config).bank(keys) == 0]
    # The log's keys are longer than the probe's: each gets a random key of its own.
    log = traffic.log.indices.astype(np.int64) * traffic.log.num_tables + traffic.log.key_tables
    _, places = np.unique(np.resize(log, count), return_inverse=True)
    return {
        "random": rng.integers(0, 1 << config.key_bits, shape),
        traffic.name: rng.permutation(keys)[places].reshape(shape),
        "one bank": rng.permutation(one_bank)[:count].reshape(shape),
        "equal keys": np.repeat(rng.integers(0, 1 << config.key_bits, (GROUPS, 1)), _LANES, 1),
    }


def _shape(config: Config) -> tuple[int, ...]:
    return (min(_SHAPE[0], 1 << config.row_bits),) * min(len(_SHAPE), config.max_tables)


def _point(command: str, measured: Measurement, **place: int) -> dict[str, Any]:
    """A point of a sweep: where it is, and what came out."""
    return {
        "command": command,
        **place,
        "cycles": measured.seen.cycles,
        "efficiency": round(measured.efficiency, 5),
        "limited_by": measured.limit.value,
    }
