"""What a CPU does instead: splitters in NumPy and numba, and a gather with `np.take`.

A splitter finds the popular samples with a table of booleans, one for each row of all tables, and
writes both micro-batches. That is less than the device does, which also writes slots and the list
of rows to fetch, each once. Everything runs on one thread; the best of several rounds counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from hotline.host.bench_traffic import LogTraffic

__all__ = ["PAPER_MHZ", "SPLITTERS", "compare", "gather_rates", "split_rates"]

#: Clock of the published accelerator.
PAPER_MHZ = 350.0

_BATCHES = 16
_ROUNDS = 8
_SECONDS = 0.2
#: Rows of the table of the gather: 256 MB, more than a cache holds.
_GATHER_TABLE = 1 << 22
_FLOATS = 16

#: Popular samples, the others, and the indices of both.
_Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def split_numpy(indices: np.ndarray, bases: np.ndarray, hot: np.ndarray) -> _Parts:
    """Both micro-batches.

    Parameters
    ----------
    indices : np.ndarray
        Rows, uint32 [samples, tables].
    bases : np.ndarray
        Place in `hot` of row 0 of each table, uint32 [tables].
    hot : np.ndarray
        Whether each row is hot: bool.

    Returns
    -------
    tuple
        Numbers of the popular samples and of the others, int64; their indices, uint32.
    """
    popular = hot.take(indices + bases).all(axis=1)
    first, rest = np.flatnonzero(popular), np.flatnonzero(~popular)
    return first, rest, indices.take(first, axis=0), indices.take(rest, axis=0)


@njit(cache=False)
def _split(indices, bases, hot, first, rest, first_rows, rest_rows):  # type: ignore[no-untyped-def]
    samples, tables = indices.shape
    popular = 0
    others = 0
    for sample in range(samples):
        is_hot = True
        for table in range(tables):
            if not hot[bases[table] + indices[sample, table]]:
                is_hot = False
                break
        if is_hot:
            first[popular] = sample
            first_rows[popular] = indices[sample]
            popular += 1
        else:
            rest[others] = sample
            rest_rows[others] = indices[sample]
            others += 1
    return popular, others


def split_numba(indices: np.ndarray, bases: np.ndarray, hot: np.ndarray) -> _Parts:
    """The same as :func:`split_numpy`, in one pass that leaves a sample at its first cold key."""
    first, rest = np.empty((2, len(indices)), np.int64)
    first_rows, rest_rows = np.empty_like(indices), np.empty_like(indices)
    popular, others = _split(indices, bases, hot, first, rest, first_rows, rest_rows)
    return first[:popular], rest[:others], first_rows[:popular], rest_rows[:others]


SPLITTERS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], _Parts]] = {
    "NumPy splitter": split_numpy,
    "numba splitter": split_numba,
}


def _per_second(step: Callable[[int], None], items: int) -> float:
    """Items a second of `step(number)`, the best of several rounds."""
    for number in range(_BATCHES):
        step(number)
    best = 0.0
    for _ in range(_ROUNDS):
        begin, steps = time.perf_counter(), 0
        while (passed := time.perf_counter() - begin) < _SECONDS:
            step(steps % _BATCHES)
            steps += 1
        best = max(best, steps * items / passed)
    return best


def split_rates(traffic: LogTraffic, samples: int, share: float) -> list[dict[str, Any]]:
    """Samples a second of each splitter on mini-batches of a log.

    Parameters
    ----------
    traffic : LogTraffic
        The log, with the same hot rows as the device.
    samples : int
        Of a mini-batch.
    share : float
        Of popular samples.
    """
    tables = traffic.log.num_tables
    ends = np.cumsum(np.array(traffic.rows, np.int64))
    bases = (ends - np.array(traffic.rows)).astype(np.uint32)
    hot = np.zeros(int(ends[-1]), np.bool_)
    rows = traffic.log.indices.reshape(-1, tables) + bases
    hot[rows.ravel()[traffic.hot]] = True
    batches = [
        traffic.batch(f"peers {number}", samples, share).indices.reshape(-1, tables)
        for number in range(_BATCHES)
    ]
    return [
        {
            "peer": name,
            "command": f"SPLIT, {round(100 * share)} % popular",
            "traffic": traffic.name,
            "unit": "samples",
            "per_second": round(
                _per_second(lambda n, split=split: split(batches[n], bases, hot), samples)
            ),
        }
        for name, split in SPLITTERS.items()
    ]


def gather_rates(rows: int, traffic: str, seed: int) -> list[dict[str, Any]]:
    """64-byte rows a second of `np.take` from a table that no cache holds."""
    rng = np.random.default_rng(seed)
    table = np.ones((_GATHER_TABLE, _FLOATS), np.float32)
    picks = [rng.integers(0, _GATHER_TABLE, rows) for _ in range(_BATCHES)]
    dense = np.empty((rows, _FLOATS), np.float32)

    def step(number: int) -> None:
        table.take(picks[number], axis=0, out=dense, mode="clip")

    rate = round(_per_second(step, rows))
    return [
        {
            "peer": "np.take",
            "command": "GATHER, 64-byte rows",
            "traffic": traffic,
            "unit": "rows",
            "per_second": rate,
        }
    ]


def compare(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Peers beside the device: items a second, and device / peer, at each clock of the result.

    Parameters
    ----------
    result : dict
        Of a bench, with `lines`, `peers` and `clocks` (MHz by name).

    Returns
    -------
    list of dict
        One for each peer: what it is, and by clock `device` and `ratio`, empty where the line of
        the device was not measured.
    """
    lines = {(line["command"], line["traffic"]): line for line in result["lines"]}
    found = []
    for peer in result["peers"]:
        line = lines.get((peer["command"], peer["traffic"]))
        clocks = result["clocks"] if line else {}
        device = {name: line["per_cycle"] * mhz * 1e6 for name, mhz in clocks.items() if line}
        ratio = {name: rate / peer["per_second"] for name, rate in device.items()}
        found.append({**peer, "device": device, "ratio": ratio})
    return found
