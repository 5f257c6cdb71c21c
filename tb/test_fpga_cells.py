"""The models of DP16KD, PDPW16KD and MULT18X18D against the RTL that yosys maps to them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cell_cases import CASES, PORTS

from hotline.fpga.netlist import NetlistError, cell_models, netlist, synthesise
from hotline.gen.presets import preset
from hotline.host.verilator_tool import compile_model, tool_environment

_CYCLES = 20_000
_ARGUMENTS = [
    "--no-timing", "--no-trace", "-Wno-fatal", "-Werror-USERFATAL", "-Wno-lint", "-Wno-style",
    "bench.v", "main.cpp",
]  # fmt: skip
_MAIN = """
#include "Vbench.h"
int main(int argc, char** argv) {
    VerilatedContext context;
    context.commandArgs(argc, argv);
    Vbench bench{&context};
    for (; !context.gotFinish(); bench.clk = !bench.clk) bench.eval();
}
"""


def _simulate(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    (folder / "bench.v").write_text(text)
    (folder / "main.cpp").write_text(_MAIN)
    compile_model(
        folder, [*_ARGUMENTS, "--top-module", "bench"], prefix="Vbench", target="bench",
        flags=("OPT_FAST=-O1",),
    )  # fmt: skip
    return subprocess.run(
        [folder / "bench", *options], capture_output=True, text=True, timeout=300, check=False
    )


def _all_cases() -> str:
    """A module `cells` with an instance of each case, and all their outputs."""
    inputs = ", ".join(f"input [{width - 1}:0] {port}" for port, width in PORTS.items())
    pins = ", ".join(f".{port}({port})" for port in ("clk", *PORTS))
    text = "".join("(* keep_hierarchy *)\n" + case.module(case.name) for case in CASES)
    text += f"module cells(input clk, {inputs}, output [{72 * len(CASES) - 1}:0] q);\n"
    for number, case in enumerate(CASES):
        a, b = f"q[{72 * number} +: 36]", f"q[{72 * number + 36} +: 36]"
        text += f"{case.name} case_{number} ({pins}, .q_a({a}), .q_b({b}));\n"
    return text + "endmodule\n"


def _bench(cycles: int) -> str:
    """Random traffic, half of the time on few addresses, for `cells` and `net_cells`."""
    declarations = "".join(f"reg [{width - 1}:0] {port} = 0;\n" for port, width in PORTS.items())
    pins = ", ".join(f".{port}({port})" for port in ("clk", *PORTS))
    names = " ".join(f'{number}: name = "{case.name}";' for number, case in enumerate(CASES))
    return f"""
module bench(input clk);
  {declarations}
  wire [{72 * len(CASES) - 1}:0] rtl, net;
  cells one ({pins}, .q(rtl));
  net_cells other ({pins}, .q(net));
  integer cycle = 0, number;
  string name;
  reg [13:0] few;
  always @(negedge clk) begin
    for (number = 0; number < {len(CASES)}; number = number + 1)
      if (rtl[72*number +: 72] !== net[72*number +: 72]) begin
        case (number) {names} default: name = "?"; endcase
        $display("DIFFERENT %s in cycle %0d: %h instead of %h", name, cycle,
                 net[72*number +: 72], rtl[72*number +: 72]);
        $finish;
      end
    cycle = cycle + 1;
    few = cycle[9] ? 14'h3fff : 14'h0c23;
    ce_a = $urandom_range(3) != 0;
    ce_b = $urandom_range(3) != 0;
    rst_a = $urandom_range(15) == 0;
    rst_b = $urandom_range(15) == 0;
    we_a = $urandom;
    we_b = $urandom;
    addr_a = $urandom & few;
    addr_b = $urandom_range(3) == 0 ? addr_a : $urandom & few;
    d_a = {{$urandom, $urandom}};
    d_b = {{$urandom, $urandom}};
    if (cycle == {cycles}) begin
      $display("SAME");
      $finish;
    end
  end
