"""Named configurations that ship with the package (spec section 3)."""

from __future__ import annotations

from hotline.gen.config import Config, RowsConfig

__all__ = ["PRESETS", "SUBSETS", "preset"]

_TINY = Config(
    table_bits=4, row_bits=16, sets=512, ways=1, banks=1, policy="srrip", counter_bits=2,
    learn_group=1, max_sample_keys=32, lanes=1, addr_width=32, data_width=32, id_width=1,
    read_outstanding=4, write_outstanding=2, max_burst_beats=8, max_tables=8, max_row_bytes=256,
    dedup_entries=0, pool=False, scatter_add=False, gpus=1, perf_counters=False,
)  # fmt: skip

_ECP5 = Config(
    table_bits=5, row_bits=28, sets=4096, ways=4, banks=1, policy="sample_aware", counter_bits=3,
    learn_group=16, max_sample_keys=256, lanes=2, addr_width=36, data_width=64, id_width=4,
    read_outstanding=32, write_outstanding=16, max_burst_beats=16, max_tables=32,
    max_row_bytes=1024, dedup_entries=4096, pool=True, scatter_add=True, gpus=2,
    perf_counters=True,
)  # fmt: skip

_DATACENTER = Config(
    table_bits=5, row_bits=28, sets=65536, ways=4, banks=64, policy="sample_aware",
    counter_bits=3, learn_group=16, max_sample_keys=256, lanes=16, addr_width=48, data_width=512,
    id_width=6, read_outstanding=256, write_outstanding=64, max_burst_beats=16, max_tables=32,
    max_row_bytes=1024, dedup_entries=16384, pool=True, scatter_add=True, gpus=4,
    perf_counters=True,
)  # fmt: skip

_PAPER = _DATACENTER.replace(sets=524288, policy="srrip", counter_bits=2)

#: Preset by name. `paper` is the published shape, `tiny` aims at an iCE40 UP5K.
PRESETS: dict[str, Config] = {
    "tiny": _TINY,
    "ecp5": _ECP5,
    "datacenter": _DATACENTER,
    "paper": _PAPER,
}

#: Presets of devices that do not have all commands of the specification. `tiny_rows` is what of
#: `tiny` goes on an iCE40 UP5K beside a bridge and 128 KiB of memory: GATHER and SCATTER.
SUBSETS: dict[str, Config] = {
    "tiny_rows": RowsConfig(
        table_bits=1, row_bits=11, sets=1, ways=1, banks=1, policy="srrip", counter_bits=2,
        learn_group=1, max_sample_keys=16, lanes=1, addr_width=17, data_width=32, id_width=1,
        read_outstanding=1, write_outstanding=1, max_burst_beats=4, max_tables=2,
        max_row_bytes=64, dedup_entries=0, pool=False, scatter_add=False, gpus=1,
        perf_counters=False,
    ),
}  # fmt: skip


def preset(name: str) -> Config:
    """The preset `name`.

    Raises
    ------
    ValueError
        There is no such preset.
    """
    presets = PRESETS | SUBSETS
    if name not in presets:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, not {name!r}")
    return presets[name]
