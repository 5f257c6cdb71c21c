"""Builds, and keeps, the shared library of a Verilated design."""

from __future__ import annotations

import importlib.metadata
import os
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from hotline.gen.config import Config
from hotline.host.cache import cache_folder
from hotline.host.clocked_top import CLOCKED_TOP, clocked_top
from hotline.host.verilator_tool import (
    build_key,
    cached_build,
    compile_model,
    compiles,
)

__all__ = [
    "WAVE_FORMATS",
    "build_library",
    "design_verilog",
    "kept_verilog",
    "shared_library",
    "wave_file",
]

#: What is needed for waves: Verilator's option, the value of HOTLINE_WAVES, headers, libraries.
WAVE_FORMATS: dict[str, tuple[str, int, tuple[str, ...], str]] = {
    "vcd": ("--trace", 1, (), ""),
    "fst": ("--trace-fst", 2, ("zlib.h", "lz4.h"), "-lz -llz4"),
}

_SOURCES = Path(__file__).parent / "cpp"

_ARGUMENTS = (
    "--top-module",
    CLOCKED_TOP,
    "-O3",
    "--x-assign",
    "fast",
    # Costs nothing after start, and lets a run begin with random registers and memories.
    "--x-initial",
    "unique",
    "--no-timing",
    "--no-assert",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-style",
    # What a model of a cell says about a mode that it does not have.
    "-Werror-USERFATAL",
    "--output-split",
    "20000",
)
_MAKE_FLAGS = ("OPT_FAST=-O2", "OPT_SLOW=-O0", "OPT_GLOBAL=-O2")
#: For a design that takes longer to compile than to run, such as a netlist.
_QUICK_MAKE_FLAGS = ("OPT_FAST=-O0", "OPT_SLOW=-O0", "OPT_GLOBAL=-O2")


#: Head of the module of which all banks of a wide hot table are instances.
_BANK = re.compile(r"^module hot_table_bank\s*\([^;]*\);", re.MULTILINE)


def wave_file(path: str | Path) -> Path:
    """The waveform file to write: `path`, or a VCD file beside it where FST is not possible.

    Raises
    ------
    ValueError
        The name ends in no known format.
    """
    path = Path(path)
    name = path.suffix[1:]
    if name not in WAVE_FORMATS:
        raise ValueError(
            f"the name of a waveform file must end in .{' or .'.join(WAVE_FORMATS)}, not "
            f"{path.name!r}"
        )
    headers = WAVE_FORMATS[name][2]
    if compiles("".join(f"#include <{header}>\n" for header in headers)):
        return path
    other = path.with_suffix(".vcd")
    warnings.warn(
        f"{name.upper()} waves need the headers {' and '.join(headers)}, which g++ does not find; "
        f"writing {other} instead",
        stacklevel=2,
    )
    return other


def kept_verilog(
    name: str,
    what: Sequence[str],
    packages: Sequence[ModuleType],
    make: Callable[[], str],
    cache: str | Path | None = None,
) -> str:
    """Verilog that `make` gives, kept under a hash of what it depends on.

    Parameters
    ----------
    name : str
        What to call it in the cache.
    what : sequence of str
        What it is made from.
    packages : sequence of module
        Packages whose sources make it.
    make : callable
        Called unless the text is there already.
    cache : path, optional
        Folder of the builds; default: :func:`~hotline.host.cache.cache_folder`.
    """
    files = sorted(
        file
        for package in packages
        for folder in package.__path__
        for file in Path(folder).glob("*.py")
    )
    versions = [importlib.metadata.version(tool) for tool in ("amaranth", "pyosys")]
    key = build_key(*what, *versions, *(file.read_text() for file in files))
    file = f"{name}.v"

    def build(folder: Path) -> None:
        (folder / file).write_text(make())

    folder = cached_build(cache_folder(cache), f"{name}-verilog-{key}", build)
    return (folder / file).read_text()


def design_verilog(config: Config, cache: str | Path | None = None) -> str:
    """Verilog of the top for `config`, kept under a hash of the generator's sources."""
    import hotline.gen
    import hotline.rtl

    def make() -> str:
        from hotline.gen.verilog import to_verilog
        from hotline.rtl.top import Hotline

        return to_verilog(Hotline(config), "hotline")

    packages = (hotline.gen, hotline.rtl)
    return kept_verilog("hotline", [config.canonical_json()], packages, make, cache)


def shared_library(
    name: str,
    verilog: str,
    arguments: Sequence[str],
    sources: Sequence[Path],
    flags: tuple[str, ...],
    root: Path,
) -> Path:
    """Shared library of a Verilated design and C++ around it, kept under a hash of all of it.

    Parameters
    ----------
    name : str
        The library is ``lib{name}.so``, the class ``V{name}``, the design ``{name}.v``.
    verilog : str
        The design.
    arguments : sequence of str
        For Verilator; they name the design and the C++ to compile.
    sources : sequence of Path
        The C++, with what it includes.
    flags : tuple of str
        For make.
    root : Path
        Folder of the builds.

    Raises
    ------
    RuntimeError
        A tool is missing or fails.
    """
    target = f"lib{name}.so"

    def build(folder: Path) -> None:
        (folder / f"{name}.v").write_text(verilog)
        jobs = min(4, os.cpu_count() or 1)
        compile_model(
            folder, list(arguments), prefix=f"V{name}", target=target, flags=flags, jobs=jobs
        )
        for leftover in (*folder.glob("*.o"), *folder.glob("*.gch"), *folder.glob("*.a")):
            leftover.unlink()

    key = build_key(verilog, *arguments, *flags, *(source.read_text() for source in sources))
    return cached_build(root, f"{name}-library-{key}", build) / target


def build_library(
    config: Config,
    *,
    verilog: str | None = None,
    waves: str | None = None,
    cache: str | Path | None = None,
    optimise: bool = True,
) -> Path:
    """Shared library of the design and the C++ of this package.

    Parameters
    ----------
    config : Config
    verilog : str, optional
        Text of a module ``hotline``; default: that of :func:`design_verilog`.
    waves : str, optional
        With tracing of this format, one of :data:`WAVE_FORMATS`.
    cache : path, optional
        Folder of the builds; default: :func:`~hotline.host.cache.cache_folder`.
    optimise : bool
        False: compile in a third of the time, run at a third of the speed.

    Raises
    ------
    RuntimeError
        A tool is missing or fails.
    """
    text = design_verilog(config, cache) if verilog is None else verilog
    # A module that is not inlined is compiled once, not once for each bank.
    text = _BANK.sub(r"\g<0> /*verilator no_inline_module*/", text) + clocked_top(config)
    sources = [_SOURCES / "axi_memory.hpp", _SOURCES / "backend.cpp"]
    option, number, _, libraries = WAVE_FORMATS[waves] if waves else ("--no-trace", 0, (), "")
    flags = f"-fPIC -std=c++17 -DHOTLINE_WAVES={number} -I{_SOURCES}"
    arguments = [*_ARGUMENTS, "-CFLAGS", flags, "-LDFLAGS", f"-shared {libraries}".strip()]
    arguments += [option, str(_SOURCES / "backend.cpp"), "hotline.v"]
    make_flags = _MAKE_FLAGS if optimise else _QUICK_MAKE_FLAGS
    return shared_library("hotline", text, arguments, sources, make_flags, cache_folder(cache))
