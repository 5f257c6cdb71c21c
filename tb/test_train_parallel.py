"""Two ranks against one process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

from torch import distributed
from training import FailingBackend, write_criteo

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.golden.descriptor import Descriptor, Opcode
from hotline.host.backends import BACKENDS, GoldenBackend
from hotline.host.device import Device
from hotline.host.train_options import TrainOptions
from hotline.host.train_parallel import run_ranks
from hotline.host.trainer import Trainer
from hotline.host.training_loop import LoopOptions, run_loop
from hotline.host.training_setup import Setup, open_training_log

torch.set_num_threads(1)

CONFIG = preset("ecp5").replace(sets=64, dedup_entries=64)


def _setup(folder: Path, world: int) -> Setup:
    file = folder / "log.tsv"
    if not file.exists():
        write_criteo(file, 330)
    return Setup(
        config=CONFIG, name="small", source=f"criteo:{file}", backend="golden", world=world
    )


def _options(**changes: object) -> TrainOptions:
    small = {"batch": 33, "dim": 4, "bottom": (8,), "top": (8,), "learn_share": 0.4}
    return TrainOptions(**{**small, "optimizer": "adagrad", "lr": 0.02, **changes})  # type: ignore


def _trainer(folder: Path, options: TrainOptions) -> Trainer:
    log = open_training_log(_setup(folder, 1), options)
    return Trainer(Device(GoldenBackend(CONFIG)), log, options)


def _one_process(folder: Path, **changes: object) -> dict[str, object]:
    return run_loop(_trainer(folder, _options(**changes)), LoopOptions())


def _two_ranks(folder: Path, loop: LoopOptions | None = None, **changes: object) -> dict:
    # Forked, they have what this process has compiled.
    loop = loop or LoopOptions()
    return run_ranks(_setup(folder, 2), _options(**changes), loop, start_method="fork")


def test_two_ranks_have_the_bits_of_one(tmp_path: Path) -> None:
    expected = _one_process(tmp_path)
    result = _two_ranks(tmp_path, LoopOptions(check=True))
    assert result["digest"] == expected["digest"]
    assert result["within_limits"]
    first, second = result["ranks"]
    assert result["device"]["samples"] == first["samples"] + second["samples"] == 330
    # Both have had something to own, to bring back, and to fill.
    for account in (first, second):
        assert min(account["gathered"], account["rows_back"], account["rows_filled"]) > 0


@pytest.mark.parametrize(("optimizer", "dtype"), [("sgd", "float32"), ("adagrad", "float64")])
def test_sums_of_ranks(tmp_path: Path, optimizer: str, dtype: str) -> None:
    result = _two_ranks(
        tmp_path, LoopOptions(check=True), optimizer=optimizer, dtype=dtype, reduce="sum"
    )
    assert result["within_limits"]
    assert result["max_relative_parameter_error"] > 0


def test_three_ranks_and_batches_of_two(tmp_path: Path) -> None:
    options = _options(batch=2, forget="clear")
    setup = _setup(tmp_path, 3)
    loop = LoopOptions(stop_after=20)
    result = run_ranks(setup, options, loop, start_method="fork")
    trainer = _trainer(tmp_path, options)
    assert run_loop(trainer, loop)["digest"] == result["digest"]


def test_resumed_ranks(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    expected = _one_process(tmp_path, epochs=2)
    _two_ranks(tmp_path, LoopOptions(checkpoint=file, stop_after=7), epochs=2)
    result = _two_ranks(tmp_path, LoopOptions(checkpoint=file, resume=True), epochs=2)
    assert result["digest"] == expected["digest"]
    assert result["device"]["samples"] == 2 * 330


@pytest.mark.parametrize(("name", "turn"), [("SPLIT", 4), ("SCATTER", 3), ("FILL", 1)])
def test_a_device_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, turn: int
) -> None:
    file = tmp_path / "checkpoint"
    expected = _one_process(tmp_path)

    def spoil(backend: FailingBackend, descriptor: Descriptor) -> None:
        backend.memory.add_error(0x1_3000, 1 << 35, read=False)

    def fails(config: Config) -> FailingBackend:
        chosen = (lambda d: d.opcode == Opcode[name]) if distributed.get_rank() else lambda d: False
        return FailingBackend(config, chosen, turn, spoil)

    with monkeypatch.context() as patch:
        patch.setitem(BACKENDS, "golden", fails)
        with pytest.raises(RuntimeError, match=f"rank 1: training stopped .* {name} failed with"):
            _two_ranks(tmp_path, LoopOptions(checkpoint=file, every=1000))
    result = _two_ranks(tmp_path, LoopOptions(checkpoint=file, resume=True))
    assert result["digest"] == expected["digest"]


def test_a_rank_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(config: Config) -> GoldenBackend:
        if distributed.get_rank():
            os._exit(7)
        return GoldenBackend(config)

    monkeypatch.setitem(BACKENDS, "golden", dies)
    with pytest.raises(RuntimeError, match="the process of rank 1 ended with code 7"):
        _two_ranks(tmp_path)
