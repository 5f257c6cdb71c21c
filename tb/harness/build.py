"""From an Amaranth component to a finished cocotb run under Verilator.

``run_bench(component, name, test_module)`` is all a pytest function needs. Builds are cached in
``build/sim``. Environment variables: ``HOTLINE_WAVES=1`` writes ``dump.vcd`` and keeps the run's
folder, ``HOTLINE_SEED=N`` or ``=random`` changes the seed, which is 1.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import cocotb_tools.config
import find_libpython
from amaranth.lib import wiring
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

from hotline.gen.config import Config
from hotline.gen.verilog import to_verilog
from hotline.host.verilator_tool import (
    build_key,
    cached_build,
    compile_model,
)

__all__ = ["SIM_FOLDER", "build_bench", "default_seed", "run_bench", "waves_wanted"]

ROOT = Path(__file__).resolve().parents[2]
SIM_FOLDER = ROOT / "build" / "sim"

#: The benches are bound by Python, so short compile times are worth more than fast models.
_MAKE_FLAGS = ("OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1")


def waves_wanted() -> bool:
    """Whether the user asked for waveforms (``HOTLINE_WAVES=1``)."""
    return os.environ.get("HOTLINE_WAVES", "0") not in ("", "0")


class _PrebuiltVerilator(Verilator):
    """cocotb's runner for a binary that :func:`build_bench` has made, with a time limit."""

    def __init__(self, executable: Path, timeout: int) -> None:
        super().__init__()
        self._executable = executable
        self._timeout = timeout

    def _test_command(self) -> list[list[str]]:
        limit = ["timeout", str(self._timeout)] if shutil.which("timeout") else []
        trace = ["--trace"] if self.waves else []
        return [[*limit, str(self._executable), *trace, *self.test_args, *self.plusargs]]


def _arguments(name: str, more: Sequence[str], waves: bool) -> list[str]:
    libraries = cocotb_tools.config.libs_dir
    return [
        "--top-module",
        name,
        "--vpi",
        "--timescale",
        "1ns/1ps",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
        "-O3",
        "-LDFLAGS",
        f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
        *(["--trace"] if waves else []),
        *more,
        str(cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"),
        f"{name}.v",
    ]


def build_bench(
    component: wiring.Component | str,
    name: str,
    *,
    arguments: Sequence[str] = (),
    internals: bool = False,
) -> Path:
    """Simulation binary of `component` (or of Verilog text) with top module `name`.

    Parameters
    ----------
    component : Component or str
        What to simulate; Verilog text is taken as it is.
    name : str
        Name of the top module.
    arguments : sequence of str
        More arguments for Verilator, e.g. ``["--coverage-line"]``.
    internals : bool
        Make inner signals visible to cocotb, not only the ports; slows big designs.

    Returns
    -------
    Path
        The executable.
    """
    text = component if isinstance(component, str) else to_verilog(component, name)
    visible = ["--public-flat-rw"] if internals else ["--public-depth", "1"]
    command = _arguments(name, [*visible, *arguments], waves_wanted())

    def build(folder: Path) -> None:
        (folder / f"{name}.v").write_text(text)
        compile_model(folder, command, prefix="Vtop", target="simulation", flags=_MAKE_FLAGS)

    key = build_key(text, *command, *_MAKE_FLAGS)
    return cached_build(SIM_FOLDER, f"{name}-{key}", build) / "simulation"


def _filter(testcase: str | Sequence[str] | None) -> str | None:
    """Regular expression of the wanted tests; a parametrised one means all its variants."""
    if testcase is None:
        return None
    names = [testcase] if isinstance(testcase, str) else list(testcase)
    return rf"\.({'|'.join(map(re.escape, names))})(/.*)?$"


def default_seed() -> int:
    """``HOTLINE_SEED``: a number, or ``random``; else 1."""
    wanted = os.environ.get("HOTLINE_SEED") or "1"
    return random.SystemRandom().getrandbits(31) if wanted == "random" else int(wanted)


def run_bench(
    component: wiring.Component | str,
    name: str,
    test_module: str,
    *,
    config: Config | None = None,
    testcase: str | Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    seed: int | None = None,
    timeout: int = 900,
    arguments: Sequence[str] = (),
    plusargs: Sequence[str] = (),
    internals: bool = False,
) -> None:
    """Simulate `component` under the cocotb tests of `test_module`; fail if any of them fails.

    Parameters
    ----------
    component, name, arguments, internals
        As for :func:`build_bench`.
    test_module : str
        Importable name of the module with the ``@cocotb.test`` functions, e.g. ``"cocotb_dedup"``.
    config : Config, optional
        Reaches the bench as ``harness.bench.config()``. Default: ``component.config``.
    testcase : str or sequence of str, optional
        Only these tests.
    env : mapping, optional
        More environment variables for the simulation.
    seed : int, optional
        Seed of all randomness. Default: ``HOTLINE_SEED``, which may be ``random``; else 1. It is
        printed.
    timeout : int
        Seconds until the simulation is killed.
    plusargs : sequence of str
        E.g. ``["+verilator+rand+reset+2"]``, together with ``arguments=["--x-initial", "unique"]``.

    Raises
    ------
    AssertionError
        A test failed, none ran, or the simulation died; names the seed.
    """
    if seed is None:
        seed = default_seed()
    if config is None:
        config = getattr(component, "config", None)
    executable = build_bench(component, name, arguments=arguments, internals=internals)
    runs = SIM_FOLDER / "runs"
    runs.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=runs))
    print(f"{name}: seed {seed}, repeat with HOTLINE_SEED={seed}; folder {folder.name}")
    variables = {"LIBPYTHON_LOC": find_libpython.find_libpython() or "", **(env or {})}
    if config is not None:
        variables["HOTLINE_CONFIG"] = config.canonical_json()
    results = folder / "results.xml"
    # cocotb's runner ends the process on a failed test; what failed is judged below.
    with contextlib.suppress(SystemExit):
        _PrebuiltVerilator(executable, timeout).test(
            test_module=test_module,
            hdl_toplevel=name,
            hdl_toplevel_lang="verilog",
            test_filter=_filter(testcase),
            seed=seed,
            plusargs=list(plusargs),
            extra_env=variables,
            build_dir=executable.parent,
            test_dir=folder,
            results_xml=str(results),
            waves=waves_wanted(),
        )
    try:
        tests, failed = get_results(results)
    except RuntimeError:
        raise AssertionError(f"{name}: the simulation died or timed out (seed {seed})") from None
    if failed or not tests:
        raise AssertionError(f"{name}: {failed} of {tests} tests failed (seed {seed})")
    if not waves_wanted():
        shutil.rmtree(folder, ignore_errors=True)
