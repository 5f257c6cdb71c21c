"""The bench: what it takes for the least, what it says limits, and its texts beside its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from system_configs import SYSTEM_CONFIGS

from hotline.gen.presets import preset
from hotline.golden.hash import KeyHash
from hotline.golden.hot_table import HotTable
from hotline.host.bench import BenchOptions, measure, read_clock, to_json
from hotline.host.bench_journal import BenchJournal
from hotline.host.bench_page import read_results, write_page
from hotline.host.bench_peers import SPLITTERS, compare
from hotline.host.bench_sweeps import Task
from hotline.host.bench_tables import missed
from hotline.host.bench_traffic import LogTraffic, WorstTraffic
from hotline.host.click_log import ClickLog
from hotline.host.synthetic import synthetic_log

ECP5 = preset("ecp5")
SMALL = SYSTEM_CONFIGS["ecp5_small"]


# ---- a run that was stopped ---------------------------------------------------------------------


def test_journal(tmp_path: Path) -> None:
    """Finds what was measured with the same key, up to a line that was cut off."""
    file, tasks = tmp_path / "new" / "a.json", [Task("lines", str(n), list) for n in range(3)]
    journal = BenchJournal(file, {"seed": 1})
    assert journal.count == 0
    assert not file.parent.exists()
    journal.add(tasks[0], [{"cycles": 5}])
    journal.add(tasks[1], [])
    with journal.path.open("a") as text:
        text.write('{"lines: 2": [{"cyc')
    again = BenchJournal(file, {"seed": 1})
    assert again.count == 2
    assert [again.find(task) for task in tasks] == [[{"cycles": 5}], [], None]
    other = BenchJournal(file, {"seed": 2})
    assert other.count == 0
    assert other.find(tasks[0]) is None
    other.add(tasks[2], [])
    assert BenchJournal(file, {"seed": 1}).count == 0
    other.remove()
    assert not list(file.parent.iterdir())


# ---- traffic ------------------------------------------------------------------------------------


@cache
def _log() -> ClickLog:
    return synthetic_log("K", 20_000)


@pytest.mark.parametrize("share", [1.0, 0.75, 0.25, 0.0])
def test_batches_have_the_share_that_was_asked_for(share: float) -> None:
    traffic = LogTraffic(ECP5, _log(), 1)
    batch = traffic.batch("x", 400, share)
    model = HotTable(ECP5)
    model.load(traffic.hot_keys)
    keys = batch.keys(ECP5)
    assert keys.shape == (batch.samples, 26) == (400, 26)
    hit, _ = model.lookup(keys.ravel())
    assert hit.reshape(400, 26).all(axis=1).sum() == 400 * share
    # Draws depend on their purpose only.
    assert np.array_equal(batch.indices, traffic.batch("x", 400, share).indices)
    assert not np.array_equal(batch.indices, traffic.batch("y", 400, share).indices)


def test_a_small_log_keeps_samples_that_are_not_popular() -> None:
    log = _log()
    traffic = LogTraffic(ECP5.replace(sets=1 << 18), log, 1)
    assert 0.6 < traffic.popular.mean() < 0.8
    assert len(traffic.hot_keys) < len(np.unique(log.keys(28)))


def test_worst_traffic() -> None:
    config = SMALL.replace(lanes=16, banks=16, sets=1024, row_bits=16, data_width=512)
    worst = WorstTraffic(config, 1)
    model = HotTable(config)
    model.load(worst.hot_keys)
    hashes = KeyHash(config)
    hot = worst.hot_one_bank(300).keys(config).ravel()
    assert model.lookup(hot)[0].all()
    # One bank of the hot table, and one of the 32 of the store of seen keys.
    assert set((hashes.z(hot) & 31).tolist()) == {0}
    for one_bank in (False, True):
        cold = worst.cold(60, one_bank=one_bank).keys(config).ravel()
        assert not model.lookup(cold)[0].any()
        assert len(np.unique(cold)) == 60 * 26
        assert (len(np.unique(hashes.bank(cold))) == 1) == one_bank
    for kind in (True, False):
        equal = worst.equal(50, hot=kind)
        keys = equal.keys(config)
        # Two whole groups a bag, about as many keys as 50 samples of 26 tables.
        assert keys.shape == (40, 32) and len(np.unique(keys)) == 1
        assert model.lookup(keys.ravel())[0].all() == kind


@pytest.mark.parametrize(
    ("config", "log", "message"),
    [
        (preset("tiny"), synthetic_log("K", 10), "has 26 tables, the device at most 8"),
        (
            ECP5.replace(row_bits=16),
            synthetic_log("K", 10),
            "has 10131227 rows, the device takes at most 65536",
        ),
        (
            ECP5,
            ClickLog("bags", ("a",), (9,), np.zeros(3, np.uint32), np.array([[1], [2]], np.uint16),
                     np.zeros(2), np.zeros((2, 0))),
            "the bench needs one index for each table; bags has bags",
        ),
    ],
)  # fmt: skip
def test_logs_that_do_not_fit(config: Any, log: ClickLog, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LogTraffic(config, log, 1)


# ---- CPU ----------------------------------------------------------------------------------------


def test_splitters_agree() -> None:
    traffic = LogTraffic(ECP5, _log(), 1)
    rows = np.array(traffic.rows)
    bases = (np.cumsum(rows) - rows).astype(np.uint32)
    indices = _log().indices.reshape(-1, 26)
    hot = np.zeros(rows.sum(), np.bool_)
    hot[(indices + bases).ravel()[traffic.hot]] = True
    for name, split in SPLITTERS.items():
        first, rest, first_rows, rest_rows = split(indices, bases, hot)
        assert np.array_equal(first, np.flatnonzero(traffic.popular)), name
        assert np.array_equal(rest, np.flatnonzero(~traffic.popular)), name
        assert np.array_equal(first_rows, indices[first]), name
        assert np.array_equal(rest_rows, indices[rest]), name


def test_ratios() -> None:
    peers = [
        {"peer": "a", "command": "SPLIT", "traffic": "x", "unit": "samples", "per_second": 5e6},
        {"peer": "b", "command": "SPLIT", "traffic": "y", "unit": "samples", "per_second": 5e6},
    ]
    result = {
        "lines": [{"command": "SPLIT", "traffic": "x", "per_cycle": 0.1}],
        "peers": peers,
        "clocks": {"place and route": 80.0, "paper": 350.0},
    }
    measured, other = compare(result)
    assert measured["device"] == pytest.approx({"place and route": 8e6, "paper": 35e6})
    assert measured["ratio"] == pytest.approx({"place and route": 1.6, "paper": 7.0})
    assert other["device"] == other["ratio"] == {}


# ---- simulated ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    """All lines but the worst case, and one point of a sweep, on a small device."""
    only = ("lines: split", "lines: gather, rows", "lines: gather, 64", "lines: scatter",
            "lines: fill", "lines: back", "lines: commit", "lines: learn", "latency: gather, 400",
            "row_bytes: scatter, 128")  # fmt: skip
    options = BenchOptions(("synthetic:K",), 20_000, only=only, quick=True, clock_mhz=80)
    return measure(SMALL, "ecp5_small", options)


def test_beats_are_those_of_the_bus(measured: dict[str, Any]) -> None:
    """The fewest beats, which are computed, are what the device moves; and 8 of its descriptor."""
    lines = [line for line in measured["lines"] if line["traffic"] != WorstTraffic.name]
    assert len(lines) > 25
    for line in lines:
        seen, name = line["seen"], line["command"]
        # Each GPU's copy of a row is read anew.
        again = int(name.endswith("GPUs")) * (SMALL.gpus - 1) * line["items"] * 8
        assert seen["read_beats"] - 8 == line["read_beats"] + again, name
        assert seen["write_beats"] - 8 == line["write_beats"], name
        assert 0 < line["of_bound"] <= 1, name
        assert line["cycles"] == seen["cycles"], name


def test_measured_lines(measured: dict[str, Any]) -> None:
    assert not measured["outstanding"] and not measured["peers"]
    assert measured["config_hash"] == f"{SMALL.config_hash:08x}"
    by_name = {line["command"]: line for line in measured["lines"]}
    assert by_name["SPLIT, 100 % popular"]["items"] == 512
    assert by_name["SCATTER ADD, 64-byte rows"]["read_beats"] == 17 * 1000
    assert by_name["GATHER, 64-byte rows"]["limited_by"] == "credits"
    assert by_name["COMMIT, nothing changed"]["read_beats"] == 0
    # Quick figures are not those of the contract.
    assert missed(measured["lines"]) == ""
    (point,) = measured["latency"]
    assert point["latency"] == 400 and point["limited_by"] == "credits"
    # 16 reads of 8 beats at a time; the beats of the key list come on top.
    assert point["efficiency"] == pytest.approx(16 * 9 / 408, rel=0.1)
    sizes = [(point["command"], point["row_bytes"]) for point in measured["row_bytes"]]
    assert sizes == [("SCATTER", 128), ("SCATTER, unaligned", 128)]


def test_json_and_page_of_a_measurement(measured: dict[str, Any], tmp_path: Path) -> None:
    text = to_json(measured)
    assert json.loads(text) == measured
    assert max(text.count(f'"command": "{line["command"]}"') for line in measured["lines"]) >= 1
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "small.json").write_text(text)
    written = write_page(tmp_path / "figures", tmp_path / "results.md")
    assert [path.name for path in written] == [
        "results.md", "small-latency.png", "small-row_bytes.png",
    ]  # fmt: skip
    shown = (tmp_path / "results.md").read_text()
    assert "figures/small-latency.png" in shown and "there are no aims" in shown


# ---- wrong input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bench", "--clock", 80, "--clock-json", "x"), "--clock and --clock-json exclude"),
        (("bench", "--clock-json", "missing.json"), "there is no file 'missing.json'"),
        (("bench", "--samples", "few"), "--samples must be a positive number or 'all', not 'few'"),
        (("results", "missing", "-o", "x.md"), "there are no JSON files in 'missing'"),
    ],
)
def test_wrong_options(arguments: tuple[object, ...], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hotline.gen.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_words_that_choose_nothing() -> None:
    options = BenchOptions(("synthetic:K",), 100, only=("gather", "nonsense"))
    with pytest.raises(ValueError, match="--only 'nonsense' chooses nothing; sections are lines"):
        measure(ECP5, "x", options)


def test_wrong_files(tmp_path: Path) -> None:
    file = tmp_path / "clock.json"
    file.write_text('{"fmax_mhz_median": 81.5}')
    assert read_clock(file) == 81.5
    for text in ("{}", "[]", "no JSON"):
        file.write_text(text)
        with pytest.raises(ValueError, match="is not what `hotline synth --json` writes"):
            read_clock(file)
        with pytest.raises(ValueError, match="is not what `hotline bench --json` writes"):
            read_results(tmp_path)
    file.write_text('{"lines": [], "clocks": {}}')
    with pytest.raises(ValueError, match="must be below the folder of the page"):
        write_page(tmp_path, tmp_path / "pages" / "results.md")
