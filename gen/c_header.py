"""C header: registers, command set, and the layouts in memory."""

from __future__ import annotations

from dataclasses import asdict

from hotline.gen.commands import Flag, Opcode, StatusCode
from hotline.gen.config import Config
from hotline.gen.layouts import COMPLETION, DESCRIPTOR, SLOT_RECORD, StructField, struct_size
from hotline.gen.register_map import Register, register_map

__all__ = ["c_header"]


def _define(name: str, value: str, comment: str = "") -> str:
    note = f" /* {comment} */" if comment else ""
    return f"#define HOTLINE_{name} {value}{note}"


def _struct(name: str, what: str, fields: tuple[StructField, ...]) -> list[str]:
    members = [
        f"    uint{bits}_t {field}{f'[{count}]' if count > 1 else ''};"
        for field, bits, count in fields
    ]
    size = struct_size(fields)
    check = f"sizeof(struct hotline_{name}) == {size}"
    return [
        f"/* {what}: {size} bytes, little-endian. */",
        f"struct hotline_{name} {{",
        *members,
        "};",
        f'HOTLINE_STATIC_ASSERT({check}, "layout of hotline_{name}");',
        "",
    ]


def _register(register: Register) -> list[str]:
    notes = [register.access.value, register.description]
    if register.selector:
        notes.append(f"instance: {register.selector}")
    lines = [_define(f"REG_{register.name}", f"0x{register.offset:03x}u", "; ".join(notes))]
    for field in register.fields:
        stem = f"{register.name}_{field.name.upper()}"
        mask = ((1 << field.width) - 1) << field.low
        lines.append(_define(f"{stem}_SHIFT", f"{field.low}u"))
        lines.append(_define(f"{stem}_MASK", f"0x{mask:08x}u", field.description))
    return lines


def c_header(config: Config) -> str:
    """Text of ``hotline.h``; C99 and C++11."""
    lines = [
        "/* Hotline accelerator: registers, commands, memory layouts. Generated; do not edit. */",
        "#ifndef HOTLINE_H",
        "#define HOTLINE_H",
        "",
        "#include <stdint.h>",
        "",
        "#if defined(__cplusplus)",
        "#define HOTLINE_STATIC_ASSERT(condition, text) static_assert(condition, text)",
        "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L",
        "#define HOTLINE_STATIC_ASSERT(condition, text) _Static_assert(condition, text)",
        "#else",
        "#define HOTLINE_STATIC_ASSERT(condition, text) struct hotline_unchecked",
        "#endif",
        "",
        "/* The configuration. */",
        _define("CONFIG_HASH_VALUE", f"0x{config.config_hash:08x}u"),
    ]
    for name, value in sorted(asdict(config).items()):
        text = f'"{value}"' if isinstance(value, str) else str(int(value))
        lines.append(_define(f"CONFIG_{name.upper()}", text))
    lines += ["", "/* Byte offsets of the registers, and their fields. */"]
    for register in register_map(config):
        lines += _register(register)
    for what, prefix, members in (
        ("Opcodes", "OP", Opcode),
        ("Flags of a descriptor", "FLAG", Flag),
        ("Status codes", "STATUS", StatusCode),
    ):
        lines += ["", f"/* {what}. */"]
        lines += [
            # By the mapping, not by iteration: flags of equal value are aliases of each other.
            _define(f"{prefix}_{name}", f"0x{int(member):02x}u")
            for name, member in members.__members__.items()
        ]
    lines.append("")
    lines += _struct("descriptor", "Descriptor, an entry of the ring", DESCRIPTOR)
    lines += _struct("completion", "Completion record", COMPLETION)
    lines += _struct("slot_record", "Record of COMMIT, and input of FILL", SLOT_RECORD)
    lines += ["#endif", ""]
    return "\n".join(lines)
