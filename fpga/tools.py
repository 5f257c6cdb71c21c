"""The tools of the open flow, all from PyPI: yosys as a library, the rest as commands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyosys import libyosys

__all__ = ["ECP5_PLACER", "FlowError", "count_cells", "find_tool", "run_tool", "run_yosys"]


#: Options with which nextpnr-ecp5 looks at timing harder when it places: 15 % more clock. Routing
#: of a board top then takes more than a quarter of an hour, so bitstreams are built without.
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


def run_yosys(commands: Sequence[str]) -> libyosys.Design:
    """A new design, after these commands, which print nothing."""
    design = libyosys.Design()
    for command in commands:
        libyosys.Pass.call(design, f"tee -q {command}")
    return design


def count_cells(design: libyosys.Design, file: Path) -> dict[str, int]:
    """How many cells of each type there are in a design; `file` gets the statistics of yosys."""
    libyosys.Pass.call(design, f"tee -q -o {file} stat -json")
    text = file.read_text()
    modules = json.loads(text[text.index("{") :])
    cells = modules["design"]["num_cells_by_type"]
    return {name: int(count) for name, count in cells.items()}
