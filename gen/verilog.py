"""Verilog from an Amaranth component, reproducible to the byte."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring
from pyosys import libyosys

from hotline.rtl.shared_module import ModuleLibrary

__all__ = ["RTLIL_PASSES", "to_verilog"]

#: Passes of yosys between Amaranth's RTLIL and Verilog.
RTLIL_PASSES = (
    "proc -nomux -norom",
    "delete t:$meminit t:$meminit_v2",
    # Wires of no width (a counter up to 0) would come out as [-1:0], which has two bits.
    "delete w:* s:0 %i",
    "memory_collect",
)

#: Attributes of the front end that mean nothing to a reader of the Verilog, or vary.
_INTERNAL = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")

#: The signal with which yosys makes each ``always @*`` run once; its name counts up per process.
_TRIGGER = re.compile(r"\\\$auto\$verilog_backend\S+ ")

#: Other names that yosys makes up; they count up per process too.
_MADE_UP = re.compile(r"\\\$auto\$\S+ ")

#: A block that only assigns a constant; yosys forgets the trigger, so it would never run.
_CONSTANT = re.compile(r"^  always @\*\n    (\S+ ?(?:\[[\d:]+\])? = \d+'\w+;)$", re.MULTILINE)


def to_verilog(component: wiring.Component, name: str) -> str:
    """Portable Verilog-2001 text of `component`, its top module called `name`.

    Memories are written without initial values: no block relies on them, and a table of 2 Mi
    entries would not be readable with them.
    """
    strip = " ".join(f"-remove {attribute}" for attribute in _INTERNAL)
    passes = [*RTLIL_PASSES, f"attrmap {strip}", f"attrmap -modattr {strip}"]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "design.v")
        sources: list[Path] = []
        library = ModuleLibrary()
        waiting = {name: component}
        done: set[str] = set()
        while waiting:
            module, part = waiting.popitem()
            done.add(module)
            sources.append(Path(folder, f"{len(sources)}.il"))
            sources[-1].write_text(
                rtlil.convert(part, name=module, platform=library, emit_src=False)
            )
            waiting |= {key: part for key, part in library.modules.items() if key not in done}
        design = libyosys.Design()
        reads = [f"read_rtlil {source}" for source in sources]
        for command in (*reads, *passes, f"write_verilog -norename {result}"):
            # Not run_pass: that one prints every command.
            libyosys.Pass.call(design, f"tee -q {command}")
        text = result.read_text()
    # The banner names the compiler and the build of yosys; hotline.json records the versions.
    return _mend(text.partition("*/\n")[2].lstrip("\n"))


def _mend(text: str) -> str:
    """Give fixed names to what yosys made up, and add the trigger where it is missing."""
    text = _TRIGGER.sub(r"\\$trigger ", text)
    names: dict[str, str] = {}
    text = _MADE_UP.sub(
        lambda match: names.setdefault(match[0], f"\\$yosys${len(names) + 1} "), text
    )
    text = _CONSTANT.sub(r"  always @* begin\n    if (\\$trigger ) begin end\n    \1\n  end", text)
    modules = text.split("endmodule\n")
    for number, module in enumerate(modules):
        if "if (\\$trigger )" in module and "reg \\$trigger " not in module:
            head, body = module.split(");\n", 1)
            modules[number] = f"{head});\n  reg \\$trigger  = 0;\n{body}"
    return "endmodule\n".join(modules)
