"""Synthetic click logs with the table sizes, slopes and correlations of Criteo Kaggle.

Source: tracker.md, "Synthetic traces". A sample draws four independent latent ranks; most columns
are fixed functions of them, so that whole samples are popular together, as in real logs. The
same seed gives the same log on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotline.host.click_log import ClickLog

__all__ = ["KAGGLE_ROWS", "TRACES", "Trace", "synthetic_log"]

#: Rows of Criteo Kaggle's tables C1..C26 (background.md).
KAGGLE_ROWS = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
    5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
)  # fmt: skip

#: Child column: (parent column, rho, slope). C3, C7, C15 and C10 show the latent ranks themselves.
_CHILDREN = {
    12: (3, 0.05, 0.9), 21: (12, 0.05, 0.9), 16: (21, 0.06, 0.9), 4: (16, 0.14, 0.9),
    24: (4, 0.36, 1.0), 26: (24, 0.30, 1.2), 11: (7, 0.15, 0.6), 13: (11, 0.10, 0.6),
    18: (15, 0.35, 0.8),
}  # fmt: skip
_LATENT = (3, 7, 15, 10)
_SMALL = tuple(
    column for column in range(1, 27) if column not in _CHILDREN and column not in _LATENT
)
_MANDELBROT_Q = 15
_DRIFT_BLOCKS = 20
_DRIFT_SHARE = 0.05


@dataclass(frozen=True)
class Trace:
    """Slopes of the latent ranks A to D, and the share of missing values in D."""

    s_a: float
    s_b: float
    s_c: float
    s_d: float
    head_d: float


#: K: its LFU oracle at 128 Ki entries has the paper's share. R: fitted to the real sample.
TRACES = {
    "K": Trace(1.16, 1.3, 1.5, 1.05, 0.26),
    "R": Trace(1.04, 1.2, 1.4, 0.95, 0.27),
}


def synthetic_log(
    trace: str,
    samples: int,
    *,
    seed: int = 1,
    drift: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> ClickLog:
    """A synthetic log of 26 one-hot columns.

    Parameters
    ----------
    trace : str
        ``"K"`` or ``"R"``.
    samples : int
        Samples to draw; the published figures are for 2 000 000.
    seed : int
        Seed of the draws; the dependence between columns is the same for every seed.
    drift : bool
        At the start of each of 20 blocks, every rank of A gets a fresh id with probability 0.05.
    progress : callable
        Called with the share that is done.

    Raises
    ------
    ValueError
        An unknown trace, or fewer than one sample.
    """
    if trace not in TRACES:
        raise ValueError(f"trace must be one of {', '.join(TRACES)}, not {trace!r}")
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples}")
    shape, rng = TRACES[trace], np.random.default_rng(seed)

    def rank(column: int, slope: float, q: int = 0) -> np.ndarray:
        return _zipf(rng.random(samples), slope, KAGGLE_ROWS[column - 1], q)

    ids = {
        3: rank(3, shape.s_a),
        7: rank(7, shape.s_b, _MANDELBROT_Q),
        15: rank(15, shape.s_c, _MANDELBROT_Q),
        10: np.where(rng.random(samples) < shape.head_d, 0, rank(10, shape.s_d)),
    }
    if drift:
        ids[3] = _drifted(ids[3], KAGGLE_ROWS[2])
    for column, (parent, rho, slope) in _CHILDREN.items():
        ids[column] = _child(ids[parent], column, rho, slope)
        progress(len(ids) / 26)
    for slope, column in zip(np.linspace(1.8, 3.0, len(_SMALL)), _SMALL, strict=True):
        ids[column] = rank(column, slope)
        progress(len(ids) / 26)
    table = np.empty((samples, 26), np.uint32)
    for column in range(1, 27):
        table[:, column - 1] = _scatter(ids[column], column)
    return ClickLog(
        f"synthetic:{trace}{'-drift' if drift else ''}",
        tuple(f"C{column}" for column in range(1, 27)),
        KAGGLE_ROWS,
        table.ravel(),
        None,
        (rng.random(samples) < 0.256).astype(np.float32),
        rng.standard_normal((samples, 13), dtype=np.float32),
    )


def _zipf(u: np.ndarray, slope: float, size: int, q: int = 0) -> np.ndarray:
    """Ranks 0..size-1 by inverse CDF of the density x**-slope on [1 + q, size + 1 + q]."""
    low, high = 1.0 + q, size + 1.0 + q
    if slope == 1.0:
        x = low * (high / low) ** u
    else:
        power = 1.0 - slope
        x = (low**power + u * (high**power - low**power)) ** (1.0 / power)
    return np.minimum(np.floor(x - 1.0 - q).astype(np.int64), size - 1)


def _splitmix64(x: np.ndarray, salt: int) -> np.ndarray:
    """The finaliser of splitmix64 over `x`, salted."""
    offset = (salt * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    z = x.astype(np.uint64) + np.uint64(offset)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _uniform(x: np.ndarray, salt: int) -> np.ndarray:
    """A fixed function of `x` that looks uniform on [0, 1)."""
    return (_splitmix64(x, salt) >> np.uint64(11)) * 2.0**-53


def _child(parent: np.ndarray, column: int, rho: float, slope: float) -> np.ndarray:
    """The child's id as a fixed function of the parent's."""
    size = KAGGLE_ROWS[column - 1]
    drawn = _zipf(_uniform(parent, 3 * column), slope, size)
    hashed = (_splitmix64(parent, 3 * column + 1) % np.uint64(size)).astype(np.int64)
    kept = np.where(parent < size, parent, hashed)
    return np.where(_uniform(parent, 3 * column + 2) < rho, drawn, kept)


def _drifted(ranks: np.ndarray, size: int) -> np.ndarray:
    """Ids of ranks when some get a fresh one at the start of each block."""
    ids = ranks.copy()
    bounds = np.linspace(0, len(ranks), _DRIFT_BLOCKS + 1).astype(np.int64)
    for block in range(1, _DRIFT_BLOCKS):
        later = ranks[bounds[block] :]
        fresh = _uniform(later, 1000 + 2 * block) < _DRIFT_SHARE
        new = (_splitmix64(later, 1001 + 2 * block) % np.uint64(size)).astype(np.int64)
        ids[bounds[block] :][fresh] = new[fresh]
    return ids


def _scatter(ranks: np.ndarray, column: int) -> np.ndarray:
    """Rows by (rank * odd + const) mod size: hot rows do not lie side by side."""
    size = KAGGLE_ROWS[column - 1]
    odd = 2 * (size * 618 // 2000) + 1
    while np.gcd(odd, size) != 1:
        odd += 2
    return (ranks * odd + 40503 * column) % size
