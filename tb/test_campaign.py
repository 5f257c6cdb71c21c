"""A million random keys through the RTL on every shape with each policy, for `make regress`.

Half of the keys are learned, half are split and gathered; all memory is compared after each
command, and at the end the whole hot table, through COMMIT ALL.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness.pair import Pair
from harness.traffic import Traffic
from system_configs import SYSTEM_CONFIGS

from hotline.golden.descriptor import Completion

pytestmark = pytest.mark.slow

_KEYS = 1_000_000
_SAMPLES = 2000


@pytest.mark.parametrize("policy", ["srrip", "sample_aware"])
@pytest.mark.parametrize("name", SYSTEM_CONFIGS)
def test_a_million_keys(name: str, policy: str, seed: int) -> None:
    config, rng = SYSTEM_CONFIGS[name].replace(policy=policy), np.random.default_rng(seed)
    pair = Pair(config, rng, size=1 << 24)
    tables = min(8, config.max_tables)
    rows = min(4 * config.slots, 1 << config.row_bits)
    traffic = Traffic(pair, rng, tables=tables, rows=rows, row_bytes=32)
    mark, done = pair.mark, 0
    try:
        while done < _KEYS:
            for step in (
                lambda: traffic.learn(_SAMPLES, one_hot=True),
                traffic.commit,
                lambda: traffic.split(_SAMPLES, True, one_hot=True),
            ):
                assert isinstance(step(), Completion)
                pair.release(mark)
            done += 2 * _SAMPLES * tables
            print(f"{name}, {policy}: {done:,} keys")
        assert isinstance(traffic.commit(everything=True), Completion)
    finally:
        pair.close()
