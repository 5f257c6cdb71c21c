"""What a generated Verilog text contains: the ports of its top and its memories."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["MemoryInfo", "Port", "memories", "ports"]

_MODULE = re.compile(r"^module (\\?)(\S+?)(?: )?\(", re.MULTILINE)
_PORT = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?\\?([^\s;]+) ?;", re.MULTILINE)
_MEMORY = re.compile(r"^  reg (?:\[(\d+):0\] )?\\?([^\s;\[]+) ?\[(\d+):0\];", re.MULTILINE)


@dataclass(frozen=True)
class Port:
    """A port of the top module; `direction` is ``input`` or ``output``, `width` in bits."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True)
class MemoryInfo:
    """A memory: `name` with its path, `width` of a word in bits, `depth` in words."""

    name: str
    width: int
    depth: int

    @property
    def bits(self) -> int:
        """Bits in all."""
        return self.width * self.depth


def _modules(verilog: str) -> dict[str, str]:
    starts = list(_MODULE.finditer(verilog))
    ends = [start.start() for start in starts[1:]] + [len(verilog)]
    return {
        start.group(2): verilog[start.start() : end]
        for start, end in zip(starts, ends, strict=True)
    }


def ports(verilog: str, top: str) -> list[Port]:
    """The ports of module `top`, by name."""
    found = [
        Port(name, direction, int(high or 0) + 1)
        for direction, high, name in _PORT.findall(_modules(verilog)[top])
    ]
    return sorted(found, key=lambda port: port.name)


def memories(verilog: str) -> list[MemoryInfo]:
    """All memories, by path. Every instance of a component is a module of its own."""
    found = [
        MemoryInfo(f"{module}.{name}", int(high or 0) + 1, int(last) + 1)
        for module, text in _modules(verilog).items()
        for high, name, last in _MEMORY.findall(text)
    ]
    return sorted(found, key=lambda memory: memory.name)
