"""Learner: requests, phase outcomes and sample scores against `tracker.md`; abort; rate."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.rtl.learner import Learner

#: lanes, policy, learn_group, max_sample_keys
SHAPES = [
    (1, "srrip", 1, 32),
    (2, "sample_aware", 16, 256),
    (16, "sample_aware", 16, 256),
]
MORE_SHAPES = [
    (1, "sample_aware", 8, 40),
    (4, "srrip", 8, 100),
    (8, "sample_aware", 1, 64),
    (16, "sample_aware", 5, 256),
]


def shape(values: tuple[int, str, int, int]) -> Config:
    """Configuration of a row of SHAPES."""
    lanes, policy, group, longest = values
    return preset("datacenter").replace(
        lanes=lanes,
        policy=policy,
        learn_group=group,
        max_sample_keys=longest,
        sets=64,
        banks=4,
        dedup_entries=0,
    )


@pytest.mark.parametrize("values", SHAPES, ids=lambda values: "-".join(map(str, values)))
def test_requests_and_rate(values: tuple[int, str, int, int]) -> None:
    rate = ["rate"] if values[1] == "sample_aware" else []
    run_bench(
        Learner(shape(values)),
        "learner",
        "cocotb_learner",
        testcase=["random_commands", "abort", *rate],
    )


@pytest.mark.slow
@pytest.mark.parametrize("values", MORE_SHAPES, ids=lambda values: "-".join(map(str, values)))
def test_more_requests(values: tuple[int, str, int, int]) -> None:
    run_bench(
        Learner(shape(values)), "learner", "cocotb_learner", testcase=["random_commands", "abort"]
    )
