"""The timeline: where things are placed, what hides behind what, and the files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hotline.host.timeline import BUS, DEVICE, GPU, Event, schedule, summary
from hotline.host.timeline_files import chrome_trace, write_picture, write_trace


@dataclass(frozen=True)
class Span:
    step: int
    name: str
    cycles: int = 0
    seconds: float = 0.0
    link_bytes: int = 0


def _step(number: int, scale: int = 1) -> list[Span]:
    """Commands of 10, 30 and 20 us at 100 MHz; work of 15, 25 and 5 us."""
    return [
        Span(number, "SPLIT", cycles=1000 * scale, link_bytes=4000),
        Span(number, "popular", seconds=15e-6),
        Span(number, "GATHER", cycles=3000 * scale, link_bytes=8000),
        Span(number, "nonpopular", seconds=25e-6),
        Span(number, "update", seconds=5e-6),
        Span(number, "SCATTER", cycles=2000 * scale, link_bytes=6000),
    ]


def _places(events: list[Event], lane: str) -> dict[tuple[str, int], tuple[float, float]]:
    """(start, end) in whole microseconds, by name and step."""
    return {
        (event.name, event.step): (round(event.start * 1e6), round(event.end * 1e6))
        for event in events
        if event.lane == lane
    }


def test_look_ahead_order() -> None:
    events = schedule([*_step(0), *_step(1)], clock_mhz=100)
    assert _places(events, DEVICE) == {
        ("SPLIT", 0): (0, 10),
        ("GATHER", 0): (10, 40),
        ("SPLIT", 1): (40, 50),
        ("SCATTER", 0): (70, 90),
        ("GATHER", 1): (90, 120),
        ("SCATTER", 1): (150, 170),
    }
    assert _places(events, GPU) == {
        ("popular", 0): (10, 25),
        ("nonpopular", 0): (40, 65),
        ("update", 0): (65, 70),
        ("popular", 1): (70, 85),
        ("nonpopular", 1): (120, 145),
        ("update", 1): (145, 150),
    }
    assert not _places(events, BUS)


def test_what_is_hidden() -> None:
    result = summary(schedule([*_step(0), *_step(1)], clock_mhz=100))
    assert result["seconds"] == pytest.approx(170e-6)
    assert result["serial_seconds"] == pytest.approx(2 * 105e-6)
    assert result["gpu_busy_seconds"] == pytest.approx(90e-6)
    commands = result["commands"]
    # SPLIT 1 behind nonpopular 0; GATHER 0 behind popular 0; SCATTER 0 behind popular 1.
    assert commands["SPLIT"]["behind"] == {"nonpopular": pytest.approx(10e-6)}
    assert commands["GATHER"]["behind"] == {"popular": pytest.approx(15e-6)}
    assert commands["SCATTER"]["behind"] == {"popular": pytest.approx(15e-6)}
    for command, hidden, total in (("SPLIT", 10, 20), ("GATHER", 15, 60), ("SCATTER", 15, 40)):
        assert commands[command]["hidden_seconds"] == pytest.approx(hidden * 1e-6)
        assert commands[command]["exposed_seconds"] == pytest.approx((total - hidden) * 1e-6)
    assert commands["GATHER"]["count"] == 2 and commands["GATHER"]["bytes"] == 16000


def test_learning_stands_between_steps() -> None:
    spans = [
        *_step(0),
        Span(1, "LEARN", cycles=500),
        Span(1, "COMMIT", cycles=100),
        Span(1, "BACK", cycles=200),
        Span(1, "FILL", cycles=200),
        *_step(1),
    ]
    places = _places(schedule(spans, clock_mhz=100), DEVICE)
    # Not ahead: what is learned decides how step 1 is split.
    assert places["SCATTER", 0] == (70, 90)
    assert places["LEARN", 1] == (90, 95)
    assert places["FILL", 1] == (98, 100)
    assert places["SPLIT", 1] == (100, 110)


def test_a_slow_bus_and_given_times() -> None:
    events = schedule(
        _step(0), clock_mhz=100, bytes_per_second=100e6, gpu_seconds={"nonpopular": 1e-3}
    )
    places = _places(events, DEVICE)
    # 4000 bytes take 40 us on the bus, the device needs but 10.
    assert places["SPLIT", 0] == _places(events, BUS)["SPLIT", 0] == (0, 40)
    assert _places(events, GPU)["nonpopular", 0] == (120, 1120)
    fast = schedule(_step(0), clock_mhz=100, bytes_per_second=8e9)
    assert _places(fast, DEVICE) == _places(schedule(_step(0), clock_mhz=100), DEVICE)
    assert _places(fast, BUS)["GATHER", 0] == (10, 11)


def test_steps_without_cold_rows() -> None:
    spans = [Span(0, "SPLIT", cycles=100), Span(0, "popular", seconds=1e-6)]
    events = schedule(spans, clock_mhz=100)
    assert _places(events, GPU) == {("popular", 0): (1, 2)}
    assert summary([])["seconds"] == 0


def test_many_steps_are_consistent(seed: int) -> None:
    """Nothing overlaps on a lane, and hidden time is that of a brute-force count."""
    rng = np.random.default_rng(seed)
    spans = [
        Span(span.step, span.name, span.cycles and int(rng.integers(1, 5000)), span.seconds)
        for step in range(50)
        for span in _step(step)
    ]
    events = schedule(spans, clock_mhz=100)
    assert len(events) == len(spans)
    for lane in (DEVICE, GPU):
        mine = [event for event in events if event.lane == lane]
        assert all(a.end <= b.start + 1e-12 for a, b in pairwise(mine))
    work = [event for event in events if event.lane == GPU]
    for name, entry in summary(events)["commands"].items():
        hidden = sum(
            max(0.0, min(event.end, other.end) - max(event.start, other.start))
            for event in events
            if event.lane == DEVICE and event.name == name
            for other in work
        )
        assert entry["hidden_seconds"] == pytest.approx(hidden)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clock_mhz": 0}, "the clock must be above 0 MHz, not 0"),
        ({"clock_mhz": 1, "bytes_per_second": 0}, "more than 0 bytes a second, not 0"),
        ({"clock_mhz": 1, "gpu_seconds": {"popular": -1}}, "of popular must be at least 0 s"),
    ],
)
def test_times_that_make_no_sense(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule(_step(0), **options)


def test_work_that_waits_for_itself() -> None:
    """SPLIT of step 2 comes after SCATTER of step 0, which comes after all work on step 0."""
    spans = [Span(2, "popular", seconds=1), *_step(0), *_step(1), *_step(2)]
    with pytest.raises(ValueError, match="SCATTER of step 0 and popular of step 2 wait for each"):
        schedule(spans, clock_mhz=1)


def test_trace(tmp_path: Path) -> None:
    events = schedule([*_step(0), *_step(1)], clock_mhz=100, bytes_per_second=8e9)
    file = tmp_path / "new" / "trace.json"
    write_trace(events, file, "rank 0")
    trace = json.loads(file.read_text())
    assert trace == json.loads(json.dumps(chrome_trace(events, "rank 0")))
    entries = trace["traceEvents"]
    names = {entry["args"]["name"] for entry in entries if entry["name"].endswith("_name")}
    assert names == {"rank 0", GPU, DEVICE, BUS}
    complete = [entry for entry in entries if entry["ph"] == "X"]
    assert len(complete) == len(events) == 18
    threads = {entry["tid"] for entry in entries if entry["name"] == "thread_name"}
    assert {entry["tid"] for entry in complete} == threads
    split = next(e for e in complete if (e["name"], e["cat"]) == ("SPLIT", DEVICE))
    assert (split["ts"], split["dur"]) == (0, pytest.approx(10))
    assert split["args"] == {"step": 0, "cycles": 1000, "bytes": 4000}
    assert trace["otherData"]["commands"]["GATHER"]["count"] == 2
    assert not list(file.parent.glob(".*"))


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_picture(tmp_path: Path, suffix: str) -> None:
    events = schedule([span for n in range(6) for span in _step(n)], clock_mhz=100)
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write_picture(events, first)
    write_picture(events, second, first_step=1, steps=4)
    assert first.stat().st_size > 5000
    assert first.read_bytes() == second.read_bytes() or suffix == ".svg"
    write_picture([], first)
    with pytest.raises(ValueError, match="a picture must end in .png or .svg, not 'a.jpg'"):
        write_picture(events, tmp_path / "a.jpg")
