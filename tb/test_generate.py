"""What ``hotline generate`` writes: reproducible, and read by every tool."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from systemrdl import RDLCompiler

from hotline.gen import export
from hotline.gen.blocks import BLOCKS, make_block
from hotline.gen.config import Config
from hotline.gen.layouts import COMPLETION, DESCRIPTOR, SLOT_RECORD, StructField, struct_size
from hotline.gen.netlist import memories, ports
from hotline.gen.presets import PRESETS, preset
from hotline.gen.register_map import register_map
from hotline.golden.descriptor import Completion, Descriptor
from hotline.host.verilator_tool import tool_environment

HOTLINE = [sys.executable, "-m", "hotline.gen.cli"]

#: Lengths and ids that are not powers of two, and a bus of several words.
ODD = preset("ecp5").replace(max_tables=27, gpus=3, ways=2, data_width=128, id_width=1)


def _hotline(*arguments: object, seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [*HOTLINE, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@cache
def _content(block: str, name: str) -> dict[str, str]:
    return export.files(ODD if name == "odd" else preset(name), block)


@pytest.fixture(params=["tiny", "ecp5", "odd"])
def top(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Folder with the files of the whole accelerator."""
    for name, text in _content("hotline", request.param).items():
        (tmp_path / name).write_text(text)
    return tmp_path


# ---- reproducible -------------------------------------------------------------------------------


def test_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    for seed in ("1", "271828"):
        result = _hotline("generate", "--preset", "tiny", "-o", tmp_path / seed, seed=seed)
        assert result.returncode == 0, result.stderr
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == [
        "config.json", "hotline.core", "hotline.h", "hotline.json", "hotline.rdl", "hotline.v",
        "hotline.vlt", "hotline_kernel.v", "kernel.xml", "package_ip.tcl", "package_kernel.tcl",
    ]  # fmt: skip
    for name in names:
        one, other = ((tmp_path / seed / name).read_bytes() for seed in ("1", "271828"))
        assert one == other, name
        assert str(tmp_path).encode() not in one


def test_config_json_is_what_is_hashed(top: Path) -> None:
    text = (top / "config.json").read_text()
    config = Config.from_dict(json.loads(text))
    assert text == config.canonical_json()
    described = json.loads((top / "hotline.json").read_text())
    assert described["configuration"] == asdict(config)
    assert described["config_hash"] == f"{config.config_hash:08x}"


# ---- read by the tools --------------------------------------------------------------------------


