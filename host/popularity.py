"""How good a tracker is: the share of popular samples (tracker.md, "Figures to reach")."""

from __future__ import annotations

import numpy as np

from hotline.gen.config import Config
from hotline.golden.hot_table import HotTable
from hotline.host.click_log import ClickLog

__all__ = ["lfu_share", "popular_samples", "tracker_share"]


def popular_samples(hit: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Whether every key of a sample is hot; a sample without keys is popular.

    Parameters
    ----------
    hit : np.ndarray
        bool, one an index.
    offsets : np.ndarray
        int64, shape (n + 1,).

    Returns
    -------
    np.ndarray
        bool, shape (n,).
    """
    misses = np.concatenate([np.zeros(1, np.int64), np.cumsum(~hit, dtype=np.int64)])
    return misses[offsets[1:]] == misses[offsets[:-1]]


def tracker_share(config: Config, learn: ClickLog, score: ClickLog) -> float:
    """Share of popular samples in `score`, after one pass of the hot table over `learn`."""
    table = HotTable(config)
    table.learn(learn.keys(config.row_bits), learn.offsets)
    hit, _ = table.lookup(score.keys(config.row_bits))
    return float(popular_samples(hit, score.offsets).mean())


def lfu_share(entries: int, learn: ClickLog, score: ClickLog) -> float:
    """The same for an LFU oracle: the `entries` most frequent rows of `learn` are hot.

    Ties go to the earlier table, then to the smaller row number (checked against the printed
    figures: it is the one order that gives all of them). It has unlimited counters, but knows
    nothing of samples, and so is no upper bound.
    """
    keys, counts = np.unique(learn.keys(32), return_counts=True)
    hottest = keys[np.argsort(-counts, kind="stable")[:entries]]
    hit = np.isin(score.keys(32), hottest)
    return float(popular_samples(hit, score.offsets).mean())
