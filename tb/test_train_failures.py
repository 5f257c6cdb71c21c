"""Devices that fail, processes that die: what the checkpoint is worth."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

from training import (
    CONFIG,
    FailingBackend,
    bag_log,
    make_trainer,
    one_hot_log,
    run,
)

from hotline.gen.commands import Flag, Opcode
from hotline.golden.descriptor import Descriptor
from hotline.host import errors
from hotline.host.checkpoint import CheckpointError, restore_checkpoint, save_checkpoint
from hotline.host.training_loop import LoopOptions, TrainingStoppedError, run_loop

torch.set_num_threads(1)

OPTIONS = {"optimizer": "adagrad", "lr": 0.05}


def _bad_opcode(backend: FailingBackend, descriptor: Descriptor) -> None:
    descriptor.opcode = 0x55


def _bad_descriptor(backend: FailingBackend, descriptor: Descriptor) -> None:
    descriptor.flags |= 0x80


def _bad_index(backend: FailingBackend, descriptor: Descriptor) -> None:
    backend.memory.write(descriptor.indices or descriptor.lists, np.array([0xFFFFFFFF], np.uint64))


def _bad_lengths(backend: FailingBackend, descriptor: Descriptor) -> None:
    backend.memory.write(descriptor.lengths, np.full(2, 99, np.uint16))


def _no_reads(backend: FailingBackend, descriptor: Descriptor) -> None:
    backend.memory.add_error(1 << 17, 1 << 35, write=False)


def _no_writes(backend: FailingBackend, descriptor: Descriptor) -> None:
    backend.memory.add_error(0x1_3000, 1 << 35, read=False)


def _no_window(backend: FailingBackend, descriptor: Descriptor) -> None:
    backend.bus.windows = [(0, 0x1_2FFF)]


def _dirty(backend: FailingBackend, descriptor: Descriptor) -> None:
    backend.hot_table.dirty = True


#: What fails, with which exception, and at which of its kind.
FAILURES = [
    ("SPLIT", _bad_opcode, errors.BadOpcodeError, 2),
    ("SPLIT", _bad_descriptor, errors.BadDescriptorError, 0),
    ("SPLIT", _bad_index, errors.IndexRangeError, 3),
    ("SPLIT", _bad_lengths, errors.LengthsError, 4),
    ("SPLIT", _dirty, errors.NotCommittedError, 5),
    ("SPLIT", _no_writes, errors.BusWriteError, 1),
    ("GATHER", _no_reads, errors.BusReadError, 3),
    ("GATHER", _bad_opcode, errors.BadOpcodeError, 0),
    ("SCATTER", _no_writes, errors.BusWriteError, 3),
    ("SCATTER", _no_window, errors.AddressWindowError, 0),
    ("SCATTER", _bad_index, errors.IndexRangeError, 6),
    ("LEARN", _no_reads, errors.BusReadError, 0),
    ("LEARN", _bad_index, errors.IndexRangeError, 4),
    ("COMMIT", _no_writes, errors.BusWriteError, 1),
    ("BACK", _no_writes, errors.BusWriteError, 0),
    ("BACK", _no_window, errors.AddressWindowError, 1),
    ("FILL", _no_reads, errors.BusReadError, 0),
    ("FILL", _no_writes, errors.BusWriteError, 2),
    ("CLEAR", _bad_descriptor, errors.BadDescriptorError, 1),
]


def _is(name: str):
    def chosen(descriptor: Descriptor) -> bool:
        if name in ("BACK", "FILL"):
            back = bool(descriptor.flags & Flag.FILL_BACK)
            return descriptor.opcode == Opcode.FILL and back == (name == "BACK")
        return descriptor.opcode == Opcode[name]

    return chosen


@pytest.mark.parametrize(
    ("name", "spoil", "error", "turn"), FAILURES, ids=[f"{f[0]}-{f[1].__name__}" for f in FAILURES]
)
def test_a_failed_command_leaves_a_usable_checkpoint(
    tmp_path: Path, name: str, spoil, error: type[Exception], turn: int
) -> None:
    log = bag_log()
    options = {**OPTIONS, "forget": "clear" if name == "CLEAR" else "nothing"}
    expected = run(make_trainer(log, **options)).digest()
    file = tmp_path / "checkpoint"
    backend = FailingBackend(CONFIG, _is(name), turn, spoil)
    trainer = make_trainer(log, backend=backend, **options)
    with pytest.raises(TrainingStoppedError, match="training stopped after") as caught:
        run_loop(trainer, LoopOptions(checkpoint=file, every=1000))
    assert isinstance(caught.value.__cause__, error)
    assert str(file) in str(caught.value)
    with pytest.raises(RuntimeError, match="it goes on from a checkpoint only"):
        trainer.step()
    resumed = make_trainer(log, **options)
    restore_checkpoint(file, resumed)
    assert resumed.position == trainer.position
    assert run(resumed).digest() == expected


def test_all_error_classes_are_injected() -> None:
    assert {failure[2] for failure in FAILURES} == set(errors.CommandError.__subclasses__())


@pytest.mark.parametrize(
    ("forget", "profile"), [("nothing", True), ("age", False), ("clear", True)]
)
def test_resume_at_every_step(tmp_path: Path, forget: str, profile: bool) -> None:
    options = {**OPTIONS, "forget": forget, "profile": profile, "epochs": 2}
    log = one_hot_log()
    expected = run(make_trainer(log, **options))
    trainer = make_trainer(log, **options)
    for step in range(trainer.total):
        file = tmp_path / f"{step}"
        save_checkpoint(file, trainer)
        resumed = make_trainer(log, **options)
        restore_checkpoint(file, resumed)
        if step % 3 == 1:
            assert run(resumed).digest() == expected.digest()
            assert np.array_equal(resumed.losses, expected.losses)
            assert np.array_equal(resumed.predictions, expected.predictions)
        else:
            # Every step is resumed at once, and what comes out is what goes on.
            trainer = run(resumed, 1)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def _train_for_ever(file: Path, options: dict[str, object]) -> None:
    run_loop(make_trainer(one_hot_log(), **options), LoopOptions(checkpoint=file, every=1))
    time.sleep(60)


@pytest.mark.parametrize("position", [0, 3, 9])
def test_killed_and_resumed(tmp_path: Path, position: int) -> None:
    file, options = tmp_path / "checkpoint", {**OPTIONS, "epochs": 2, "dtype": "float64"}
    expected = run(make_trainer(one_hot_log(), **options))
    child = multiprocessing.get_context("fork").Process(
        target=_train_for_ever, args=(file, options), daemon=True
    )
    child.start()
    while not file.exists() or json.loads(str(np.load(file)["meta"]))["position"] < position:
        assert child.is_alive()
        time.sleep(0.001)
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    resumed = make_trainer(one_hot_log(), **options)
    restore_checkpoint(file, resumed)
    assert position <= resumed.position
    assert run(resumed).digest() == expected.digest()
    assert np.array_equal(resumed.losses, expected.losses)


def test_checkpoints_that_do_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    trainer = run(make_trainer(one_hot_log()), 2)
    save_checkpoint(file, trainer)

    def restore(match: str, log=None, path: Path = file, **options: object) -> None:
        with pytest.raises(CheckpointError, match=match):
            restore_checkpoint(path, make_trainer(log or one_hot_log(), **options))

    restore("written by a run with lr = 0.1, this one has 0.2", lr=0.2)
    restore("written by a run with another data", one_hot_log(seed=9))
    restore("another device configuration", config=CONFIG.replace(sets=32))
    restore("there is no checkpoint", path=tmp_path / "missing")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(file.read_bytes()[:-100])
    restore("is not a checkpoint of hotline train", path=damaged)
    damaged.write_bytes(b"")
    restore("is not a checkpoint of hotline train", path=damaged)


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "checkpoint"
    trainer = run(make_trainer(one_hot_log()), 1)
    save_checkpoint(file, trainer)
    before = file.read_bytes()

    def full(*arguments: object, **options: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        save_checkpoint(file, trainer)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
