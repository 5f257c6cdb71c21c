"""``hotline train`` as users call it, and the same bytes on the RTL as on its model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

from training import bag_log, make_trainer, one_hot_log, write_criteo

from hotline.gen.cli import main
from hotline.gen.presets import preset
from hotline.host.backends import RtlBackend
from hotline.host.device import Device
from hotline.host.dlrm import dense_inputs
from hotline.host.train_options import TrainOptions
from hotline.host.trainer import Trainer

torch.set_num_threads(1)

SMALL = ["--backend", "golden", "--entries", "256", "--batch", "40", "--dim", "4"]
SMALL += ["--bottom", "8", "--top", "8", "--samples", "400"]


def _hotline(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Exit code of ``hotline train`` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["hotline", "train", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


@pytest.mark.parametrize(("make_log", "tables"), [(one_hot_log, 3), (bag_log, 3)])
def test_rtl_and_model_have_the_same_bytes(make_log, tables: int) -> None:
    config, log = preset("tiny"), make_log(160)
    model = make_trainer(log, config, optimizer="adagrad", forget="age")
    options = TrainOptions(**(model.options.as_dict() | {"bottom": (8,), "top": (8,)}))
    with Device(RtlBackend(config)) as device:
        rtl = Trainer(device, log, options)
        while model.position < model.total:
            model.step()
            rtl.step()
            assert rtl.memory_digest() == model.memory_digest()
        assert rtl.digest() == model.digest()
        assert all(rtl.account.cycles.values())
    assert log.num_tables == tables


def test_files_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_criteo(tmp_path / "log.tsv", 400)
    result, folder = tmp_path / "new" / "result.json", tmp_path / "plots"
    arguments = ["--data", f"criteo:{data}", *SMALL, "--check", "--digests", "--seed", 7]
    arguments += ["--timeline", tmp_path / "trace.json", "--bus", 4]
    arguments += ["--gpu-times", "popular=0.001,update=1e-4"]
    assert _hotline(monkeypatch, *arguments, "--json", result, "--plots", folder) == 0
    values = json.loads(result.read_text())
    assert values["max_relative_loss_error"] <= 1e-5
    assert values["max_relative_parameter_error"] <= 1e-5
    assert values["parameter_comparisons"] == values["steps"] + 1 == 11
    assert len(values["losses"]) == len(values["memory_digests"]) == 10
    # The model predicts before it trains, so the loss of an epoch is its log-loss.
    assert values["log_loss"] == pytest.approx(np.mean(values["losses"]), rel=1e-5)
    assert values["dense_features"] == 13
    timeline = values["timeline"]
    assert timeline["commands"]["SPLIT"]["count"] == 10
    assert 0.0011 * 10 < timeline["seconds"] < timeline["serial_seconds"]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    popular = [event for event in events if event["name"] == "popular"]
    assert {round(event["dur"]) for event in popular} == {1000}
    assert (tmp_path / "trace.png").stat().st_size > 1000
    pictures = sorted(path.name for path in folder.iterdir())
    assert pictures == ["links.png", "loss.png", "popular.png"]
    printed = capsys.readouterr().out
    assert "seed 7" in printed
    assert "within the limits" in printed.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--optimizer", "adam"], "optimizer must be one of sgd, adagrad, rowwise-adagrad, not"),
        (["--dtype", "float16"], "dtype must be one of float32, float64, not 'float16'"),
        (["--backend", "gpu"], "backend must be one of golden, verilator, not 'gpu'"),
        (["--entries", "100"], "hot entries must be a power of two times the 4 ways, not 100"),
        (["--lr", "0"], "the learning rate must be above 0 and finite, not 0.0"),
        (["--batch", "0"], "batch must be at least 1, not 0"),
        (["--epochs", "-1"], "epochs must be at least 1, not -1"),
        (["--world", "0"], "world must be at least 1, not 0"),
        (["--relearn", "10"], "relearn must be below the 10 mini-batches of an epoch, not 10"),
        (["--learn-share", "0"], "learn share must be above 0 and at most 1, not 0.0"),
        (["--forget", "all"], "forget must be one of nothing, age, clear, not 'all'"),
        (["--top", "8-x"], "--top must be positive numbers with - between them"),
        (["--resume"], "to resume, the file of the checkpoint must be given too"),
        (["--resume", "--checkpoint", "no.npz"], "there is no checkpoint 'no.npz'"),
        (["--timeline", "trace.txt"], "the timeline must be a .json file, not 'trace.txt'"),
        (["--timeline", "t.json", "--clock", "0"], "the clock must be above 0 and finite, not 0.0"),
        (["--timeline", "t.json", "--gpu-times", "all=1"], "of popular, nonpopular, gradients"),
        (["--timeline", "t.json", "--gpu-times", "1"], "GPU times must look like popular=0.001"),
        (["--stop-after", "0"], "stop after must be at least 1, not 0"),
        (["--dim", "300"], "takes 1200 bytes; the device takes at most 1024"),
        (["--data", "criteo:nowhere"], "there is no file 'nowhere'"),
        (["--preset", "tiny"], "the log has 26 tables, the device at most 8"),
    ],
)
def test_mistakes_end_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_criteo(tmp_path / "log.tsv", 400)
    small = [word for word in SMALL if "--preset" not in arguments or word not in ("--entries",)]
    if "--preset" in arguments:
        small.remove("256")
    result = tmp_path / "result.json"
    options = ["--data", f"criteo:{data}", *small, "--json", result, *arguments]
    assert _hotline(monkeypatch, *options) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["log.tsv"]


def test_a_run_that_differs_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hotline.host.step_commands import StepCommands

    monkeypatch.setattr(StepCommands, "scatter", lambda *arguments: None)
    data = write_criteo(tmp_path / "log.tsv", 400)
    assert _hotline(monkeypatch, "--data", f"criteo:{data}", *SMALL, "--check") == 1
    assert "beyond the limits" in capsys.readouterr().out.replace("\n", " ")


def test_without_pytorch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert _hotline(monkeypatch) == 2
    assert "hotline train needs PyTorch, which cannot be imported" in capsys.readouterr().err


def test_numerical_features() -> None:
    features = np.array([[0, 1, np.nan, -3, np.inf]], np.float32)
    values = dense_inputs(features, np.dtype(np.float64))
    assert values.dtype == np.float64
    assert values[0].tolist() == [0.0, np.log1p(1.0), 0.0, 0.0, 0.0]
