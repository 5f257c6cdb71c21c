"""The LiteX wrapper: a SoC is built, and the accelerator in it splits over the SoC's bus."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from harness.build import run_bench
from system_configs import SYSTEM_CONFIGS

from hotline.gen.config import Config

pytest.importorskip("litex", reason="LiteX (the extra 'litex') is not installed")

from litex_soc import soc_verilog

CONFIG = SYSTEM_CONFIGS["tiny"].replace(sets=16)


@pytest.mark.parametrize("bus", ["wishbone", pytest.param("axi", marks=pytest.mark.slow)])
def test_split_over_the_bus_of_a_soc(bus: str, tmp_path: Path) -> None:
    run_bench(soc_verilog(CONFIG, tmp_path, bus), "soc", "cocotb_litex", config=CONFIG)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CONFIG.replace(data_width=64), "data_width must be the 32 bits of the SoC's bus, not 64"),
        (CONFIG.replace(addr_width=36), "addr_width must be at most the 32 bits .*, not 36"),
    ],
)
def test_what_does_not_fit_the_bus(config: Config, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        soc_verilog(config, tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_litex() -> None:
    code = "import sys; sys.modules['litex'] = None; import hotline.fpga.litex"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode and "install the extra 'litex'" in done.stderr.splitlines()[-1]
