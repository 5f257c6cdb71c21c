"""A wrapper around the top that makes its simulation fast."""

from __future__ import annotations

from hotline.gen.config import Config

__all__ = ["CLOCKED_TOP", "clocked_top"]

#: Name of the wrapper's module.
CLOCKED_TOP = "hotline_clocked"


def clocked_top(config: Config) -> str:
    """Verilog of a module around `hotline` with the same ports and a register before each input.

    A simulator evaluates logic that hangs on an input whenever inputs are set, and again when the
    registers around it change. Behind registers it does so once a cycle. Whoever drives this module
    sets the inputs of the next cycle before its rising edge, and sees the outputs after it.

    Parameters
    ----------
    config : Config
        Of the top.
    """
    from amaranth import Shape
    from amaranth.lib.wiring import In

    from hotline.rtl.top import top_ports

    ports, registers, binding = [], [], []
    for name, member in top_ports(config).items():
        bits = Shape.cast(member.shape).width
        wide = f"[{bits - 1}:0] " if bits > 1 else ""
        is_input = member.flow is In
        ports.append(f"{'input' if is_input else 'output'} wire {wide}{name}")
        if is_input and name != "aclk":
            registers.append(f"reg {wide}{name}_q = 0; always @(posedge aclk) {name}_q <= {name};")
            binding.append(f".{name}({name}_q)")
        else:
            binding.append(f".{name}({name})")
    return (
        f"module {CLOCKED_TOP}({', '.join(ports)});\n"
        + "".join(f"  {line}\n" for line in registers)
        + f"  hotline inner({', '.join(binding)});\nendmodule\n"
    )
