"""cocotb side of test_simulation_speed.py."""

from __future__ import annotations

import json
import os
from pathlib import Path

import cocotb
from cocotb.task import bridge
from harness.axi_memory import AxiMemory
from harness.bench import Bench, config
from harness.cocotb_backend import HarnessBackend
from speed_traffic import measure

from hotline.golden.memory import Memory
from hotline.host import Device


@cocotb.test
async def runs(dut) -> None:
    bench = Bench(dut, clock="aclk", reset="aresetn", active_low=True, max_cycles=100_000_000)
    memory = Memory()
    AxiMemory(bench, "m_axi_", memory.regions, max_burst_beats=config().max_burst_beats)
    backend = HarnessBackend(bench, memory)
    await bench.start()

    def work() -> dict:
        samples = int(os.environ["HOTLINE_SAMPLES"])
        return measure(Device(backend), lambda: bench.cycle, samples, repeats=3)

    result = await bridge(work)()
    Path(os.environ["HOTLINE_RESULT"]).write_text(json.dumps(result))
