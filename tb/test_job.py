"""The main job on the golden model twice, and how it notices a device that is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hotline.gen.presets import preset
from hotline.host.backends import GoldenBackend
from hotline.host.click_log import ClickLog
from hotline.host.device import CommandError, Device, Samples
from hotline.host.job import JobError, JobOptions, run_job
from hotline.host.report import write_report
from hotline.host.synthetic import synthetic_log

CONFIG = preset("ecp5").replace(sets=256)
OPTIONS = JobOptions(batch=100, row_bytes=32)


def _small_log() -> ClickLog:
    """Few rows, so that some samples are popular; bags of up to three rows."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 4, (400, 3)).astype(np.uint16)
    indices = (rng.random(int(lengths.sum())) ** 4 * 50).astype(np.uint32)
    labels = np.zeros(400, np.float32)
    return ClickLog(
        "bags", ("a", "b", "c"), (50,) * 3, indices, lengths, labels, np.zeros((400, 0))
    )


def test_counts_come_from_the_device() -> None:
    log = _small_log()
    result = run_job(CONFIG, log, OPTIONS, GoldenBackend(CONFIG), GoldenBackend(CONFIG))
    assert result["mismatched_bytes"] == 0
    assert (result["learned_samples"], result["split_samples"]) == (100, 300)
    # The hot table has room for every row, so every tracker is as good as the oracle.
    assert result["popular_share"] == result["popular_share_lfu"] > 0.5
    assert set(result["commands"]) == {"LEARN", "COMMIT", "SPLIT + GATHER", "SCATTER"}
    assert result["commands"]["SCATTER"]["commands"] == 3


def test_a_wrong_byte_is_counted() -> None:
    class Wrong(GoldenBackend):
        """Spoils a byte that no command may touch."""

        def wait_irq(self, max_cycles: int) -> bool:
            done = super().wait_irq(max_cycles)
            self.memory.regions[2][1][77] ^= 1
            return done

    result = run_job(CONFIG, _small_log(), OPTIONS, Wrong(CONFIG), GoldenBackend(CONFIG))
    assert result["mismatched_bytes"] > 0


def test_jobs_that_do_not_fit() -> None:
    def run(log: ClickLog, options: JobOptions, config=CONFIG) -> None:
        run_job(config, log, options, GoldenBackend(config), GoldenBackend(config))

    log = _small_log()
    with pytest.raises(JobError, match="400 samples make 1 of 400"):
        run(log, replace(OPTIONS, batch=400))
    with pytest.raises(JobError, match="row bytes must be a multiple of 4 from 4 to 1024, not 6"):
        run(log, replace(OPTIONS, row_bytes=6))
    with pytest.raises(JobError, match="the log has 26 tables, the device at most 8"):
        run(synthetic_log("K", 300), OPTIONS, preset("tiny"))


def test_report(tmp_path: Path) -> None:
    result = run_job(CONFIG, _small_log(), OPTIONS, GoldenBackend(CONFIG), GoldenBackend(CONFIG))
    result |= {"preset": "x", "configuration": {"policy": "sample_aware"}, "config_hash": "0"}
    result |= {"simulation": {"cycles": 1, "read_latency": 200}}
    page = write_report(result, tmp_path).read_text()
    assert page.count("data:image/png;base64,") == 3
    assert "http" not in page
    assert (tmp_path / "hit_rate.png").stat().st_size > 1000


def test_driver_reports_errors_and_goes_on() -> None:
    device = Device(GoldenBackend(CONFIG))
    device.set_table(0, device.allocate(640).address, 10, 64)
    indices = device.allocate(64)
    samples = Samples.place(np.array([3, 99], np.uint32), 1, None, indices, indices)
    with pytest.raises(CommandError, match="LEARN failed with INDEX_RANGE: row 99 of table 0"):
        device.learn(samples)
    good = Samples.place(np.array([3, 9], np.uint32), 1, None, indices, indices)
    device.learn(good)
    records, _ = device.commit(device.allocate(16 * CONFIG.slots))
    assert sorted(records[:, 2].tolist()) == [3, 9]
    split = device.split(good, device.allocate(Device.list_bytes(2, 2)))
    assert split.popular.tolist() == [0, 1]
