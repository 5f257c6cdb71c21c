"""The blocks that can be generated alone, by name (spec section 2)."""

from __future__ import annotations

import importlib
from typing import Any

from amaranth.lib import wiring

from hotline.gen.config import Config

__all__ = ["BLOCKS", "TOP", "make_block"]

#: The block that is the whole accelerator.
TOP = "hotline"

#: Block by name: module within ``hotline.rtl``, and class. Most take the configuration.
BLOCKS: dict[str, tuple[str, str]] = {
    TOP: ("top", "Hotline"),
    "key_stream": ("key_stream", "KeyStream"),
    "hot_table": ("hot_table", "HotTable"),
    "learner": ("learner", "Learner"),
    "classifier": ("classifier", "Classifier"),
    "row_mover": ("row_mover", "RowMover"),
    "gather_dma": ("gather_dma", "GatherDMA"),
    "read_engine": ("read_engine", "ReadEngine"),
    "write_engine": ("write_engine", "WriteEngine"),
    "list_writer": ("list_writer", "ListWriter"),
    "registers": ("registers", "RegisterBank"),
    "command_processor": ("command_processor", "CommandProcessor"),
    "fp_adder": ("fp_adder", "FloatAdder"),
    "fp_multiplier": ("fp_multiplier", "FloatMultiplier"),
}

#: Blocks that take a number format instead; the accelerator has one only.
_FLOAT_UNITS = ("fp_adder", "fp_multiplier")

#: Ports of a read engine that stands alone, as many as the accelerator has.
_READ_PORTS = 3


def make_block(name: str, config: Config) -> wiring.Component:
    """The component of block `name` for `config`.

    Raises
    ------
    ValueError
        There is no such block.
    """
    if name not in BLOCKS:
        raise ValueError(f"block must be one of {', '.join(BLOCKS)}, not {name!r}")
    # Imported here, so that the command line answers at once where no hardware is made.
    module, kind = BLOCKS[name]
    block: Any = getattr(importlib.import_module(f"hotline.rtl.{module}"), kind)
    if name == "read_engine":
        from hotline.rtl.read_engine import read_buffer_beats

        return block(config, [read_buffer_beats(config)] * _READ_PORTS)
    if name in _FLOAT_UNITS:
        from hotline.rtl.fp_format import BINARY32

        return block(BINARY32)
    return block(config)
