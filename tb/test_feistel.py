"""Key hash: forward pipeline and iterative inverse against the golden model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.golden.hash import KeyHash
from hotline.rtl.feistel import HashPipeline, InverseHash, hash_count

_ECP5 = preset("ecp5")
_CONFIGS = {
    "ecp5": _ECP5,
    "odd": _ECP5.replace(table_bits=3, row_bits=8, banks=2, sets=8, ways=8, max_tables=8,
                         dedup_entries=0),
    "one_bank": _ECP5.replace(banks=1, ways=2),
    "paper": preset("paper"),
    "tiny": preset("tiny"),
}  # fmt: skip


@pytest.mark.parametrize("name", _CONFIGS)
def test_pipeline_and_inverse(name: str) -> None:
    config: Config = _CONFIGS[name]
    golden = KeyHash(config)
    keys = np.random.default_rng(1).integers(0, 1 << config.key_bits, 40)
    homes, z = golden.homes(keys), golden.z(keys)
    width, count = config.key_bits - config.bank_bits, hash_count(config)
    pipeline, inverse = HashPipeline(config), InverseHash(config)

    async def forward(ctx: Any) -> None:
        ctx.set(pipeline.enable, 1)
        for step in range(len(keys) + pipeline.stages):
            if step < len(keys):
                ctx.set(pipeline.key, int(keys[step]))
            if step >= pipeline.stages:
                n = step - pipeline.stages
                assert ctx.get(pipeline.z) == z[n]
                hashes = ctx.get(pipeline.hashes)
                for way in range(count):
                    assert hashes >> width * way & ((1 << width) - 1) == homes[n, way]
            await ctx.tick()

    async def backward(ctx: Any) -> None:
        for n, key in enumerate(keys[:12]):
            way = n % config.ways
            ctx.set(inverse.start, 1)
            ctx.set(inverse.way, way)
            ctx.set(inverse.bank, int(z[n]) & (config.banks - 1))
            ctx.set(inverse.hash, int(homes[n, way]))
            await ctx.tick()
            ctx.set(inverse.start, 0)
            await ctx.tick().repeat(4 + 2 * (way if count > 1 else 0))
            assert ctx.get(inverse.done) and ctx.get(inverse.key) == key

    for component, bench in ((pipeline, forward), (inverse, backward)):
        simulator = Simulator(component)
        simulator.add_clock(1e-8)
        simulator.add_testbench(bench)
        simulator.run()
