"""A small clocked design as a function on arrays: a row in and a row out each cycle.

For designs that are checked with millions of rows and need no agents: the loop over the cycles is
in C++. Whatever reacts to the design belongs into a cocotb bench.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from amaranth import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from harness.build import SIM_FOLDER
from hotline.gen.verilog import to_verilog
from hotline.host.verilator_tool import build_key, cached_build, compile_model

__all__ = ["VectorModel"]

_ARGUMENTS = (
    "-O3",
    "--no-timing",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-style",
    "-CFLAGS",
    "-fPIC",
    "-LDFLAGS",
    "-shared",
)
_MAKE_FLAGS = ("OPT_FAST=-O2", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1")

_SOURCE = """\
#include <cstdint>
#include <memory>
#include "Vvectors.h"

extern "C" void run_vectors(uint64_t rows, const uint32_t* in, uint32_t* out) {{
    VerilatedContext context;
    auto top = std::make_unique<Vvectors>(&context);
    top->rst = 0;
    for (uint64_t row = 0; row < rows; row++) {{
        top->clk = 0;
{drive}
        top->eval();
{sample}
        top->clk = 1;
        top->eval();
    }}
}}
"""

_PORT_BITS = 32


class VectorModel:
    """The Verilated model of a component whose ports are plain values of at most 32 bits.

    Parameters
    ----------
    component : wiring.Component
    name : str
        Name of the top module.

    Raises
    ------
    ValueError
        A port has more bits.
    """

    def __init__(self, component: wiring.Component, name: str) -> None:
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        for path, member, value in component.signature.flatten(component):
            port = "__".join(map(str, path))
            if len(Value.cast(value)) > _PORT_BITS:
                raise ValueError(f"{port} has more than {_PORT_BITS} bits")
            (self._outputs if member.flow is Out else self._inputs).append(port)
        inputs, outputs = len(self._inputs), len(self._outputs)
        drive = [f"top->{port} = in[{inputs} * row + {i}];" for i, port in enumerate(self._inputs)]
        sample = [
            f"out[{outputs} * row + {i}] = top->{port};" for i, port in enumerate(self._outputs)
        ]
        indent = "\n        "
        source = _SOURCE.format(
            drive=indent[1:] + indent.join(drive), sample=indent[1:] + indent.join(sample)
        )
        text = to_verilog(component, name)
        arguments = ["--top-module", name, *_ARGUMENTS, "main.cpp", f"{name}.v"]

        def build(folder: Path) -> None:
            (folder / f"{name}.v").write_text(text)
            (folder / "main.cpp").write_text(source)
            compile_model(
                folder, arguments, prefix="Vvectors", target="vectors.so", flags=_MAKE_FLAGS
            )

        key = build_key(text, source, *arguments, *_MAKE_FLAGS)
        folder = cached_build(SIM_FOLDER, f"{name}-vectors-{key}", build)
        self._run = ctypes.CDLL(str(folder / "vectors.so")).run_vectors

    def run(self, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Outputs in each cycle, while the inputs of that cycle are applied.

        Every call starts afresh, as after power-up; the reset stays low.

        Parameters
        ----------
        **inputs : integers [n]
            Each input, by name.

        Returns
        -------
        dict of str to uint32 [n]
            Each output, by name.
        """
        rows = np.column_stack([inputs.pop(port) for port in self._inputs]).astype(np.uint32)
        assert not inputs, f"there are no inputs {sorted(inputs)}"
        results = np.zeros((len(rows), len(self._outputs)), np.uint32)
        pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (rows, results))
        self._run(ctypes.c_uint64(len(rows)), *pointers)
        return {port: results[:, i] for i, port in enumerate(self._outputs)}
