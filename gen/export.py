"""Everything that ``hotline generate`` writes."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hotline.gen.blocks import TOP, make_block
from hotline.gen.c_header import c_header
from hotline.gen.config import Config
from hotline.gen.netlist import memories, ports
from hotline.gen.register_map import VERSION, Register, register_map
from hotline.gen.system_rdl import system_rdl
from hotline.gen.tool_files import fusesoc_core, lint_waivers
from hotline.gen.vivado import vivado_files

__all__ = ["files", "generate"]

#: Blocks whose registers the host sees.
_WITH_REGISTERS = (TOP, "registers")


def _register(register: Register) -> dict[str, Any]:
    return asdict(register) | {"access": register.access.value}


def _description(config: Config, block: str, verilog: str) -> str:
    content = {
        "block": block,
        "version": ".".join(map(str, VERSION)),
        "configuration": asdict(config),
        "config_hash": f"{config.config_hash:08x}",
        "ports": [asdict(port) for port in ports(verilog, block)],
        "registers": [
            _register(register) for register in register_map(config) if block in _WITH_REGISTERS
        ],
        "memories": [asdict(memory) | {"bits": memory.bits} for memory in memories(verilog)],
        "tools": {name: importlib.metadata.version(name) for name in ("amaranth", "pyosys")},
    }
    return json.dumps(content, indent=2) + "\n"


def files(config: Config, block: str = TOP) -> dict[str, str]:
    """Text by file name, of all files for `block`; depends on nothing but the arguments and the
    versions of the tools.

    Raises
    ------
    ValueError
        There is no such block.
    """
    component = make_block(block, config)
    # Late, because pyosys takes half a second to load, also where it is not needed.
    from hotline.gen.verilog import to_verilog

    verilog = to_verilog(component, block)
    result = {
        f"{block}.v": verilog,
        # Exactly the bytes that CONFIG_HASH is taken of, so no line end.
        "config.json": config.canonical_json(),
        "hotline.json": _description(config, block, verilog),
        f"{block}.core": fusesoc_core(block),
        f"{block}.vlt": lint_waivers(block),
    }
    if block in _WITH_REGISTERS:
        result["hotline.h"] = c_header(config)
        result["hotline.rdl"] = system_rdl(config)
    if block == TOP:
        result |= vivado_files(config, ports(verilog, block))
    return result


def generate(config: Config, block: str, folder: Path) -> list[Path]:
    """Write all files for `block` into `folder`, which is made if need be.

    All or nothing: the files are written beside `folder` and moved when they are complete. Files
    of other names in `folder` stay.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ValueError
        There is no such block.
    OSError
        The folder cannot be written.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    content = files(config, block)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, text in content.items():
            (draft / name).write_text(text, encoding="utf-8", newline="\n")
        if folder.exists():
            for name in content:
                os.replace(draft / name, folder / name)
        else:
            # mkdtemp makes private folders; the result is to be an ordinary one.
            draft.chmod(0o777 & ~_umask())
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [folder / name for name in content]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
