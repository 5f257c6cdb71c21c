"""The bench: what it says limits a command, and what the hot table and its arbiter can do."""

from __future__ import annotations

import numpy as np
import pytest
from system_configs import SYSTEM_CONFIGS

from hotline.gen.presets import preset
from hotline.golden.hash import KeyHash
from hotline.golden.hot_table import HotTable
from hotline.host.bench_arbiter import (
    LANE_QUEUE,
    PUBLISHED,
    QUEUES,
    crossbar_rate,
    queue_rate,
)
from hotline.host.bench_bounds import commit_cycles, learn_cycles, lookup_cycles
from hotline.host.bench_limits import Limit, Observed, limit_of
from hotline.host.bench_probe import GROUPS, ProbedTable
from hotline.host.bench_sweeps import DEPTHS
from hotline.rtl import crossbar

ECP5 = preset("ecp5")
SMALL = SYSTEM_CONFIGS["ecp5_small"]


# ---- what limits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "seen", "table_cycles"),
    [
        (Limit.READ_BUS, Observed(1000, read_beats=950, read_bursts=119, write_beats=940), 990),
        (Limit.WRITE_BUS, Observed(1000, read_beats=500, write_beats=900, write_bursts=60), 0),
        # The hot table cannot do it in less, or lanes waited for it.
        (Limit.BANKS, Observed(1000, read_beats=400, read_bursts=25), 800),
        (Limit.BANKS, Observed(1000, read_beats=400, read_bursts=25, bank_stalls=760), 0),
        # 140 bursts of 5 beats, 200 cycles each: 28.7 of 32 in flight.
        (Limit.CREDITS, Observed(1000, read_beats=700, read_bursts=140, write_beats=500), 0),
        # Used more than the bus: 25.2 of 32 in flight.
        (Limit.CREDITS, Observed(9000, read_beats=7000, read_bursts=1100), 0),
        # 700 writes of one beat, 20 cycles each: 14.7 of 16 in flight.
        (Limit.CREDITS, Observed(1000, write_beats=700, write_bursts=700), 0),
        (Limit.WRITE_BUS, Observed(1000, read_beats=500, write_beats=800, write_bursts=50), 700),
        (Limit.LATENCY, Observed(1000, read_beats=300, read_bursts=20, write_beats=400), 300),
        (Limit.LATENCY, Observed(0), 0),
    ],
)
def test_limit(limit: Limit, seen: Observed, table_cycles: int) -> None:
    found = limit_of(ECP5, seen, read_latency=200, write_latency=20, table_cycles=table_cycles)
    assert found is limit