endmodule
"""


def _netlist(rtl: str, folder: Path) -> str:
    """The netlist of the cases, its modules called ``net_...``, and what each one has been made of.

    Checks that every case has become the cell and the modes that it is there for.
    """
    mapped = synthesise(rtl, "cells", "ecp5", folder)
    names = "|".join(["cells", *(case.name for case in CASES)])
    found = {
        match[1]: match[0]
        for match in re.finditer(r"^module (\w+)\(.*?^endmodule\n", mapped.verilog, re.M | re.S)
    }
    for case in CASES:
        if case.wired:
            found[case.name] = case.module(case.name, case.wired)
        assert re.search(rf"^ *{case.cell} ", found[case.name], re.M), case.name
        for name, value in case.modes.items():
            text = f"32'd{value}" if isinstance(value, int) else f'"{value}"'
            assert f".{name}({text})" in found[case.name], (case.name, name, value)
    return re.sub(rf"\b({names})\b", r"net_\1", "".join(found.values()))


def test_models_agree_with_rtl(seed: int, tmp_path: Path) -> None:
    rtl = _all_cases()
    (tmp_path / "synthesis").mkdir()
    netlist = _netlist(rtl, tmp_path / "synthesis")
    kinds = ("DP16KD", "PDPW16KD", "MULT18X18D", "LUT4", "TRELLIS_FF", "CCU2C", "PFUMX", "L6MUX21")
    models = cell_models(dict.fromkeys(kinds, 1), "ecp5")
    done = _simulate(
        tmp_path / "model", rtl + netlist + models + _bench(_CYCLES), f"+verilator+seed+{seed}"
    )
    assert done.stdout.splitlines()[:1] == ["SAME"], done.stdout + done.stderr


_PINS = {
    "DP16KD": ".CLKA(clk), .CLKB(clk), .CEA(1'b1), .CEB(1'b1), .WEA(we_a), .WEB(we_b)",
    "PDPW16KD": ".CLKW(clk), .CLKR(clk)",
    "MULT18X18D": ".SOURCEA(we_a)",
}


def _cell(kind: str, parameters: str, pins: str = "") -> str:
    return (
        f"module bench(input clk); reg we_a = 0, we_b = 0, slow = 0; reg [3:0] count = 0;\n"
        "always @(posedge clk) begin count <= count + 1; slow <= count[1];\n"
        "we_a <= count > 3; we_b <= count > 5; if (&count) $finish; end\n"
        f"{kind} #({parameters}) cell_0 ({pins or _PINS[kind]});\nendmodule\n"
        + cell_models({kind: 1}, "ecp5")
    )


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("DP16KD", ".DATA_WIDTH_A(3)", "DATA_WIDTH_A = 3 is not modelled"),
        ("DP16KD", ".DATA_WIDTH_B(36)", "DATA_WIDTH_B = 36 with DATA_WIDTH_A = 18 is not modelled"),
        ("DP16KD", '.REGMODE_B("OUTREG")', "REGMODE_B = OUTREG is not modelled"),
        ("DP16KD", '.RESETMODE("LATER")', "RESETMODE = LATER is not modelled"),
        ("DP16KD", '.RESETMODE("ASYNC")', "ASYNC_RESET_RELEASE = SYNC with RESETMODE = ASYNC"),
        ("DP16KD", '.WRITEMODE_A("OTHER")', "WRITEMODE_A = OTHER is not modelled"),
        ("DP16KD", '.CLKBMUX("1")', "CLKBMUX = 1 is not modelled"),
        ("DP16KD", ".WID(1)", "WID"),
        ("PDPW16KD", ".DATA_WIDTH_W(18)", "DATA_WIDTH_W = 18 is not modelled"),
        ("PDPW16KD", '.CLKRMUX("0")', "CLKRMUX = 0 is not modelled"),
        ("MULT18X18D", '.REG_OUTPUT_CLK("CLK0")', "REG_OUTPUT_CLK"),
    ],
)
def test_modes_that_are_not_modelled_do_not_compile(
    kind: str, parameters: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "bench.v"
    file.write_text(_cell(kind, parameters))
    command = ["verilator", "--lint-only", "-Wno-fatal", "-Werror-USERFATAL"]
    command += ["--top-module", "bench", str(file)]
    done = subprocess.run(
        command, env=tool_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode and message in done.stderr


@pytest.mark.parametrize(
    ("kind", "parameters", "pins", "message"),
    [
        ("MULT18X18D", "", "", "SOURCEB) are not modelled"),
        ("DP16KD", "", "", "both ports write the same bits"),
        (
            "DP16KD",
            ".DATA_WIDTH_A(36), .DATA_WIDTH_B(36)",
            "",
            "a write on port B of 36 bits is not modelled",
        ),
        ("DP16KD", "", ".CLKA(clk), .CLKB(slow)", "ports on different clocks are not modelled"),
    ],
)
def test_use_that_is_not_modelled_ends_the_simulation(
    kind: str, parameters: str, pins: str, message: str, tmp_path: Path
) -> None:
    # Both ports write the same byte, once port B writes too.
    if message.startswith("both"):
        pins = _PINS[kind] + ", .ADA0(1'b1), .ADB0(1'b1)"
    done = _simulate(tmp_path / "model", _cell(kind, parameters, pins))
    assert done.returncode and message in done.stdout + done.stderr


def test_a_read_of_what_is_being_written_is_wrong(tmp_path: Path) -> None:
    """Bits inverted, as the device promises nothing."""
    outputs = ", ".join(f".DOB{bit}(q[{bit}])" for bit in range(9))
    bench = f"""
module bench(input clk); reg [3:0] count = 0; wire [8:0] q;
always @(posedge clk) begin count <= count + 1;
  if (count == 3) $display("same cycle %h", q);
  if (count == 5) begin $display("later %h", q); $finish; end
end
DP16KD #(.DATA_WIDTH_A(9), .DATA_WIDTH_B(9)) cell_0 (.CLKA(clk), .CLKB(clk), .CEA(1'b1),
  .WEA(count == 2), .DIA0(1'b1), .DIA8(1'b1), .CEB(1'b1), .WEB(1'b0), {outputs});
endmodule
"""
    done = _simulate(tmp_path / "model", bench + cell_models({"DP16KD": 1}, "ecp5"))
    assert done.stdout.splitlines()[:2] == ["same cycle 1ff", "later 101"]


def test_a_cell_without_a_model() -> None:
    with pytest.raises(NetlistError, match="no simulation model of the cell EHXPLLL of ecp5"):
        cell_models({"LUT4": 3, "EHXPLLL": 1}, "ecp5")
    with pytest.raises(ValueError, match="family must be one of ecp5, ice40, not 'max10'"):
        netlist(preset("tiny"), "max10")
