"""Fewest cycles in which the hot table can do its part of a command, whatever the bus does."""

from __future__ import annotations

import numpy as np

from hotline.gen.config import Config
from hotline.golden.hash import KeyHash
from hotline.golden.hot_table import HotTable
from hotline.rtl.commit_scan import SCAN_LATENCY
from hotline.rtl.hot_bank import update_distance

__all__ = ["commit_cycles", "learn_cycles", "lookup_cycles"]

#: Cycles of a record of COMMIT, besides two a way for `sample_aware`: those of CommitScan.
_RECORD = 7


def lookup_cycles(config: Config, keys: int, rate: int | None = None) -> int:
    """Of `keys` look-ups, `rate` a cycle; by default `lanes`, which is what it does at best."""
    return -(-keys // (rate or config.lanes))


def learn_cycles(
    config: Config, hot_keys: np.ndarray, keys: np.ndarray, rate: int | None = None
) -> int:
    """Of a LEARN on a table that holds `hot_keys` and has learned nothing since CLEAR.

    `sample_aware` looks the keys up first, `rate` a cycle. Updates go sample by sample, `lanes`
    keys a request, one key a cycle and bank; of those that hit in a sample with x != 0 no bank is
    asked (:class:`hotline.rtl.hot_group.GroupHash`), and requests that have no others are not sent
    (:class:`hotline.rtl.learner.Learner`). An update needs what the one before of the same key
    has written (:func:`hotline.rtl.hot_bank.update_distance`). The phases of a group follow one
    another.

    Parameters
    ----------
    config : Config
        Of the device.
    hot_keys : np.ndarray
        Key integers that were loaded.
    keys : np.ndarray
        Key integers to learn, int64 [samples, keys of a sample].
    rate : int, optional
        Most keys a cycle that the table can look up; by default `lanes`.
    """
    samples, length = keys.shape
    requests = -(-length // config.lanes)
    padded = np.full((samples, requests * config.lanes), -1, np.int64)
    padded[:, :length] = keys
    hits, surprised = _phase_1(config, hot_keys, keys)
    lookups = 0
    if config.sample_aware:
        lookups = samples * lookup_cycles(config, length, rate)
        padded[:, :length][hits & surprised[:, None]] = -1
    return lookups + _update_cycles(config, padded.reshape(samples, requests, config.lanes))


def _phase_1(
    config: Config, hot_keys: np.ndarray, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which keys hit as the table stood before their group; which samples have x != 0."""
    model = HotTable(config)
    model.load(hot_keys)
    samples, length = keys.shape
    hits = np.zeros(keys.shape, np.bool_)
    surprised = np.zeros(samples, np.bool_)
    mean = 0
    for first in range(0, samples, config.learn_group):
        group = keys[first : first + config.learn_group]
        found, _ = model.lookup(group.ravel())
        hits[first : first + len(group)] = found.reshape(group.shape)
        model.learn(group.ravel(), np.arange(len(group) + 1) * length)
    for number, misses in enumerate((length - hits.sum(axis=1)).tolist()):
        # x and R of `tracker.md`.
        surprised[number] = misses > (3 * mean) >> 12
        mean += misses - (mean >> 10)
    return hits, surprised


def _update_cycles(config: Config, keys: np.ndarray) -> int:
    """Of updates of `keys`, int64 [samples, requests of a sample, lanes], -1 for no key."""
    distance = update_distance(config)
    busiest = _busiest_bank(config, keys.reshape(-1, config.lanes)).reshape(keys.shape[:2])
    now = 0
    free: dict[int, int] = {}  # by key, the first cycle in which it may be updated again
    for sample, requests in enumerate(keys.tolist()):
        if sample % config.learn_group == 0:
            free.clear()
        for request, lanes in enumerate(requests):
            end = now + int(busiest[sample, request])
            for key in lanes:
                if key >= 0:
                    at = max(now, free.get(key, 0))
                    free[key] = at + distance
                    end = max(end, at + 1)
            now = end
    return now


def _busiest_bank(config: Config, requests: np.ndarray) -> np.ndarray:
    """Keys of each request in its busiest bank; requests int64 [n, lanes], -1 for no key."""
    banks = KeyHash(config).bank(np.maximum(requests, 0))
    most = np.zeros(len(requests), np.int64)
    for lane in range(config.lanes):
        same = (banks == banks[:, lane : lane + 1]) & (requests >= 0)
        most = np.maximum(most, same.sum(axis=1) * (requests[:, lane] >= 0))
    return most


def commit_cycles(config: Config, slots: np.ndarray) -> int:
    """Of a COMMIT that reports `slots`.

    A set a cycle; for each record the rounds of the hash backwards; after a set with records the
    pipeline is filled again (:class:`hotline.rtl.commit_scan.CommitScan`). At last the marks, if
    there are any, are cleared, in all banks at once.
    """
    ways = slots.astype(np.int64) % config.ways
    rounds = _RECORD * len(slots) + (2 * int(ways.sum()) if config.sample_aware else 0)
    filled = len(np.unique(slots // config.ways))
    cleared = config.bank_depth if len(slots) else 0
    return config.sets + rounds + SCAN_LATENCY * filled + cleared
