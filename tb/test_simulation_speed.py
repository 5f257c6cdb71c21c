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


#: Samples of the run that both do, and of a longer one.
SHORT, LONG = 64, 1024


@pytest.mark.slow
def test_speed(tmp_path: Path) -> None:
    """At least 20 times cocotb. How fast that is depends on the machine, so it is only noted."""
    config = preset("ecp5")
    file = tmp_path / "cocotb.json"
    run_bench(
        Hotline(config),
        "hotline",
        "cocotb_speed",
        config=config,
        env={"HOTLINE_RESULT": str(file), "HOTLINE_SAMPLES": str(SHORT)},
        timeout=1800,
    )
    results = {"cocotb": json.loads(file.read_text())}
    for name, samples, repeats in (("verilator", SHORT, 10), ("verilator_long", LONG, 5)):
        with Device.open("verilator", config) as device:
            backend = device.backend
            results[name] = measure(device, lambda b=backend: b.cycle, samples, repeats)
    ratio = results["verilator"]["cycles_per_second"] / results["cocotb"]["cycles_per_second"]
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"preset": "ecp5", "ratio": ratio, **results}, indent=2) + "\n")
    print(RESULT.read_text())
    # The same run: registers are reached with another delay, the commands take the same time.
    assert 0.98 < results["cocotb"]["cycles"] / results["verilator"]["cycles"] < 1.02
    assert ratio >= 20
