"""Packaging for Vivado and Vitis: the Tcl runs with stand-ins, and all agrees with the Verilog.

The tools themselves are not there to try it with.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hotline.gen import export
from hotline.gen.netlist import Port, ports
from hotline.gen.presets import preset
from hotline.gen.register_map import register_map
from hotline.gen.vivado import KERNEL
from hotline.host.verilator_tool import tool_environment

CONFIGS = {
    "tiny": preset("tiny"),
    "ecp5": preset("ecp5"),
    "widest": preset("tiny").replace(addr_width=64, data_width=512, id_width=8, max_burst_beats=64),
}

#: Stand-ins for Vivado's commands: each call is noted, and answers a handle made of its arguments.
#: `known` has what Vivado itself would have inferred: all or nothing.
_STAND_INS = """
set calls {}
proc note {name arguments} {
    lappend ::calls [list $name {*}$arguments]
    return [join [list $name {*}$arguments] "|"]
}
foreach name {create_project add_files set_property update_compile_order current_fileset
    close_project package_xo ipx::package_project ipx::current_core ipx::infer_bus_interface
    ipx::infer_bus_interfaces ipx::associate_bus_interfaces ipx::add_bus_parameter
    ipx::add_address_space ipx::add_memory_map ipx::add_address_block ipx::add_register
    ipx::get_registers ipx::add_register_parameter ipx::create_xgui_files ipx::update_checksums
    ipx::check_integrity ipx::save_core} {
    namespace eval ipx {}
    proc ::$name args "return \\[note $name \\$args\\]"
}
foreach name {get_bus_interfaces get_address_spaces get_memory_maps get_address_blocks} {
    proc ::ipx::$name args "
        note ipx::$name \\$args
        return \\[expr {\\$::known ? \\[join \\$args |\\] : {}}\\]
    "
}
"""


@cache
def _content(name: str) -> dict[str, str]:
    return export.files(CONFIGS[name])


@pytest.fixture(params=sorted(CONFIGS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _run(text: str, folder: Path, known: bool) -> list[list[str]]:
    """The calls of a script; `known` as in the stand-ins."""
    tkinter = pytest.importorskip("tkinter", reason="Python has no Tcl here")
    interpreter = tkinter.Tcl()
    interpreter.eval(_STAND_INS)
    interpreter.eval(f"set known {int(known)}")
    script = folder / "script.tcl"
    script.write_text(text)
    interpreter.eval(f"source {{{script}}}")
    calls = interpreter.splitlist(interpreter.eval("set calls"))
    return [list(interpreter.splitlist(call)) for call in calls]


def _interfaces(listed: list[Port]) -> dict[str, set[str]]:
    """AXI interfaces by name prefix: the signals of each, as Vivado would find them."""
    found: dict[str, set[str]] = {}
    for port in listed:
        match = re.fullmatch(r"(\w*axi\w*)_((?:aw|ar|w|r|b)\w+)", port.name)
        if match:
            found.setdefault(match[1], set()).add(match[2])
    return found


@pytest.mark.parametrize("known", [True, False])
def test_ip_script(name: str, known: bool, tmp_path: Path) -> None:
    config, content = CONFIGS[name], _content(name)
    calls = _run(content["package_ip.tcl"], tmp_path, known)
    listed = ports(content["hotline.v"], "hotline")
    names = {port.name for port in listed}
    assert ["set_property", "top", "hotline", "current_fileset"] in calls
    assert any(call[0] == "add_files" and call[-1].endswith("/hotline.v") for call in calls)
    assert calls[-2][0] == "ipx::save_core" and calls[-1] == ["close_project"]

    interfaces = _interfaces(listed)
    assert set(interfaces) == {"m_axi", "s_axil"}
    clocked = [call[2] for call in calls if call[:2] == ["ipx::associate_bus_interfaces", "-busif"]]
    assert clocked == ["m_axi", "s_axil"]
    inferred = {call[1]: call[2] for call in calls if call[0] == "ipx::infer_bus_interface"}
    kinds = {"aclk": "clock", "aresetn": "reset", "irq": "interrupt"}
    expected = {} if known else {k: f"xilinx.com:signal:{v}_rtl:1.0" for k, v in kinds.items()}
    assert inferred == expected and set(kinds) <= names

    width = {port.name: port.width for port in listed}
    values = _parameters(calls)
    assert values["ADDR_WIDTH"] == width["m_axi_araddr"] == width["m_axi_awaddr"]
    assert values["DATA_WIDTH"] == width["m_axi_rdata"] == width["m_axi_wdata"]
    assert values["ID_WIDTH"] == width["m_axi_arid"] == width["m_axi_bid"]
    assert values["MAX_BURST_LENGTH"] == config.max_burst_beats
    assert values["NUM_READ_OUTSTANDING"] == config.read_outstanding
    assert values["NUM_WRITE_OUTSTANDING"] == config.write_outstanding
    ranges = [call[2] for call in calls if call[:2] == ["set_property", "range"]]
    assert ranges == [str(1 << config.addr_width), str(1 << width["s_axil_awaddr"])]

    added = [call[1] for call in calls if call[0] == "ipx::add_register"]
    assert added == [register.name for register in register_map(config)]
    offsets = [call[2] for call in calls if call[:2] == ["set_property", "address_offset"]]
    assert [int(offset, 16) for offset in offsets] == [r.offset for r in register_map(config)]


def _parameters(calls: list[list[str]]) -> dict[str, int]:
    """Values given to parameters of `m_axi`."""
    found = {}
    for before, call in pairwise(calls):
        if before[0] == "ipx::add_bus_parameter" and call[:2] == ["set_property", "value"]:
            found[before[1]] = int(call[2]) if call[2].isdecimal() else 0
    return found


def test_kernel_script(name: str, tmp_path: Path) -> None:
    calls = _run(_content(name)["package_kernel.tcl"], tmp_path, True)
    assert calls[-1][0] == "package_xo"
    options = dict(zip(calls[-1][2::2], calls[-1][3::2], strict=True))
    assert options["-ctrl_protocol"] == "user_managed" and options["-kernel_name"] == KERNEL
    assert options["-kernel_xml"].endswith("/kernel.xml")
    packaged = next(call for call in calls if call[0] == "ipx::package_project")
    assert options["-ip_directory"] == packaged[packaged.index("-root_dir") + 1]
    assert ["set_property", "top", KERNEL, "current_fileset"] in calls
    assert _parameters(calls)["ADDR_WIDTH"] == 64
    clocked = [call[2] for call in calls if call[:2] == ["ipx::associate_bus_interfaces", "-busif"]]
    assert clocked == ["m_axi", "s_axi_control"]


def test_kernel_description(name: str) -> None:
    config, content = CONFIGS[name], _content(name)
    root = ElementTree.fromstring(content["kernel.xml"])
    (kernel,) = root
    assert kernel.attrib["name"] == KERNEL and kernel.attrib["hwControlProtocol"] == "user_managed"
    vendor, library, core, version = kernel.attrib["vlnv"].split(":")
    for text in (f"-vendor {vendor}", f"-library {library}", f"name {core}", f"version {version}"):
        assert text in content["package_kernel.tcl"]
    described = {port.attrib["name"]: port.attrib for port in kernel.find("ports")}
    shell = _shell_ports(content)
    assert set(described) == set(_interfaces(shell))
    width = {port.name: port.width for port in shell}
    master, slave = described["m_axi"], described["s_axi_control"]
    assert (master["mode"], slave["mode"]) == ("master", "slave")
    assert int(master["dataWidth"]) == width["m_axi_rdata"] == config.data_width
    assert int(master["range"], 16) == (1 << width["m_axi_araddr"]) - 1
    assert int(slave["range"], 16) == 1 << width["s_axi_control_awaddr"]
    offsets = {register.name: register.offset for register in register_map(config)}
    (argument,) = kernel.find("args")
    assert int(argument.attrib["offset"], 16) == offsets["RING_BASE_LO"]
    assert argument.attrib["port"] in described


def _shell_ports(content: dict[str, str]) -> list[Port]:
    found = re.findall(
        r"^  (input|output) (?:\[(\d+):0\] )?(\w+),?$", content[f"{KERNEL}.v"], re.MULTILINE
    )
    return [Port(name, direction, int(high or 0) + 1) for direction, high, name in found]


def test_kernel_shell(name: str, tmp_path: Path) -> None:
    """Every port of the top is joined, the directions agree, and Verilator has nothing to say."""
    content = _content(name)
    for file in ("hotline.v", "hotline.vlt", f"{KERNEL}.v"):
        (tmp_path / file).write_text(content[file])
    inner = ports(content["hotline.v"], "hotline")
    shell = {port.name: port for port in _shell_ports(content)}
    assert len(shell) == len(inner) and {"ap_clk", "ap_rst_n", "interrupt"} <= set(shell)
    assert sorted(port.direction for port in inner) == sorted(p.direction for p in shell.values())
    command = ["verilator", "--lint-only", "-Wall", "--top-module", KERNEL, "hotline.vlt"]
    command += [f"{KERNEL}.v", "hotline.v"]
    done = subprocess.run(
        command, cwd=tmp_path, env=tool_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_tclsh_reads_the_scripts(name: str, tmp_path: Path) -> None:
    """Complete in the sense of Tcl, where it is installed as a program."""
    if (tclsh := shutil.which("tclsh")) is None:
        pytest.skip("tclsh is not installed")
    for file in ("package_ip.tcl", "package_kernel.tcl"):
        (tmp_path / file).write_text(_content(name)[file])
        check = f"puts [info complete [read [open {file}]]]"
        done = subprocess.run(
            [tclsh], input=check, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "1"
