"""The AXI memory model under cocotb: it serves a correct master and notices a wrong one."""

from __future__ import annotations

import pytest
from harness.build import run_bench
from stand_in import StandIn

from hotline.gen.presets import preset

#: All benches but the one that needs a fault.
GOOD = [
    "copies",
    "latency_is_that_of_the_specification",
    "errors_and_holes_are_answered",
    "outside",
]


@pytest.mark.parametrize("name", ["tiny", "ecp5"])
def test_serves_a_correct_master(name: str) -> None:
    run_bench(StandIn(preset(name)), "stand_in", "cocotb_axi_memory", testcase=GOOD)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("unaligned", "not aligned to the bus"),
        ("boundary", "crosses a 4 KiB boundary"),
        ("drop", "WVALID fell without a transfer"),
        ("last", "WLAST = 0 at beat 1 of 1"),
    ],
)
def test_notices_a_wrong_master(
    fault: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match="1 of 1 tests failed"):
        run_bench(
            StandIn(preset("ecp5"), fault),
            "stand_in",
            "cocotb_axi_memory",
            testcase="broken_on_purpose",
        )
    assert message in "".join(capfd.readouterr())
