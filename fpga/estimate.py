"""What the accelerator takes on an UltraScale+ FPGA or an ASIC, estimated by yosys alone.

Nothing is placed or routed. The hierarchy is kept, so that modules with many instances are mapped
once and counted as often as they are there.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hotline.fpga.tools import run_yosys
from hotline.gen.config import Config
from hotline.host.verilated_build import design_verilog

__all__ = ["PUBLISHED_AREA", "TARGETS", "Estimate", "estimate", "run", "show"]

_TOP = "hotline"
_LIBERTY = Path(__file__).parent / "cells" / "generic.lib"

#: Area of a NAND2 of the generic library in the 45 nm process that it is taken from, in um2.
NAND2_UM2 = 0.798

#: A memory of fewer bits would be flip-flops or latches in an ASIC, not a macro.
_MACRO_BITS = 2048

#: The published accelerator (arXiv 2204.05436v1): 7.01 mm2 in 45 nm, shares in per cent, and bits
#: where they are known.
PUBLISHED_MM2 = 7.01
PUBLISHED_AREA: dict[str, tuple[float, int | None]] = {
    "access logger (hot table)": (65.7, 4 << 23),
    "input eDRAM": (23.4, 5 << 22),
    "lookup engines": (5.8, None),
    "embedding vector buffer": (0.7, 500 * 8),
    "other": (4.4, None),
}

#: Resources by cell, for UltraScale+. A RAMB18 is half a block, a RAM of LUTs as many as it fills.
_XILINX: dict[str, dict[str, float]] = {
    "lut": {
        **{f"LUT{inputs}": 1 for inputs in range(1, 7)},
        "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM32M": 4, "RAM64M": 4,
        "RAM32M16": 8, "RAM64M8": 8, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1, "INV": 1,
    },
    "ff": {"FDRE": 1, "FDSE": 1, "FDCE": 1, "FDPE": 1},
    "bram36": {"RAMB36E2": 1, "RAMB18E2": 0.5},
    "uram": {"URAM288": 1},
    "dsp": {"DSP48E2": 1},
    "carry8": {"CARRY8": 1, "CARRY4": 0.5},
}  # fmt: skip

TARGETS = ("asic", "xcup")


@dataclass(frozen=True)
class Estimate:
    """Resources of a design, in all and by block.

    Parameters
    ----------
    name, target : str
        What was estimated, and for what.
    total : dict of str to float
        ``xcup``: lut, ff, bram36, uram, dsp, carry8. ``asic``: gates (NAND2 equivalents of all
        logic, flip-flops included), ff, memory_bits (macros), small_memory_bits (memories below
        2048 bits).
    blocks : dict of str to dict
        The same by block, largest first.
    """

    name: str
    target: str
    total: dict[str, float]
    blocks: dict[str, dict[str, float]]

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; for an ASIC with the published area split beside it."""
        result = asdict(self)
        if self.target == "asic":
            result["areas_mm2"] = self.areas()
            result["published"] = {
                name: {"percent": share, "mm2": round(PUBLISHED_MM2 * share / 100, 3), "bits": bits}
                for name, (share, bits) in PUBLISHED_AREA.items()
            }
        return result

    def areas(self) -> dict[str, dict[str, float]]:
        """For an ASIC, by block: area in mm2 of logic in 45 nm, and of memory.

        Memory is as dense as in the published access logger, small memories as flip-flops.
        """
        share, bits = PUBLISHED_AREA["access logger (hot table)"]
        assert bits is not None
        per_bit = PUBLISHED_MM2 * share / 100 / bits
        result = {}
        for name, block in self.blocks.items():
            logic = (
                (block["gates"] + _FLIP_FLOP_AREA * block["small_memory_bits"]) * NAND2_UM2 / 1e6
            )
            result[name] = {
                "logic": round(logic, 4),
                "memory": round(block["memory_bits"] * per_bit, 4),
            }
        return result


