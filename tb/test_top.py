"""The top under cocotb: on the bus model of this project, and on cocotbext-axi's RAM."""

from __future__ import annotations

import pytest
from harness.build import run_bench
from system_configs import SYSTEM_CONFIGS

from hotline.gen.verilog import to_verilog
from hotline.host.cocotb_backend import peer_verilog
from hotline.rtl.top import Hotline

CONFIGS = ["tiny", "ecp5_small", "wide_aware"]


@pytest.mark.parametrize("name", CONFIGS)
def test_bus_model(name: str) -> None:
    config = SYSTEM_CONFIGS[name]
    run_bench(
        Hotline(config),
        "hotline",
        "cocotb_top",
        config=config,
        testcase=[
            "commands_on_a_rough_bus",
            "record_states_its_cycles",
            "reset_in_mid_traffic",
        ],
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_independent_peer(name: str) -> None:
    config = SYSTEM_CONFIGS[name]
    design = Hotline(config)
    run_bench(
        to_verilog(design, "hotline") + peer_verilog(design),
        "hotline_peer",
        "cocotb_top",
        config=config,
        testcase="commands_with_an_independent_peer",
    )