def test_reserved_space_counts_as_credits() -> None:
    """Long bursts: the buffer of a port is full before the reads in flight are."""
    config = ECP5.replace(read_outstanding=256, max_burst_beats=64)
    seen = Observed(10_000, read_beats=7000, read_bursts=7000 // 64)
    # Of 512 beats two bursts of 64 stay free, so 7 bursts can be in flight.
    found = limit_of(config, seen, read_latency=600, write_latency=20)
    assert found is Limit.CREDITS
    assert limit_of(config, seen, read_latency=200, write_latency=20) is Limit.LATENCY


# ---- fewest cycles of the hot table -------------------------------------------------------------


def test_lookup_and_commit_cycles() -> None:
    assert lookup_cycles(ECP5, 101) == 51
    assert lookup_cycles(ECP5, 101, 1) == 101
    # A set a cycle, then the sweep over the one bank.
    none = np.zeros(0, np.uint32)
    assert commit_cycles(ECP5, none) == 4096
    assert commit_cycles(ECP5.replace(banks=64), none) == 4096
    # Ways 0 and 3 of a set, way 1 of another.
    slots = np.array([8, 11, 41], np.uint32)
    assert commit_cycles(ECP5, slots) == 2 * 4096 + 3 * 7 + 2 * (0 + 3 + 1) + 2 * 5
    srrip = ECP5.replace(policy="srrip", counter_bits=2)
    assert commit_cycles(srrip, slots) == 2 * 4096 + 3 * 7 + 2 * 5


def test_learn_cycles() -> None:
    rng = np.random.default_rng(4)
    hot = rng.integers(0, 1 << 33, 400)
    model = HotTable(ECP5)
    model.load(hot)
    hit, _ = model.lookup(hot)
    hot = hot[hit]
    samples = hot[:200].reshape(40, 5).copy()
    # Three look-ups a sample, all of which hit; so nothing is a surprise, and all five keys of the
    # one bank are updated.
    assert learn_cycles(ECP5, hot, samples) == 40 * (3 + 5)
    assert learn_cycles(ECP5, hot, samples, 1) == 40 * (5 + 5)
    # SRRIP has no first phase.
    srrip = ECP5.replace(policy="srrip", counter_bits=2)
    assert learn_cycles(srrip, hot, samples) == 40 * 5
    # Cold keys in the last place: the first sample sets R, so that every one has x > 0, and
    # requests with hits only are not sent.
    samples[:, 4] = rng.integers(1 << 32, 1 << 33, 40)
    assert learn_cycles(ECP5, hot, samples) == 40 * (3 + 1)
    # Nor is a bank asked about a hit beside a cold key.
    assert learn_cycles(ECP5, hot, samples[:, ::-1]) == 40 * (3 + 1)
    # Many banks take the keys of a request side by side.
    banks = ECP5.replace(lanes=8, banks=4096)
    found = learn_cycles(banks, hot[:0], samples)
    assert 40 * 2 <= found < 40 * 2.1


def test_learn_cycles_of_equal_keys() -> None:
    none, equal = np.zeros(0, np.int64), np.full((32, 10), 7)
    srrip = ECP5.replace(policy="srrip", counter_bits=2)
    # Out of the block RAM, or forwarded; a new group waits for nothing.
    assert learn_cycles(srrip, none, equal[:1]) == 9 * 6 + 1
    assert learn_cycles(srrip.replace(lanes=16), none, equal[:1]) == 9 * 3 + 1
    assert learn_cycles(srrip.replace(learn_group=1), none, equal) == 32 * (9 * 6 + 1)
    # Different keys in between hide the distance.
    turns = np.tile(np.arange(6), (1, 5))
    assert learn_cycles(srrip, none, turns) == 30
    assert learn_cycles(srrip, none, turns % 3) == 9 * 6 + 3


# ---- arbiter ------------------------------------------------------------------------------------


@pytest.mark.parametrize("banks", PUBLISHED)
def test_model_of_the_published_curve(banks: int) -> None:
    rng = np.random.default_rng(banks)
    for queue, published in zip(QUEUES, PUBLISHED[banks], strict=True):
        assert queue_rate(banks, queue, rng) == pytest.approx(published, rel=0.02), queue


def test_model_of_the_crossbar() -> None:
    assert crossbar._QUEUE == LANE_QUEUE
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 1 << 40, (500, 16))
    one = np.zeros_like(keys)
    assert crossbar_rate(keys, one) == pytest.approx(2, rel=0.01)
    assert crossbar_rate(np.repeat(keys[:, :1], 16, 1), one) == pytest.approx(16, rel=0.01)
    # Each lane its own bank: nothing to wait for.
    assert crossbar_rate(keys, one + np.arange(16)) == pytest.approx(16, rel=0.01)
    rates = [crossbar_rate(keys, keys % 16, depth) for depth in DEPTHS]
    assert rates[0] < rates[2] < rates[4] < 14


@pytest.mark.slow
def test_crossbar_in_hardware() -> None:
    """The hot table alone, 4 lanes and 8 banks, against the model."""
    config = SMALL.replace(
        lanes=4, banks=8, sets=16, ways=1, policy="srrip", counter_bits=2, row_bits=16,
        learn_group=1,
    )  # fmt: skip
    hashes, rng = KeyHash(config), np.random.default_rng(3)
    keys = np.arange(1 << config.key_bits)
    one_bank = keys[hashes.bank(keys) == 5][: 4 * GROUPS].reshape(GROUPS, 4)
    table = ProbedTable(config)
    try:
        for sent in (rng.choice(keys, (GROUPS, 4)), one_bank, np.repeat(keys[:GROUPS], 4)):
            sent = sent.reshape(GROUPS, 4)
            rate, stalls = table.rate(sent, GROUPS)
            expected = crossbar_rate(sent, hashes.bank(sent))
            print(f"{rate:.3f} keys a cycle, model {expected:.3f}, stalls {stalls:.3f}")
            assert rate == pytest.approx(expected, rel=0.02)
    finally:
        table.close()
