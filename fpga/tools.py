"""The tools of the open flow, all from PyPI: yosys as a library, the rest as commands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pyosys import libyosys

__all__ = [
    "ECP5_PLACER",
    "FlowError",
    "cell_counts",
    "find_tool",
    "map_to_cells",
    "run_tool",
    "run_yosys",
]

#: How yosys maps a design to the cells of a family, after `proc`.
_MAPPING = {
    # Without the names that nothing needs: with them abc9 fails an assertion on some designs.
    "ecp5": ("flatten", "opt_clean -purge", "synth_ecp5 -abc9"),
    "ice40": (
        # There is no distributed RAM, and a memory that asks for it would stop yosys.
        "setattr -unset ram_style a:ram_style=distributed",
        "flatten",
        # Amaranth's FIFOs never read what they write in the same cycle, but do not say so.
        "setattr -set no_rw_check 1 m:*queue.storage",
        "opt_clean -purge",
        "synth_ice40 -abc9 -device u -dsp -dffe_min_ce_use 4",
    ),
}

#: Options with which nextpnr-ecp5 looks at timing harder when it places: 15 % more clock.
ECP5_PLACER = ("--placer-heap-critexp", "4", "--placer-heap-timingweight", "40")


class FlowError(RuntimeError):
    """A tool of the flow is missing or has failed, or a design does not fit or is too slow."""


def find_tool(name: str) -> str:
    """Path of a tool: on PATH, or beside the interpreter, whose environment need not be active.

    Raises
    ------
    FlowError
        It is not installed.
    """
    for path in (None, str(Path(sys.executable).parent)):
        found = shutil.which(name, path=path)
        if found is not None:
            return found
    raise FlowError(
        f"{name} is not installed: install the extra 'fpga' (pip install 'hotline[fpga]')"
    )


def run_tool(name: str, arguments: Sequence[str], folder: Path, what: str) -> None:
    """Run a tool in `folder`, which the WebAssembly builds cannot look out of.

    Parameters
    ----------
    name, arguments : str, sequence of str
        The command; paths in it are relative to `folder`.
    folder : Path
        Where the files are.
    what : str
        What to call this step in an error.

    Raises
    ------
    FlowError
        It is not installed, or fails; with the first error that it printed.
    """
    done = subprocess.run(
        [find_tool(name), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        errors = re.findall(r"^ERROR: (.*)$", done.stderr, re.MULTILINE)
        reason = errors[0] if errors else f"exit code {done.returncode}"
        raise FlowError(f"{name} failed with {what}: {reason}")


def run_yosys(
    commands: Sequence[str], progress: Callable[[str], None] = lambda what: None
) -> libyosys.Design:
    """A new design, after these commands, which print nothing; `progress` is told of each."""
    design = libyosys.Design()
    for command in commands:
        progress(f"yosys: {command.split()[0]}")
        libyosys.Pass.call(design, f"tee -q {command}")
    return design


def map_to_cells(source: Path, top: str, family: str, write: str) -> dict[str, int]:
    """Map a Verilog design to the cells of an FPGA, the same way for whatever becomes of it.

    Parameters
    ----------
    source : Path
        The Verilog; ``cells.json`` beside it gets the statistics of yosys.
    top, family : str
        Module to map, flattened; ``"ecp5"`` or ``"ice40"``.
    write : str
        Command of yosys that writes the netlist.

    Returns
    -------
    dict of str to int
        How many cells of each type it has.
    """
    *passes, synthesis = _MAPPING[family]
    commands = [f"read_verilog {source}", f"hierarchy -top {top}", "proc", *passes]
    design = run_yosys([*commands, f"{synthesis} -top {top}", write])
    statistics = source.with_name("cells.json")
    libyosys.Pass.call(design, f"tee -q -o {statistics} stat -json")
    return cell_counts(statistics)


def cell_counts(file: Path) -> dict[str, int]:
    """How many cells of each type there are, by the statistics of yosys in `file`."""
    text = file.read_text()
    modules = json.loads(text[text.index("{") :])
    cells = modules["design"]["num_cells_by_type"]
    return {name: int(count) for name, count in cells.items()}
