"""Options that several commands of the command line share, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotline.fpga.boards import BOARDS, board
from hotline.gen.config import Config
from hotline.gen.presets import PRESETS, SUBSETS, preset

if TYPE_CHECKING:
    from hotline.host.run import BoardOptions

__all__ = [
    "DEFAULT_PRESET",
    "DEFAULT_SAMPLES",
    "MISMATCH",
    "WRONG_INPUT",
    "ConfigOption",
    "PresetOption",
    "board_preset",
    "configuration",
    "run_board",
    "sample_limit",
]

#: Exit codes: wrong input, and a device that differs from the golden model.
WRONG_INPUT, MISMATCH = 2, 1

DEFAULT_PRESET = "ecp5"
DEFAULT_SAMPLES = "10000"
#: LUTs of a device below which there is no hope for the default preset.
_SMALL_BOARD = 20_000

PresetOption = Annotated[
    str | None,
    typer.Option("--preset", "-p", help=f"Named configuration: {', '.join(PRESETS | SUBSETS)}."),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file with a configuration.")
]


def configuration(
    name: str | None, file: Path | None, default: str | None = None
) -> tuple[Config, str]:
    """The configuration that the options name, or the default preset, and what to call it."""
    if name is not None and file is not None:
        raise ValueError("--preset and --config exclude each other")
    if file is not None:
        try:
            return Config.from_toml(file), file.stem
        except (FileNotFoundError, IsADirectoryError):
            raise ValueError(f"there is no file {str(file)!r}") from None
    name = name if name is not None else default
    if name is None:
        raise ValueError("either --preset or --config is needed")
    return preset(name), name


def sample_limit(text: str) -> int | None:
    """The number that `--samples` names; None for ``all``."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"--samples must be a positive number or 'all', not {text!r}")
    return int(text)


def board_preset(name: str) -> str:
    """The preset that is meant for a board."""
    return "tiny" if board(name).capacity.luts < _SMALL_BOARD else DEFAULT_PRESET


def run_board(
    backend: str, port: str | None, name: str | None, baud: int | None, choose_batch: bool
) -> BoardOptions | None:
    """The board that the options of 'run' name; None for the simulated RTL."""
    from hotline.host.run import BoardOptions

    if backend not in ("verilator", "serial"):
        raise ValueError(f"--backend must be one of verilator, serial, not {backend!r}")
    if backend == "verilator":
        if (port, name, baud) != (None, None, None):
            raise ValueError("--port, --board and --baud need --backend serial")
        return None
    if port is None or name is None:
        raise ValueError(
            "--backend serial needs --port, the serial port of the board, and --board, one of "
            + ", ".join(BOARDS)
        )
    board(name)
    return BoardOptions(port, name, baud, choose_batch)
