"""SystemRDL 2.0 description of the registers."""

from __future__ import annotations

from hotline.gen.config import Config
from hotline.gen.register_map import Access, Field, Register, register_map

__all__ = ["system_rdl"]


def _properties(register: Register, field: Field) -> list[str]:
    software = {Access.RO: "r", Access.RW: "rw", Access.W1C: "rw", Access.WO: "w"}[register.access]
    hardware = "w" if register.access is Access.RO else "rw" if register.live else "r"
    reset = register.reset >> field.low & ((1 << field.width) - 1)
    properties = [f'desc = "{field.description}"', f"sw = {software}", f"hw = {hardware}"]
    if register.access is Access.W1C:
        properties.append("onwrite = woclr")
    if register.access is not Access.WO:
        properties.append(f"reset = {field.width}'h{reset:x}")
    return properties


def _register(register: Register) -> list[str]:
    notes = [register.description]
    if register.selector:
        notes.append(f"shows the instance that {register.selector} selects")
    if register.locked:
        notes.append("locked while STATUS.busy")
    whole = (Field(name="value", low=0, width=32, description=register.description),)
    lines = ["    reg {", f'        desc = "{"; ".join(notes)}";']
    for field in register.fields or whole:
        properties = " ".join(f"{item};" for item in _properties(register, field))
        lines.append(f"        field {{ {properties} }} \\{field.name}[{field.high}:{field.low}];")
    lines.append(f"    }} {register.name} @ 0x{register.offset:03X};")
    return lines


def system_rdl(config: Config) -> str:
    """Text of ``hotline.rdl``: one address map with one instance of each selected register."""
    lines = [
        "// Hotline accelerator, configuration " + f"{config.config_hash:08x}. Generated.",
        "addrmap hotline {",
        '    name = "Hotline registers";',
        "    default regwidth = 32;",
        "    default accesswidth = 32;",
        "    addressing = regalign;",
    ]
    for register in register_map(config):
        lines += _register(register)
    lines += ["};", ""]
    return "\n".join(lines)
