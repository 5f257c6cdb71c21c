"""Files that let other tools take up the generated Verilog."""

from __future__ import annotations

from hotline.gen.register_map import VERSION

__all__ = ["fusesoc_core", "lint_waivers"]

#: Warnings of ``verilator --lint-only -Wall`` that generated code cannot avoid, and why.
_WAIVERS = {
    "CASEINCOMPLETE": "what no case names keeps the value assigned before the case",
    "CASEOVERLAP": "a chain of conditions becomes a casez in which the first match wins",
    "CMPCONST": "a parameter at the end of its range makes a comparison constant",
    "DECLFILENAME": "one file holds all modules",
    "PROCASSINIT": "registers have a reset and, for FPGAs, the same value at power-on",
    "SYMRSVDWORD": "a port has the name of a C function",
    "UNSIGNED": "a parameter at the end of its range makes a comparison with zero constant",
    "UNUSEDSIGNAL": "fields of structures are named even where nobody looks at them",
    "VARHIDDEN": "a signal may have the name of an instance elsewhere",
    "WIDTHEXPAND": "leading zeros of constants are not written",
    "WIDTHTRUNC": "a logical not of a vector stands for a comparison with zero",
}


def lint_waivers(block: str) -> str:
    """Verilator configuration file for the Verilog of `block`."""
    lines = ["`verilator_config", f"// Waivers for {block}.v, which is generated code."]
    for warning, reason in _WAIVERS.items():
        lines += [f"// {reason}", f'lint_off -rule {warning} -file "*{block}.v"']
    return "\n".join([*lines, ""])


def fusesoc_core(block: str) -> str:
    """FuseSoC core description, CAPI2."""
    name = "hotline" if block == "hotline" else f"hotline_{block}"
    version = ".".join(map(str, VERSION))
    return f"""CAPI=2:
name: "hotline:accelerator:{name}:{version}"
description: "Hotline accelerator for recommendation-model training: {block}"

filesets:
  rtl:
    files:
      - {block}.v: {{file_type: verilogSource}}
  lint:
    files:
      - {block}.vlt: {{file_type: vlt}}

targets:
  default: &default
    filesets: [rtl]
    toplevel: {block}
  lint:
    <<: *default
    description: "Verilator lint"
    default_tool: verilator
    filesets: [lint, rtl]
    tools:
      verilator:
        mode: lint-only
        verilator_options: ["-Wall"]
"""
