"""The accelerator as a netlist of FPGA cells in Verilog, with models of them for simulation."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass
from pathlib import Path

import pyosys

from hotline.fpga import tools
from hotline.fpga.tools import cell_counts, map_to_cells
from hotline.gen.config import Config
from hotline.host.cache import cache_folder
from hotline.host.verilated_build import design_verilog
from hotline.host.verilator_tool import build_key, cached_build

__all__ = ["FAMILIES", "Netlist", "NetlistError", "cell_models", "netlist", "synthesise"]

_TOP = "hotline"
_CELLS = Path(__file__).parent / "cells"
_YOSYS = Path(pyosys.__file__).parent / "share"

#: By family: where the models of its cells are.
FAMILIES: dict[str, tuple[Path, ...]] = {
    "ecp5": (
        _YOSYS / "lattice" / "common_sim.vh",
        _YOSYS / "lattice" / "ccu2c_sim.vh",
        _CELLS / "dp16kd.v",
        _CELLS / "pdpw16kd.v",
        _CELLS / "mult18x18d.v",
    ),
    "ice40": (_YOSYS / "ice40" / "cells_sim.v",),
}

_MODULE = re.compile(
    r"^module\s+(?:\\)?([\w$]+)[\s(#;].*?^endmodule[^\n]*", re.MULTILINE | re.DOTALL
)
#: In front of the models: the macros with which those of the iCE40 give inputs values. Nothing that
#: yosys writes leaves such an input open, and Verilator does not know values of inputs.
_MACROS = """
`define SB_DFF_INIT initial Q = 0;
`define ICE40_DEFAULT_ASSIGNMENT_V(v)
`define ICE40_DEFAULT_ASSIGNMENT_0
`define ICE40_DEFAULT_ASSIGNMENT_1
"""


class NetlistError(RuntimeError):
    """A netlist needs a cell that no model describes."""


@dataclass(frozen=True)
class Netlist:
    """A design as cells of an FPGA.

    Parameters
    ----------
    verilog : str
        Its module, without models of the cells.
    cells : dict of str to int
        How many there are of each type.
    family : str
        One of :data:`FAMILIES`.
    """

    verilog: str
    cells: dict[str, int]
    family: str

    def with_models(self) -> str:
        """The module and models of its cells, ready for a simulator."""
        return self.verilog + cell_models(self.cells, self.family)


def synthesise(verilog: str, top: str, family: str, folder: Path) -> Netlist:
    """Map module `top` of the text `verilog` to cells; its ports stay as they are.

    `folder` is for the files in between.
    """
    source, result = folder / "design.v", folder / "netlist.v"
    source.write_text(verilog)
    cells = map_to_cells(source, top, family, f"write_verilog -noattr {result}")
    return Netlist(result.read_text(), cells, family)


def netlist(config: Config, family: str, cache: str | Path | None = None) -> Netlist:
    """The top for `config` as cells of `family`, with the ports of spec section 6.

    Kept under a hash of the design and the versions of the tools.

    Raises
    ------
    ValueError
        There is no such family.
    """
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, not {family!r}")
    verilog = design_verilog(config, cache)
    recipe = (Path(file).read_text() for file in (__file__, tools.__file__))
    key = build_key(verilog, *recipe, family, _version())

    def build(folder: Path) -> None:
        synthesise(verilog, _TOP, family, folder)

    folder = cached_build(cache_folder(cache), f"netlist-{key}", build)
    cells = cell_counts(folder / "cells.json")
    return Netlist((folder / "netlist.v").read_text(), cells, family)


def cell_models(cells: dict[str, int], family: str) -> str:
    """Verilog of the cells of these types, and of what they consist of.

    yosys brings models of most; those of DP16KD, PDPW16KD and MULT18X18D lie in ``cells`` beside
    this file.

    Raises
    ------
    NetlistError
        There is no model of a cell.
    """
    known: dict[str, str] = {}
    for file in FAMILIES[family]:
        known |= {match[1]: match[0] for match in _MODULE.finditer(file.read_text())}
    waiting, done = set(cells), set()
    while waiting:
        name = waiting.pop()
        if name not in known:
            raise NetlistError(f"there is no simulation model of the cell {name} of {family}")
        done.add(name)
        inner = set(re.findall(r"^\s+(\w+) (?:#\(|\w+\s?\()", known[name], re.MULTILINE))
        waiting |= (inner & known.keys()) - done
    return _MACROS + "\n".join([*(known[name] for name in sorted(done)), ""])


def _version() -> str:
    return importlib.metadata.version("pyosys")