def estimate(
    config: Config,
    name: str,
    target: str,
    progress: Callable[[str], None] = lambda what: None,
    cache: str | Path | None = None,
) -> Estimate:
    """Estimate the top for `config`.

    Parameters
    ----------
    config : Config
    name : str
        What to call it.
    target : str
        ``xcup`` (UltraScale+) or ``asic`` (logic in gates of a generic library, memories as bits).
    progress : callable
        Told what is being done.
    cache : path, optional
        Folder of generated Verilog.

    Raises
    ------
    ValueError
        There is no such target.
    """
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    progress("generating Verilog")
    verilog = design_verilog(config, cache)
    with tempfile.TemporaryDirectory() as folder:
        modules = _map(verilog, target, Path(folder), progress)
    count = _xilinx_resources if target == "xcup" else _asic_resources
    known = {kind for kinds in _XILINX.values() for kind in kinds} if target == "xcup" else _AREAS
    sums: dict[str, _Sizes] = {}
    own = {module: count(cells) for module, cells in modules.items()}
    total = _sum(_TOP, modules, own, sums)
    for part in sums:
        _check(modules[part], {*modules, *known})
    blocks = _blocks(modules, own, sums)
    names = _NAMES[target]
    biggest = names[0]
    ordered = sorted(blocks.items(), key=lambda item: (-item[1][biggest], item[0]))
    return Estimate(
        name,
        target,
        {key: _number(total[key]) for key in names},
        {block: {key: _number(sizes[key]) for key in names} for block, sizes in ordered},
    )


#: Resources by target, the one to sort by first.
_NAMES = {
    "xcup": tuple(_XILINX),
    "asic": ("gates", "ff", "memory_bits", "small_memory_bits"),
}


def _number(value: float) -> float:
    return int(value) if value == int(value) else round(value, 2)


# ---- yosys ---------------------------------------------------------------------------------------

#: Cells of a module: how many of each type; a memory's type is its size.
_Cells = dict[str, int]
#: Amount of each resource.
_Sizes = defaultdict[str, float]


def _map(
    verilog: str, target: str, folder: Path, progress: Callable[[str], None]
) -> dict[str, _Cells]:
    """The cells of every module after mapping."""
    source, result = folder / "design.v", folder / "mapped.json"
    source.write_text(verilog)
    if target == "xcup":
        # From there on as `synth_xilinx`, but with `abc`: `abc9` takes seconds for each of hundreds
        # of modules, and what it is better at, the clock, is not asked for here.
        steps = [
            f"synth_xilinx -family xcup -uram -noiopad -noclkbuf -top {_TOP} -run begin:map_luts",
            "opt_expr -mux_undef -noclkinv", "abc -luts 2:2,3,6:5,10,20",
            "clean", "xilinx_srl -fixed -minlen 3",
            "techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6",
            "xilinx_dffopt", "opt_lut_ins -tech xilinx", "clean", "blackbox =A:whitebox",
        ]  # fmt: skip
    else:
        steps = [
            f"hierarchy -top {_TOP}", "proc", "opt_expr", "opt_clean", "wreduce", "peepopt",
            "opt_clean", "alumacc", "share", "opt", "memory -nomap", "opt_clean", "opt -fast",
            "techmap", "opt -fast", "simplemap", f"dfflibmap -liberty {_LIBERTY}", "opt_clean",
            f"abc -liberty {_LIBERTY}", "opt_clean",
        ]  # fmt: skip
    run_yosys([f"read_verilog {source}", *steps, f"write_json {result}"], progress)
    content = json.loads(result.read_text())["modules"]
    # Cells of the library are modules too.
    own = {
        name: module
        for name, module in content.items()
        if not {"blackbox", "whitebox"} & module.get("attributes", {}).keys()
    }
    return {name: _cells(module) for name, module in own.items()}


def _cells(module: dict[str, Any]) -> _Cells:
    found: Counter[str] = Counter()
    for cell in module["cells"].values():
        kind = cell["type"]
        if kind == "$mem_v2":
            size, width = (int(cell["parameters"][key], 2) for key in ("SIZE", "WIDTH"))
            kind = f"$mem {size * width}"
        found[kind] += 1
    return dict(found)


# ---- counting ------------------------------------------------------------------------------------


#: Cells that take nothing of what is counted.
_FREE = frozenset({"GND", "VCC", "$scopeinfo", "MUXF7", "MUXF8", "MUXF9", "BUFG", "IBUF", "OBUF"})


def _check(cells: _Cells, known: Collection[str]) -> None:
    """Nothing may be missing in a count."""
    for kind in cells:
        if kind.startswith("$mem "):
            continue
        if kind not in known and kind not in _FREE:
            raise RuntimeError(f"yosys left a cell {kind} that nobody counts")


def _xilinx_resources(cells: _Cells) -> _Sizes:
    found = _Sizes(float)
    for resource, kinds in _XILINX.items():
        found[resource] += sum(kinds.get(kind, 0) * count for kind, count in cells.items())
    return found