def _lint(folder: Path, block: str) -> None:
    command = ["verilator", "--lint-only", "-Wall", "--top-module", block, f"{block}.vlt"]
    result = subprocess.run(
        [*command, f"{block}.v"],
        cwd=folder,
        env=tool_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[:4000]
    assert "%Warning" not in result.stderr


def test_verilator_lint_of_the_top(top: Path) -> None:
    _lint(top, "hotline")


@pytest.mark.parametrize("block", [name for name in BLOCKS if name != "hotline"])
@pytest.mark.parametrize("name", ["tiny", "odd"])
def test_verilator_lint_of_blocks(block: str, name: str, tmp_path: Path) -> None:
    for file, text in _content(block, name).items():
        (tmp_path / file).write_text(text)
    _lint(tmp_path, block)


def test_slang(top: Path) -> None:
    pyslang = pytest.importorskip("pyslang", reason="slang comes with the extra 'test'")
    tree = pyslang.syntax.SyntaxTree.fromFile(str(top / "hotline.v"))
    compilation = pyslang.ast.Compilation()
    compilation.addSyntaxTree(tree)
    errors = [item for item in compilation.getAllDiagnostics() if item.isError()]
    assert not errors, pyslang.DiagnosticEngine.reportAll(compilation.sourceManager, errors)


def test_yosys(top: Path) -> None:
    from pyosys import libyosys

    design = libyosys.Design()
    for command in (f"read_verilog {top}/hotline.v", "hierarchy -check -top hotline", "proc"):
        libyosys.Pass.call(design, f"tee -q {command}")
    libyosys.Pass.call(design, f"tee -q -o {top}/check.txt check -assert")


def test_icarus(top: Path) -> None:
    if shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed; it does not come from PyPI")
    command = ["iverilog", "-g2005", "-t", "null", "-s", "hotline", str(top / "hotline.v")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_no_zero_widths_and_no_machine_paths(top: Path) -> None:
    text = (top / "hotline.v").read_text()
    assert "[-1:0]" not in text
    assert str(Path(__file__).parents[1]) not in text
    assert "auto$" not in text


# ---- the documents agree with the hardware ------------------------------------------------------


def test_ports_are_those_of_the_specification(top: Path) -> None:
    described = json.loads((top / "hotline.json").read_text())
    config = described["configuration"]
    widths = {port["name"]: (port["direction"], port["width"]) for port in described["ports"]}
    address, width, ident = config["addr_width"], config["data_width"], config["id_width"]
    channel = {"id": ident, "addr": address, "len": 8, "size": 3, "burst": 2, "cache": 4, "prot": 3}
    expected = {"aclk": ("input", 1), "aresetn": ("input", 1), "irq": ("output", 1)}

    def add(prefix: str, sender: str, **fields: int) -> None:
        taker = "input" if sender == "output" else "output"
        expected[f"{prefix}valid"], expected[f"{prefix}ready"] = (sender, 1), (taker, 1)
        expected.update({prefix + name: (sender, bits) for name, bits in fields.items()})

    add("m_axi_ar", "output", **channel)
    add("m_axi_aw", "output", **channel)
    add("m_axi_w", "output", data=width, strb=width // 8, last=1)
    add("m_axi_r", "input", data=width, id=ident, resp=2, last=1)
    add("m_axi_b", "input", id=ident, resp=2)
    add("s_axil_aw", "input", addr=12, prot=3)
    add("s_axil_ar", "input", addr=12, prot=3)
    add("s_axil_w", "input", data=32, strb=4)
    add("s_axil_b", "output", resp=2)
    add("s_axil_r", "output", data=32, resp=2)
    assert widths == expected


def test_memories_hold_the_hot_table() -> None:
    described = json.loads(_content("hotline", "ecp5")["hotline.json"])
    config = preset("ecp5")
    table = [memory for memory in described["memories"] if ".hot_table.bank_" in memory["name"]]
    entry = config.tag_bits + config.counter_bits + 1  # and the mark `changed`
    assert sum(memory["bits"] for memory in table) == config.slots * entry
    for memory in described["memories"]:
        assert memory["bits"] == memory["width"] * memory["depth"]


def test_netlist_reader() -> None:
    text = (
        "module \\top.sub (a, \\b[0] );\n  input a;\n  wire a;\n  reg [6:0] store [25:0];\n"
        "endmodule\nmodule top(clk, q);\n  input clk;\n  output [3:0] q;\n  reg bit_ [1:0];\n"
        "endmodule\n"
    )
    found = [(memory.name, memory.width, memory.depth) for memory in memories(text)]
    assert found == [("top.bit_", 1, 2), ("top.sub.store", 7, 26)]
    found_ports = [(port.name, port.direction, port.width) for port in ports(text, "top")]
    assert found_ports == [("clk", "input", 1), ("q", "output", 4)]


@pytest.mark.parametrize("name", PRESETS)
def test_system_rdl(name: str, tmp_path: Path) -> None:
    config = preset(name)
    file = tmp_path / "hotline.rdl"
    file.write_text(export.system_rdl(config))
    compiler = RDLCompiler()
    compiler.compile_file(str(file))
    nodes = {node.inst_name: node for node in compiler.elaborate().top.registers()}
    registers = {register.name: register for register in register_map(config)}
    assert nodes.keys() == registers.keys()
    for register_name, register in registers.items():
        node = nodes[register_name]
        assert node.address_offset == register.offset
        assert node.has_sw_readable == register.readable
        assert node.has_sw_writable == register.writable
        fields = {field.inst_name: (field.low, field.high) for field in node.fields()}
        whole = {"value": (0, 31)}
        assert fields == ({f.name: (f.low, f.high) for f in register.fields} or whole)
        reset = sum((field.get_property("reset") or 0) << field.low for field in node.fields())
        assert reset == register.reset


def test_c_header(tmp_path: Path) -> None:
    """Compiles as C and C++, and its numbers are those of the register map."""
    config = preset("ecp5")
    (tmp_path / "hotline.h").write_text(export.c_header(config))
    registers = register_map(config)
    checks = [f"HOTLINE_REG_{register.name} == {register.offset}u" for register in registers]
    checks.append(f"HOTLINE_CONFIG_HASH_VALUE == 0x{config.config_hash:x}u")
    checks.append("HOTLINE_CAPS_GPUS_MASK == 0xf0000000u && HOTLINE_CAPS_GPUS_SHIFT == 28")
    checks.append("HOTLINE_OP_FILL == 9 && HOTLINE_STATUS_LENGTHS == 8")
    checks.append("HOTLINE_FLAG_COMMIT_ALL == 2 && HOTLINE_FLAG_SCATTER_ADD == 1")
    checks.append("sizeof(struct hotline_descriptor) == 64")
    checks.append("sizeof(struct hotline_completion) == 64")
    body = "".join(f'HOTLINE_STATIC_ASSERT({check}, "");\n' for check in checks)
    for suffix, standard in (("cpp", "c++11"), ("c", "c11"), ("c", "c99")):
        source = tmp_path / f"use.{suffix}"
        source.write_text(f'#include "hotline.h"\n{"" if standard == "c99" else body}')
        language = ["-x", "c++" if suffix == "cpp" else "c", f"-std={standard}"]
        command = ["g++", *language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


def _pack(fields: tuple[StructField, ...], values: dict[str, int]) -> bytes:
    return b"".join(
        (values.get(name, 0) if count == 1 else 0).to_bytes(bits // 8 * count, "little")
        for name, bits, count in fields
    )


def test_layouts_agree_with_the_golden_model() -> None:
    assert struct_size(DESCRIPTOR) == struct_size(COMPLETION) == 64
    assert struct_size(SLOT_RECORD) == 16
    rng = np.random.default_rng(7)
    values = {name: int(rng.integers(1 << bits - 1)) for name, bits, _ in DESCRIPTOR}
    assert Descriptor(**values).pack().tobytes() == _pack(DESCRIPTOR, values)
    head = {"status": 3, "opcode": 8, "tag": 0x1234}
    names = ("popular", "nonpopular", "rows", "hits", "misses", "replacements")
    words = (1, 2, 3, 4, 5, 6)
    record = Completion(**head, words=words, cycles=7 << 32, info=9 << 40)
    packed = {**head, **dict(zip(names, words, strict=True)), "cycles": 7 << 32, "info": 9 << 40}
    assert record.pack().tobytes() == _pack(COMPLETION, {**packed, "done": 1})


def test_fusesoc_core(top: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    text = (top / "hotline.core").read_text()
    assert text.startswith("CAPI=2:\n")
    core = yaml.safe_load(text.partition("\n")[2])
    assert core["name"].split(":")[2:] == ["hotline", "0.1.0"]
    assert core["targets"]["default"]["toplevel"] == "hotline"
    for fileset in core["filesets"].values():
        for entry in fileset["files"]:
            for name in entry:
                assert (top / name).is_file()


# ---- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "huge"], "preset must be one of tiny, ecp5, datacenter, paper, not 'huge'"),
        (["-p", "tiny", "-b", "foo"], f"block must be one of {', '.join(BLOCKS)}, not 'foo'"),
        ([], "either --preset or --config is needed"),
        (["-p", "tiny", "-c", "x.toml"], "--preset and --config exclude each other"),
        (["-c", "none.toml"], "there is no file 'none.toml'"),
    ],
)
def test_mistakes_end_in_one_sentence(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = _hotline("generate", *arguments, "-o", tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr == f"hotline: {message}\n"
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def test_output_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("mine")
    result = _hotline("generate", "-p", "tiny", "-b", "list_writer", "-o", file)
    assert result.returncode == 2
    assert result.stderr == f"hotline: {file} is not a folder\n"
    assert file.read_text() == "mine"


def test_existing_folder_keeps_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "config.json").write_text("old")
    export.generate(preset("tiny"), "list_writer", tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "config.json").read_text() == preset("tiny").canonical_json()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json", "hotline.json", "list_writer.core", "list_writer.v", "list_writer.vlt",
        "mine.txt",
    ]  # fmt: skip


def test_nothing_is_left_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", no_space)
    monkeypatch.setattr(export, "files", lambda *_: {"config.json": "{}"})
    with pytest.raises(OSError, match="no space left"):
        export.generate(preset("tiny"), "list_writer", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_presets_are_shown() -> None:
    result = _hotline("presets")
    assert result.returncode == 0
    for config in PRESETS.values():
        assert f"{config.config_hash:08x}" in result.stdout


def test_every_block_is_a_component() -> None:
    for name in BLOCKS:
        assert make_block(name, preset("tiny")).signature.members
