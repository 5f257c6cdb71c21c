"""Parts of the trainer alone: optimisers of rows, deferred gradients, metrics, homes of rows."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

from torch import nn
from training import CONFIG, bag_log, make_trainer, run

from hotline.golden.descriptor import Completion
from hotline.host.deferred_linear import DeferredLinear, sum_weight_gradients
from hotline.host.dlrm import Dlrm, DlrmShape, initial_table, parse_layers
from hotline.host.metrics import auc, quality
from hotline.host.micro_batch import Split
from hotline.host.row_homes import NO_KEY, pack_keys
from hotline.host.row_optimizers import EPSILON, row_optimizer
from hotline.host.samples import Samples
from hotline.host.step_plan import plan_step, sum_by_key

torch.set_num_threads(1)


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_row_optimizers_are_those_of_pytorch(name: str) -> None:
    torch.manual_seed(1)
    optimizer = row_optimizer(name, 0.1, 5)
    rows = torch.zeros(7, optimizer.width)
    rows[:, :5] = torch.randn(7, 5)
    parameter = nn.Parameter(rows[:, :5].clone())
    theirs = (
        torch.optim.SGD([parameter], 0.1)
        if name == "sgd"
        else torch.optim.Adagrad([parameter], 0.1, eps=EPSILON)
    )
    for _ in range(4):
        parameter.grad = torch.randn(7, 5)
        theirs.step()
        optimizer.update(rows, parameter.grad)
        torch.testing.assert_close(rows[:, :5], parameter.detach())


def test_rowwise_adagrad() -> None:
    optimizer = row_optimizer("rowwise-adagrad", 0.5, 2)
    rows = torch.tensor([[1.0, 2.0, 0.0], [5.0, 5.0, 16.0]])
    optimizer.update(rows, torch.tensor([[3.0, 1.0], [0.0, 0.0]]))
    root = 5**0.5
    expected = [[1 - 1.5 / root, 2 - 0.5 / root, 5.0], [5.0, 5.0, 16.0]]
    torch.testing.assert_close(rows, torch.tensor(expected))


@pytest.mark.parametrize("parts", [[(0, 1, 2, 3, 4)], [(1, 3), (0, 2, 4)], [(4,), (0, 1, 2, 3)]])
def test_deferred_gradients_are_those_of_autograd(parts: list[tuple[int, ...]]) -> None:
    torch.manual_seed(1)
    plain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    ours = nn.Sequential(DeferredLinear(3, 4), nn.ReLU(), DeferredLinear(4, 2)).double()
    ours.load_state_dict(plain.state_dict())
    x, weight = torch.randn(5, 3).double(), torch.randn(5, 2).double()
    inputs = x.clone().requires_grad_()
    (plain(inputs) * weight).sum().backward()
    places = [torch.tensor(part) for part in parts]
    for place in places:
        part = x[place].requires_grad_()
        (ours(part) * weight[place]).sum().backward()
        torch.testing.assert_close(part.grad, inputs.grad[place])
    assert all(parameter.grad is None for parameter in ours.parameters())
    sum_weight_gradients(ours, places, 5)
    for mine, theirs in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_sample_does_not_depend_on_the_others(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(2)
    model = Dlrm(DlrmShape(13, 26, 16), rng, dtype)
    dense = torch.from_numpy(rng.random((100, 13))).to(dtype)
    bags = torch.from_numpy(rng.normal(size=(100, 26, 16))).to(dtype)
    whole = model(dense, bags)
    for count in (1, 7, 31, 64, 99):
        chosen = torch.from_numpy(np.sort(rng.permutation(100)[:count]))
        assert torch.equal(model(dense[chosen], bags[chosen]), whole[chosen])


def test_shapes_without_numerical_features() -> None:
    rng = np.random.default_rng(2)
    for tables in (1, 2, 5):
        model = Dlrm(DlrmShape(0, tables, 3, (), ()), rng, torch.float32)
        assert model(torch.zeros(4, 0), torch.ones(4, tables, 3)).shape == (4,)


def test_quality() -> None:
    rng = np.random.default_rng(4)
    labels = (rng.random(300) < 0.4).astype(np.float64)
    predictions = np.round(rng.random(300) * 0.7 + 0.3 * labels, 2)
    wins = [
        (a > b) + 0.5 * (a == b) for a in predictions[labels > 0] for b in predictions[labels == 0]
    ]
    result = quality(labels, predictions)
    assert result["auc"] == pytest.approx(np.mean(wins))
    right = np.mean([(p >= 0.5) == (y == 1) for p, y in zip(predictions, labels, strict=True)])
    assert result["accuracy"] == pytest.approx(right)
    assert quality(np.array([1.0]), np.array([0.0]))["log_loss"] == pytest.approx(-np.log(1e-15))
    assert auc(np.ones(3), np.arange(3)) is None


def test_initial_tables_do_not_depend_on_each_other() -> None:
    assert np.array_equal(initial_table(1, 3, 50, 4), initial_table(1, 3, 50, 4))
    assert not np.array_equal(initial_table(1, 3, 50, 4), initial_table(1, 4, 50, 4))
    assert np.abs(initial_table(1, 0, 1000, 4)).max() <= np.sqrt(1 / 1000)


def test_layers_from_text() -> None:
    assert parse_layers("--top", "512-256") == (512, 256)
    assert parse_layers("--top", "") == ()
    for wrong in ("0", "3--4", "a", "-1", "4-"):
        with pytest.raises(ValueError, match="--top must be positive numbers"):
            parse_layers("--top", wrong)


def _split(replacements: int) -> Split:
    """Samples 0 and 2 are popular; rows 7 and 9 of table 1 are cold, 7 is there twice."""
    cold = 0x8000_0000
    return Split(
        popular=np.array([0, 2], np.uint32),
        nonpopular=np.array([1, 3], np.uint32),
        popular_slots=np.array([5, 6, 5, 6], np.uint32),
        nonpopular_slots=np.array([5, cold, cold + 1, 8, cold + 2], np.uint32),
        keys=np.array([(1 << 32) + 7, (1 << 32) + 9, (1 << 32) + 7], np.uint64),
        completion=Completion(status=0, opcode=3, words=(2, 2, 3, 6, 3, replacements)),
        samples=Samples(4, 2, 9, 0),
        hot_rows=16,
    )


@pytest.mark.parametrize(("replacements", "deduplicated"), [(1, True), (0, False)])
def test_copies_of_a_row_become_one(replacements: int, deduplicated: bool) -> None:
    lengths = np.array([[1, 1], [2, 1], [1, 1], [0, 2]], np.uint16)
    plan = plan_step(_split(replacements), 2, lengths, deduplicated=deduplicated)
    assert plan.slots.tolist() == [5, 6, 8]
    assert (plan.keys & np.uint64(0xFFFFFFFF)).tolist() == [7, 9]
    assert plan.copies.tolist() == [0, 1]
    # Rows 0 to 2 of the step are hot, 3 and 4 are rows 7 and 9.
    assert plan.popular.rows.tolist() == [0, 1, 0, 1]
    assert plan.nonpopular.rows.tolist() == [0, 3, 4, 2, 3]
    assert plan.nonpopular.offsets.tolist() == [0, 2, 3, 3]
    assert plan.rows.tolist() == [0, 1, 0, 3, 4, 0, 1, 2, 3]
    assert plan.bags.tolist() == [0, 1, 2, 2, 3, 4, 5, 7, 7]
    sums = plan.row_gradients(torch.arange(8.0)[:, None])
    assert sums.flatten().tolist() == [0 + 2 + 4, 1 + 5, 7, 2 + 7, 3]


def test_sums_by_key() -> None:
    keys = np.array([9, 2, 9], np.uint64)
    distinct, sums = sum_by_key(keys, torch.tensor([[1.0], [2.0], [4.0]]))
    assert distinct.tolist() == [2, 9]
    assert sums.tolist() == [[2.0], [5.0]]


def test_homes_of_rows() -> None:
    trainer = run(make_trainer(bag_log(), CONFIG), 3)
    homes = trainer.homes
    tables = np.repeat(np.arange(3), 60)
    rows = np.tile(np.arange(60), 3)
    everything = np.concatenate(homes.current())
    assert np.array_equal(homes.read(pack_keys(tables, rows)), everything)
    # A row is in one slot at most.
    keys = homes.slot_keys[homes.slot_keys != NO_KEY]
    assert len(np.unique(keys)) == len(keys) > 0
