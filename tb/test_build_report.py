"""The report of a build, from small netlists and reports of place and route."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hotline.fpga.build_report import (
    block_of,
    build_report,
    load_baseline,
    save_baseline,
    show,
)

#: Cells by name: type.
_CELLS = {
    "top.hotline.datapath.classifier.bags.level_LUT4_Z": "LUT4",
    "top.hotline.datapath.classifier.bags.level_TRELLIS_FF_Q": "TRELLIS_FF",
    "top.hotline.datapath.classifier.sum_CCU2C_S0": "CCU2C",
    "top.hotline.datapath.classifier.mem.0.0": "DP16KD",
    "top.hotline.datapath.requests.fifo_TRELLIS_DPR16X4_DO": "TRELLIS_DPR16X4",
    "top.hotline.datapath.requests$12.other_LUT4_Z": "LUT4",
    "top.hotline.datapath.route_LUT4_Z": "LUT4",
    "top.hotline.registers.state_TRELLIS_FF_Q": "TRELLIS_FF",
    "top.bridge.product_MULT18X18D_P0": "MULT18X18D",
    "top.bridge.more_LUT4_Z": "LUT4",
    "reset_LUT4_Z": "LUT4",
    "VCC": "VHI",
}


def _step(kind: str, delay: float, source: str, target: str) -> dict[str, Any]:
    return {
        "type": kind, "delay": delay, "from": {"cell": source, "port": "Q"},
        "to": {"cell": target, "port": "D"},
    }  # fmt: skip


def _placed(achieved: float) -> dict[str, Any]:
    first, second, third = (
        "top.hotline.datapath.classifier.bags.level_TRELLIS_FF_Q",
        "top.hotline.datapath.requests$12.other_LUT4_Z",
        "top.hotline.registers.state_TRELLIS_FF_Q",
    )
    path = [
        _step("clk-to-q", 0.5, first, first),
        _step("routing", 2.0, first, second),
        _step("logic", 0.25, second, second),
        _step("routing", 1.0, second, third),
        _step("setup", 0.0, third, third),
    ]
    crossing = {"from": "<async>", "to": "posedge core", "path": path[:1]}
    return {
        "fmax": {
            "core": {"achieved": achieved, "constraint": 80.0},
            "slow": {"achieved": 70.0, "constraint": 25.0},
        },
        "utilization": {
            "TRELLIS_COMB": {"used": 13, "available": 26},
            "DCCA": {"used": 0, "available": 56},
        },
        "critical_paths": [
            crossing,
            {"from": "posedge slow", "to": "posedge slow", "path": path[:2]},
            {"from": "posedge core", "to": "posedge core", "path": path},
        ],
    }


@pytest.fixture
def build(tmp_path: Path) -> tuple[Path, dict[int, Path]]:
    """A netlist, and the reports of four seeds."""
    netlist = tmp_path / "netlist.json"
    cells = {name: {"type": kind} for name, kind in _CELLS.items()}
    modules = {
        "LUT4": {"attributes": {"blackbox": "1"}, "cells": {}},
        "board": {"attributes": {"top": "1"}, "cells": cells},
    }
    netlist.write_text(json.dumps({"modules": modules}))
    reports = {}
    for seed, clock in enumerate((90.0, 100.0, 84.0, 80.5), start=1):
        reports[seed] = tmp_path / f"report_{seed}.json"
        reports[seed].write_text(json.dumps(_placed(clock)))
    return netlist, reports


@pytest.mark.parametrize(
    ("cell", "block"),
    [
        ("block.datapath.classifier.bags.x_LUT4_Z", "classifier"),
        ("top.hotline.command_processor.fetcher.x", "command_processor"),
        ("top.hotline.datapath.records$449.x", "records"),
        ("top.hotline.datapath.x_LUT4_Z", "datapath"),
        ("top.x_LUT4_Z", "top"),
        ("$PACKER_VCC", "top"),
        ("top.uart.receiver.x", "uart"),
    ],
)
def test_blocks_by_name(cell: str, block: str) -> None:
    assert block_of(cell) == block


def test_figures(build: tuple[Path, dict[int, Path]]) -> None:
    report = build_report("tiny-board", *build)
    # LUT4 alone; with two of a carry cell and six of a distributed RAM.
    assert report.used == {"lut4": 5, "lut": 13, "ff": 2, "bram": 1, "dsp": 1}
    assert report.device == {"TRELLIS_COMB": (13, 26)}
    assert report.constraint_mhz == 80 and report.fmax_mhz[2] == 100
    assert report.median_mhz == 87 and report.range_mhz == (80.5, 100)
    assert {name: block.used["lut"] for name, block in report.blocks.items()} == {
        "requests": 7, "classifier": 3, "bridge": 1, "datapath": 1, "top": 1, "registers": 0,
    }  # fmt: skip
    assert report.blocks["requests"].lut_share == pytest.approx(7 / 13, abs=1e-4)
    assert report.blocks["registers"].used["ff"] == 1 == report.blocks["bridge"].used["dsp"]
    assert sum(block.lut_share for block in report.blocks.values()) == pytest.approx(1, abs=1e-3)
    data = json.loads(json.dumps(report.as_dict()))
    assert data["fmax_mhz_median"] == 87 and data["fmax_mhz_range"] == [80.5, 100]
    assert data["changes"] == {}


def test_critical_path_is_that_of_the_median(build: tuple[Path, dict[int, Path]]) -> None:
    path = build_report("tiny-board", *build).path
    assert path is not None and path.seed == 3  # 84 MHz: the lower middle of four
    assert path.by_block == {"classifier": 0.5, "requests": 2.25, "registers": 1.0}
    assert (path.logic, path.routing) == (0.75, 3.0)
    assert path.start.endswith("level_TRELLIS_FF_Q") and path.end.endswith("state_TRELLIS_FF_Q")


def test_ice40_cells(tmp_path: Path) -> None:
    kinds = ["SB_LUT4", "SB_CARRY", "SB_DFF", "SB_DFFESR", "SB_RAM40_4K", "SB_SPRAM256KA"]
    cells = {f"top.x{number}": {"type": kind} for number, kind in enumerate([*kinds, "SB_MAC16"])}
    netlist, report = tmp_path / "netlist.json", tmp_path / "report.json"
    netlist.write_text(json.dumps({"modules": {"b": {"attributes": {"top": 1}, "cells": cells}}}))
    report.write_text(json.dumps(_placed(50.0)))
    used = build_report("tiny", netlist, {1: report}).used
    assert used == {"lut4": 1, "lut": 1, "ff": 2, "bram": 1, "spram": 1, "dsp": 1}


def test_baseline(build: tuple[Path, dict[int, Path]], tmp_path: Path) -> None:
    folder = tmp_path / "baselines"
    report = build_report("tiny-board", *build)
    assert load_baseline("tiny-board", folder) is None
    file = save_baseline(report, folder)
    assert file == folder / "tiny-board.json"
    same = build_report("tiny-board", *build, load_baseline("tiny-board", folder))
    assert set(same.changes.values()) == {0.0}

    before = json.loads(file.read_text())
    before |= {"lut": 10, "fmax_mhz_median": 100.0, "lut of gone": 5, "dsp": 0}
    del before["lut of bridge"]
    changed = build_report("tiny-board", *build, before)
    assert changed.changes["lut"] == 30.0 and changed.changes["fmax_mhz_median"] == -13.0
    assert changed.changes["lut of bridge"] is None and changed.changes["lut of gone"] is None
    assert changed.changes["dsp"] is None and changed.changes["ff"] == 0.0

    console = Console(record=True, width=120)
    show(changed, console)
    text = console.export_text()
    for part in ("+30.0 %", "-13.0 %", "new", "80.5 to 100.0; asked for 80", "seed 3: 3.75 ns"):
        assert part in text, part


def test_what_is_no_build(build: tuple[Path, dict[int, Path]]) -> None:
    netlist, reports = build
    with pytest.raises(ValueError, match="at least one seed"):
        build_report("x", netlist, {})
    clockless = _placed(1.0) | {"fmax": {}}
    reports[1].write_text(json.dumps(clockless))
    with pytest.raises(ValueError, match=r"report_1.json names no clock"):
        build_report("x", netlist, {1: reports[1]})
    netlist.write_text(json.dumps({"modules": {}}))
    with pytest.raises(ValueError, match="has 0 top modules instead of 1"):
        build_report("x", netlist, {2: reports[2]})


def test_stored_baselines_can_be_read() -> None:
    from hotline.fpga.build_report import BASELINES

    for file in BASELINES.glob("*.json"):
        figures = load_baseline(file.stem)
        assert figures is not None and figures["lut"] > 0 and figures["fmax_mhz_median"] > 0


def test_update_of_the_baseline(
    build: tuple[Path, dict[int, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotline.fpga import board_build
    from hotline.fpga.bitstream import Build
    from hotline.fpga.boards import board
    from hotline.gen.presets import preset

    report = build_report("tiny-board", *build)
    done = Build(report, tmp_path / "x.bit", 2, {"synthesis": 1.0})
    stored: list[str] = []
    monkeypatch.setattr(board_build, "build_bitstream", lambda *arguments: done)
    monkeypatch.setattr(
        board_build, "save_baseline", lambda report: stored.append(report.name) or tmp_path
    )
    arguments = (preset("tiny"), "tiny", board("ulx3s-85f"), tmp_path, 1, None)
    board_build.run(*arguments)
    assert not stored
    board_build.run(*arguments, True)
    assert stored == ["tiny-board"]


def test_baseline_without_a_board(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hotline.gen.cli", "synth", "--preset", "tiny"]
    command += ["-o", str(tmp_path / "out"), "--update-baseline"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "--update-baseline stores the figures of a board: it needs --board" in done.stderr
    assert not (tmp_path / "out").exists()
