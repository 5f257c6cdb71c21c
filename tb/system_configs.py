"""Configurations that the whole device is tested in: every parameter at several values."""

from __future__ import annotations

from hotline.gen.config import Config
from hotline.gen.presets import preset

__all__ = ["SYSTEM_CONFIGS"]

_BASE = preset("ecp5").replace(sets=64, banks=4, dedup_entries=64, read_outstanding=16)

#: By name; the name says what is special.
SYSTEM_CONFIGS: dict[str, Config] = {
    "ecp5_small": _BASE,
    "tiny": preset("tiny").replace(sets=64),
    "wide_srrip": _BASE.replace(
        policy="srrip", counter_bits=2, lanes=16, data_width=512, banks=64, ways=2, id_width=6,
        learn_group=8, max_burst_beats=4, addr_width=64, dedup_entries=256,
    ),
    "wide_aware": _BASE.replace(
        lanes=16, data_width=512, banks=16, ways=8, learn_group=8, dedup_entries=16,
        read_outstanding=64, write_outstanding=32,
    ),
    "narrow_lanes": _BASE.replace(
        lanes=8, data_width=64, ways=8, sets=8, banks=8, learn_group=1, dedup_entries=0,
        max_burst_beats=1, id_width=1,
    ),
    "one_lane_wide_bus": _BASE.replace(
        lanes=1, data_width=256, ways=1, banks=1, learn_group=8, max_sample_keys=16,
        dedup_entries=1, max_burst_beats=256, read_outstanding=3, write_outstanding=1,
    ),
    "four_lanes": _BASE.replace(
        lanes=4, data_width=128, ways=4, banks=8, policy="srrip", counter_bits=4, learn_group=1,
        table_bits=3, row_bits=9, max_tables=8, max_burst_beats=5,
    ),
}  # fmt: skip
