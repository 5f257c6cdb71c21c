"""The popular shares of the tracker's table, to the printed digit, where the logs can be had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.host.cache import cache_folder
from hotline.host.click_log import ClickLog, DataError
from hotline.host.movielens import fetch_movielens, read_movielens
from hotline.host.popularity import lfu_share, popular_samples, tracker_share
from hotline.host.readers import read_criteo
from hotline.host.synthetic import synthetic_log

CRITEO = Path(__file__).resolve().parents[2] / "shared" / "data" / "criteo_8k.tsv"

#: Log, entries, and the figures: SRRIP, this, LFU learned on all; on the first 30 %.
FIGURES = [
    ("criteo", 1024, "0.4 2.1 1.8", "0.0 1.2 1.1"),
    ("criteo", 4096, "3.9 11.2 10.4", "1.9 4.3 5.9"),
    ("criteo", 8192, "10.2 21.8 22.5", "5.2 6.8 8.3"),
    ("movielens", 2048, "14.5 58.8 74.9", "2.9 5.8 8.3"),
]

#: Synthetic trace, entries, share / LFU on all data and on the last 70 %.
RATIOS = [
    ("K", 65536, 64.8 / 64.9, 62.2 / 63.5),
    ("K", 131072, 75.7 / 76.0, 71.1 / 72.0),
    ("K", 262144, 82.5 / 84.4, 76.7 / 76.6),
    ("R", 131072, 54.2 / 55.0, 49.6 / 52.0),
]


@pytest.fixture(scope="module")
def logs() -> dict[str, ClickLog]:
    """The real logs that are there."""
    found = {}
    if CRITEO.exists():
        found["criteo"] = read_criteo(CRITEO)
    try:
        found["movielens"] = read_movielens(fetch_movielens(cache_folder() / "data"))
    except DataError as error:
        print(error)
    return found


def _configurations(entries: int, base: Config) -> tuple[Config, Config]:
    """SRRIP and `sample_aware` of so many entries."""
    aware = base.replace(sets=entries // 4, policy="sample_aware", counter_bits=3)
    return aware.replace(policy="srrip", counter_bits=2), aware


def _shares(entries: int, base: Config, learn: ClickLog, score: ClickLog) -> list[float]:
    shares = [tracker_share(c, learn, score) for c in _configurations(entries, base)]
    return [100 * share for share in (*shares, lfu_share(entries, learn, score))]


@pytest.mark.parametrize(("name", "entries", "whole", "prefix"), FIGURES)
def test_published_figures(
    logs: dict[str, ClickLog], name: str, entries: int, whole: str, prefix: str
) -> None:
    if name not in logs:
        pytest.skip(f"the {name} log is not there")
    log, base = logs[name], preset("ecp5").replace(banks=1, learn_group=1)
    cut = int(0.3 * len(log))
    for learn, score, figures in ((log, log, whole), (log[:cut], log[cut:], prefix)):
        shares = _shares(entries, base, learn, score)
        assert " ".join(f"{share:.1f}" for share in shares) == figures


@pytest.mark.parametrize("name", ["ecp5", "datacenter"])
def test_banks_and_groups_of_the_presets(name: str) -> None:
    """On the synthetic trace within 0.5 points of one bank and groups of one sample."""
    log, own = synthetic_log("K", 300_000), preset(name)
    _, reference = _configurations(65536, own.replace(banks=1, learn_group=1))
    _, aware = _configurations(65536, own)
    ours, theirs = (tracker_share(config, log, log) for config in (aware, reference))
    print(f"{name}: {ours:.4f}, one bank and groups of one {theirs:.4f}")
    assert abs(ours - theirs) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "entries", "whole", "prefix"), RATIOS)
def test_synthetic_ratios(trace: str, entries: int, whole: float, prefix: float) -> None:
    """Share / LFU oracle on 2 M samples: no more than 0.01 below the published ratio."""
    log = synthetic_log(trace, 2_000_000)
    _, aware = _configurations(entries, preset("ecp5").replace(banks=1, learn_group=1))
    cut = int(0.3 * len(log))
    for learn, score, ratio in ((log, log, whole), (log[:cut], log[cut:], prefix)):
        ours = tracker_share(aware, learn, score) / lfu_share(entries, learn, score)
        print(f"{trace} {entries}: {ours:.4f}, published {ratio:.4f}")
        assert ours >= ratio - 0.01


def test_popular_samples() -> None:
    hit = np.array([True, False, True, True])
    offsets = np.array([0, 2, 2, 4])
    # A sample without keys is popular.
    assert popular_samples(hit, offsets).tolist() == [False, True, True]
