"""Estimates for UltraScale+ and for an ASIC, on designs of which the answer is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotline.fpga import estimate as module
from hotline.fpga.estimate import estimate, show
from hotline.gen.presets import preset
from hotline.gen.verilog import to_verilog
from hotline.rtl.top import Hotline

#: Two instances of a block in the datapath, one beside it, each with a memory.
_DESIGN = """
(* top *)
module hotline(input clk, input [7:0] a, output [7:0] q, output r, input [11:0] address);
  wire [7:0] inner;
  \\hotline.datapath  datapath(.clk(clk), .a(a), .q(inner), .address(address));
  \\hotline.registers  registers(.clk(clk), .a(inner), .q(q));
  reg last = 0;
  always @(posedge clk) last <= ^a[5:0];
  assign r = last;
endmodule
module \\hotline.datapath (input clk, input [7:0] a, output [7:0] q, input [11:0] address);
  wire [7:0] x, y;
  bank one(.clk(clk), .a(a), .q(x), .address(address));
  bank two(.clk(clk), .a(~a), .q(y), .address(address));
  assign q = x ^ y;
endmodule
module bank(input clk, input [7:0] a, output reg [7:0] q, input [11:0] address);
  (* ram_style = "block" *) reg [7:0] mem[0:4095];
  always @(posedge clk) begin
    q <= mem[address];
    mem[address] <= a;
  end
endmodule
module \\hotline.registers (input clk, input [7:0] a, output [7:0] q);
  reg [7:0] few[0:3];
  reg [1:0] at = 0;
  always @(posedge clk) begin
    at <= at + 1;
    few[at] <= a;
  end
  assign q = few[at];
endmodule
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "design_verilog", lambda config, cache: _DESIGN)


@pytest.mark.usefixtures("small")
def test_asic_counts(capsys: pytest.CaptureFixture[str]) -> None:
    result = estimate(preset("tiny"), "small", "asic")
    bank, registers = result.blocks["bank"], result.blocks["registers"]
    # The output of a memory is inside it; the counter and the parity are the only flip-flops.
    assert bank["memory_bits"] == 2 * 4096 * 8 and bank["small_memory_bits"] == 0
    assert registers["small_memory_bits"] == 4 * 8 and registers["ff"] == 2
    assert result.blocks["hotline"]["ff"] == 1 and result.total["ff"] >= 3
    assert result.blocks["datapath"]["gates"] == 8 * (2.0 + 0.67)  # XOR2 and INV
    assert result.total["memory_bits"] == 65536
    assert result.total["gates"] == pytest.approx(sum(b["gates"] for b in result.blocks.values()))
    data = result.as_dict()
    share = data["published"]["access logger (hot table)"]
    assert share["percent"] == 65.7 and share["bits"] == 33554432
    assert data["areas_mm2"]["bank"]["memory"] == pytest.approx(7.01 * 0.657 / 512, abs=1e-4)
    assert sum(part["percent"] for part in data["published"].values()) == 100
    show(result)
    assert "access logger" in capsys.readouterr().out


@pytest.mark.usefixtures("small")
def test_xcup_counts() -> None:
    result = estimate(preset("tiny"), "small", "xcup")
    # 32 Kibit are one block of 36.
    assert result.blocks["bank"]["bram36"] == 2 and result.total["bram36"] == 2
    assert result.blocks["hotline"] == {
        "lut": 1, "ff": 1, "bram36": 0, "uram": 0, "dsp": 0, "carry8": 0,
    }  # fmt: skip
    assert result.total["lut"] == sum(block["lut"] for block in result.blocks.values())


@pytest.mark.usefixtures("small")
def test_nothing_is_left_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AREAS", {"DFF": 5.67})
    with pytest.raises(ValueError, match="target must be one of asic, xcup, not 'gpu'"):
        estimate(preset("tiny"), "small", "gpu")
    with pytest.raises(RuntimeError, match=r"yosys left a cell \w+ that nobody counts"):
        estimate(preset("tiny"), "small", "asic")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["asic", "xcup"])
def test_tiny(target: str, tmp_path: Path) -> None:
    file = tmp_path / "estimate.json"
    command = [sys.executable, "-m", "hotline.gen.cli", "estimate", "--target", target]
    command += ["--preset", "tiny", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(file.read_text())
    assert {"hot_table", "row_mover", "read_engine", "registers"} <= set(result["blocks"])
    assert result["total"]["ff"] > 1000
    assert to_verilog(Hotline(preset("tiny")), "hotline")
    if target == "asic":
        assert result["published"] and 20_000 < result["total"]["gates"] < 500_000
