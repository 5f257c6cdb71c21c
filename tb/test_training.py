"""The trainer against plain PyTorch, over optimisers, number formats, hot tables and logs."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

from training import CONFIG, bag_log, make_trainer, one_hot_log, run

from hotline.gen.presets import preset
from hotline.host.row_homes import NO_KEY
from hotline.host.train_check import TrainCheck
from hotline.host.trainer import Trainer

torch.set_num_threads(1)


def _check(trainer: Trainer) -> dict[str, object]:
    check = TrainCheck(trainer)
    while trainer.position < trainer.total:
        trainer.step()
        check.step()
    assert check.comparisons == trainer.total
    return check.result()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "rowwise-adagrad"])
def test_equals_plain_training(optimizer: str, dtype: str) -> None:
    trainer = make_trainer(one_hot_log(), optimizer=optimizer, dtype=dtype, lr=0.05, epochs=2)
    result = _check(trainer)
    assert result["within_limits"], result
    account = trainer.account
    # All that could go wrong has had the chance to.
    assert 0 < account.popular < account.samples
    assert account.rows_back > 0
    assert account.commands["LEARN"] > account.commands["COMMIT"] == 1 + 2 * 3


@pytest.mark.parametrize("forget", ["nothing", "age", "clear"])
@pytest.mark.parametrize("dedup", [0, 16, 4096])
@pytest.mark.parametrize("make_log", [one_hot_log, bag_log])
def test_copies_and_moves(make_log, dedup: int, forget: str) -> None:
    config = CONFIG.replace(dedup_entries=dedup)
    trainer = make_trainer(make_log(), config, optimizer="adagrad", forget=forget, lr=0.05)
    result = _check(trainer)
    assert result["within_limits"], result
    assert trainer.account.duplicates > 0 or dedup == 4096
    assert trainer.account.rows_back > 0


@pytest.mark.parametrize("policy", ["sample_aware", "srrip"])
@pytest.mark.parametrize("sets", [1, 16, 64, 1024])
def test_sizes_of_the_hot_table(sets: int, policy: str) -> None:
    counter_bits = 2 if policy == "srrip" else 3
    config = CONFIG.replace(sets=sets, policy=policy, counter_bits=counter_bits)
    result = _check(make_trainer(one_hot_log(), config, profile=sets == 16, lr=0.05))
    assert result["within_limits"], result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_narrow_bus(dtype: str) -> None:
    trainer = make_trainer(bag_log(), preset("tiny"), dtype=dtype, optimizer="rowwise-adagrad")
    result = _check(trainer)
    assert result["within_limits"], result
    assert trainer.homes.row_bytes == (5 * 4 if dtype == "float32" else 5 * 8)


def test_the_split_does_not_change_a_bit() -> None:
    digests = {
        run(make_trainer(one_hot_log(), CONFIG.replace(sets=sets), optimizer="adagrad")).digest()
        for sets in (1, 16, 1024)
    }
    assert len(digests) == 1


def test_where_rows_live() -> None:
    trainer = run(make_trainer(one_hot_log()), 3)
    homes = trainer.homes
    slots = np.flatnonzero(homes.slot_keys != NO_KEY)
    assert 0 < len(slots) <= CONFIG.slots
    records, _ = trainer.device.commit(homes.records, everything=True)
    assert records[:, 0].tolist() == slots.tolist()
    # A row that has been trained on in the hot buffer is stale in its table.
    stale = [not np.array_equal(a, b) for a, b in zip(homes.current(), homes.tables, strict=True)]
    assert any(stale)


@pytest.mark.parametrize("lost", ["SCATTER", "BACK", "FILL"])
def test_a_lost_update_is_seen(lost: str) -> None:
    trainer = make_trainer(one_hot_log(), lr=0.05)
    if lost == "SCATTER":
        trainer.commands.scatter = lambda *arguments: None  # type: ignore[method-assign]
    else:
        homes = trainer.homes
        genuine = homes._run
        homes._run = (  # type: ignore[method-assign]
            lambda records, back: None if back == (lost == "BACK") else genuine(records, back=back)
        )
    result = _check(trainer)
    assert not result["within_limits"]
    assert result["max_relative_parameter_error"] > 1e-4  # type: ignore[operator]


def test_relearning_more_often_than_there_are_batches() -> None:
    with pytest.raises(ValueError, match="relearn must be below the 8 mini-batches of an epoch"):
        make_trainer(one_hot_log(), relearn=8)


def test_rows_that_are_too_long() -> None:
    with pytest.raises(ValueError, match="takes 1600 bytes; the device takes at most 1024"):
        make_trainer(one_hot_log(), dim=100, dtype="float64", optimizer="adagrad")
