"""The driver inside a cocotb test, over cocotbext-axi's agents."""

from __future__ import annotations

from harness.build import run_bench
from system_configs import SYSTEM_CONFIGS

from hotline.gen.verilog import to_verilog
from hotline.host.cocotb_backend import peer_verilog
from hotline.rtl.top import Hotline


def test_cocotb_backend() -> None:
    config = SYSTEM_CONFIGS["tiny"]
    design = Hotline(config)
    text = to_verilog(design, "hotline") + peer_verilog(design)
    run_bench(text, "hotline_peer", "cocotb_driver", config=config)
