"""How fast the in-process simulation is, beside the same run under cocotb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.build import ROOT, run_bench
from speed_traffic import measure

from hotline.gen.presets import preset
from hotline.host import Device
from hotline.rtl.top import Hotline

#: Where the figures stay.
RESULT = ROOT / "build" / "bench" / "simulation_speed.json"


def _rate(result: dict) -> float:
    return result["cycles"] / result["cpu_seconds"]


@pytest.mark.slow
def test_speed(tmp_path: Path) -> None:
    """At least 20 times cocotb, and 200 000 cycles a second of processor time for `ecp5`."""
    config = preset("ecp5")
    file = tmp_path / "cocotb.json"
    run_bench(
        Hotline(config),
        "hotline",
        "cocotb_speed",
        config=config,
        env={"HOTLINE_RESULT": str(file), "HOTLINE_SAMPLES": "8"},
        timeout=1800,
    )
    results = {"cocotb": json.loads(file.read_text())}
    for samples in (8, 1024):
        with Device.open("verilator", config) as device:
            backend = device.backend
            results[f"verilator_{samples}"] = measure(device, lambda b=backend: b.cycle, samples)
    for result in results.values():
        result["cycles_per_cpu_second"] = _rate(result)
    results["ratio"] = _rate(results["verilator_1024"]) / _rate(results["cocotb"])
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"preset": "ecp5", **results}, indent=2) + "\n")
    print(RESULT.read_text())
    # The same run: registers are reached with another delay, the commands take the same time.
    same = results["cocotb"]["cycles"] / results["verilator_8"]["cycles"]
    assert 0.98 < same < 1.02
    assert results["ratio"] >= 20
    assert _rate(results["verilator_1024"]) >= 200_000
