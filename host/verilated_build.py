"""Builds, and keeps, the shared library of a Verilated design."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from hotline.gen.config import Config
from hotline.host.cache import cache_folder
from hotline.host.verilator_tool import (
    build_key,
    cached_build,
    compile_model,
)

__all__ = ["build_library", "design_verilog"]

_SOURCES = Path(__file__).parent / "cpp"

_ARGUMENTS = (
    "--top-module",
    "hotline",
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
    "--output-split",
    "20000",
    "-LDFLAGS",
    "-shared",
)
_MAKE_FLAGS = ("OPT_FAST=-O2", "OPT_SLOW=-O0", "OPT_GLOBAL=-O2")


def design_verilog(config: Config, cache: str | Path | None = None) -> str:
    """Verilog of the top for `config`, kept under a hash of the generator's sources."""
    import hotline.gen
    import hotline.rtl

    files = sorted(
        file
        for package in (hotline.gen, hotline.rtl)
        for folder in package.__path__
        for file in Path(folder).glob("*.py")
    )
    versions = [importlib.metadata.version(name) for name in ("amaranth", "pyosys")]
    key = build_key(config.canonical_json(), *versions, *(file.read_text() for file in files))

    def build(folder: Path) -> None:
        from hotline.gen.verilog import to_verilog
        from hotline.rtl.top import Hotline

        (folder / "hotline.v").write_text(to_verilog(Hotline(config), "hotline"))

    folder = cached_build(cache_folder(cache), f"verilog-{key}", build)
    return (folder / "hotline.v").read_text()


def build_library(
    config: Config,
    *,
    verilog: str | None = None,
    waves: bool = False,
    cache: str | Path | None = None,
) -> Path:
    """Shared library of the design and the C++ of this package.

    Parameters
    ----------
    config : Config
    verilog : str, optional
        Text of a module ``hotline``; default: that of :func:`design_verilog`.
    waves : bool
        With VCD tracing.
    cache : path, optional
        Folder of the builds; default: :func:`~hotline.host.cache.cache_folder`.

    Raises
    ------
    RuntimeError
        A tool is missing or fails.
    """
    text = design_verilog(config, cache) if verilog is None else verilog
    sources = sorted(_SOURCES.iterdir())
    flags = f"-fPIC -std=c++17 -DHOTLINE_WAVES={int(waves)} -I{_SOURCES}"
    arguments = [*_ARGUMENTS, "-CFLAGS", flags, *(["--trace"] if waves else [])]
    arguments += [str(_SOURCES / "backend.cpp"), "hotline.v"]

    def build(folder: Path) -> None:
        (folder / "hotline.v").write_text(text)
        jobs = min(4, os.cpu_count() or 1)
        compile_model(
            folder,
            arguments,
            prefix="Vhotline",
            target="libhotline.so",
            flags=_MAKE_FLAGS,
            jobs=jobs,
        )
        for leftover in (*folder.glob("*.o"), *folder.glob("*.gch"), *folder.glob("*.a")):
            leftover.unlink()

    key = build_key(text, *arguments, *_MAKE_FLAGS, *(source.read_text() for source in sources))
    return cached_build(cache_folder(cache), f"library-{key}", build) / "libhotline.so"