def _liberty_areas() -> dict[str, float]:
    text = re.sub(r"/\*.*?\*/", "", _LIBERTY.read_text(), flags=re.DOTALL)
    return {
        name: float(area)
        for name, area in re.findall(r"cell\s*\((\w+)\)\s*{\s*area\s*:\s*([\d.]+)", text)
    }


_AREAS = _liberty_areas()
_FLIP_FLOP_AREA = _AREAS["DFF"]


def _asic_resources(cells: _Cells) -> _Sizes:
    found = _Sizes(float)
    for kind, count in cells.items():
        if kind.startswith("$mem "):
            bits = int(kind.split()[1])
            found["memory_bits" if bits >= _MACRO_BITS else "small_memory_bits"] += bits * count
        elif kind in _AREAS:
            found["gates"] += _AREAS[kind] * count
            found["ff"] += count * (kind == "DFF")
    return found


def _sum(
    module: str,
    modules: dict[str, _Cells],
    own: dict[str, _Sizes],
    sums: dict[str, _Sizes],
) -> _Sizes:
    """Resources of a module with all that is in it; `sums` remembers them."""
    if module not in sums:
        result = _Sizes(float, own[module])
        for kind, count in modules[module].items():
            if kind in modules:
                for resource, amount in _sum(kind, modules, own, sums).items():
                    result[resource] += amount * count
        sums[module] = result
    return sums[module]


def _blocks(
    modules: dict[str, _Cells], own: dict[str, _Sizes], sums: dict[str, _Sizes]
) -> dict[str, _Sizes]:
    """By block: what is in the top and in its datapath, and what these have beside."""
    blocks: dict[str, _Sizes] = {}
    for container in (_TOP, f"{_TOP}.datapath"):
        blocks[container.split(".")[-1]] = _Sizes(float, own[container])
        for kind, count in modules[container].items():
            if kind in modules and kind != f"{_TOP}.datapath":
                name = re.sub(r"\$\d+$", "", kind.split(".")[-1])
                part = blocks.setdefault(name, _Sizes(float))
                for resource, amount in sums[kind].items():
                    part[resource] += amount * count
    return {name: block for name, block in blocks.items() if any(block.values())}


def run(config: Config, name: str, target: str, json_file: Path | None) -> Estimate:
    """Run :func:`estimate`, show what came out, and write it to `json_file`."""
    console = Console()
    with console.status("") as status:
        result = estimate(config, name, target, status.update)
    show(result, console)
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(result.as_dict(), indent=2) + "\n")
    return result


# ---- on the screen -------------------------------------------------------------------------------

_TITLES = {
    "lut": "LUT", "ff": "FF", "bram36": "BRAM36", "uram": "URAM", "dsp": "DSP", "carry8": "CARRY8",
    "gates": "gates (NAND2)", "memory_bits": "memory bits", "small_memory_bits": "small memories",
}  # fmt: skip


def show(result: Estimate, console: Console | None = None) -> None:
    """Print the tables of an estimate."""
    console = console or Console()
    table = Table(title=f"{result.name}, {result.target}")
    table.add_column("block")
    for key in result.total:
        table.add_column(_TITLES[key], justify="right")
    areas = result.areas() if result.target == "asic" else {}
    if areas:
        table.add_column("mm2", justify="right")
    for name, block in result.blocks.items():
        cells = [
            f"{value:,.0f}" if value == int(value) else f"{value:,.1f}" for value in block.values()
        ]
        if areas:
            cells.append(f"{sum(areas[name].values()):.3f}")
        table.add_row(name, *cells)
    table.add_section()
    totals = [f"{value:,.0f}" for value in result.total.values()]
    if areas:
        totals.append(f"{sum(sum(area.values()) for area in areas.values()):.3f}")
    table.add_row("all", *totals)
    console.print(table)
    if areas:
        published = Table(title=f"published: {PUBLISHED_MM2} mm2 in 45 nm")
        for title in ("part", "share", "mm2", "bits"):
            published.add_column(title, justify="left" if title == "part" else "right")
        for name, (share, bits) in PUBLISHED_AREA.items():
            area = PUBLISHED_MM2 * share / 100
            published.add_row(
                name, f"{share} %", f"{area:.2f}", "" if bits is None else f"{bits:,}"
            )
        console.print(published)
