"""A TorchRec DLRM with a device in the loop, against the same model without."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
torchrec = pytest.importorskip(
    "torchrec", reason="TorchRec is not installed (make torchrec)", exc_type=ImportError
)

from torch.nn import functional
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor, PoolingType
from torchrec.models.dlrm import DLRM

from hotline.gen.presets import preset
from hotline.host.backends import GoldenBackend
from hotline.host.device import Device
from hotline.host.row_optimizers import RowSgd, RowWiseAdagrad
from hotline.host.torchrec_adapter import TorchRecTrainer

torch.set_num_threads(1)

CONFIG = preset("ecp5").replace(sets=16, learn_group=4, dedup_entries=16)
ROWS = (90, 7, 70)
LR = 0.05


def _model(dim: int = 4, **changes: object) -> DLRM:
    torch.manual_seed(1)
    tables = [
        EmbeddingBagConfig(
            **{
                "name": f"t{i}",
                "num_embeddings": rows,
                "embedding_dim": dim,
                "feature_names": [f"f{i}"],
                **(changes if i == 2 else {}),
            }
        )
        for i, rows in enumerate(ROWS)
    ]
    return DLRM(EmbeddingBagCollection(tables=tables), 2, [8, dim], [8, 1])


def _batches(count: int, samples: int = 40) -> list[tuple]:
    """Features in another order than the tables, and one that has none."""
    rng = np.random.default_rng(3)
    result = []
    for _ in range(count):
        lengths = rng.integers(0, 4, (4, samples))
        values = [
            (rng.random(int(lengths[i].sum())) ** 3 * ROWS[i]).astype(np.int64) for i in range(3)
        ]
        names = ["f2", "f0", "other", "f1"]
        order = [2, 0, 3, 1]
        values.append(np.zeros(int(lengths[3].sum()), np.int64))
        kjt = KeyedJaggedTensor(
            keys=names,
            values=torch.from_numpy(np.concatenate([values[i] for i in order])),
            lengths=torch.from_numpy(lengths[order].reshape(-1).astype(np.int32)),
        )
        dense = torch.from_numpy(rng.normal(size=(samples, 2)).astype(np.float32))
        labels = torch.from_numpy((rng.random(samples) < 0.3).astype(np.float32))
        result.append((dense, kjt, labels))
    return result


def _relative(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


@pytest.mark.parametrize("optimizer", [RowSgd, RowWiseAdagrad])
def test_equals_plain_torchrec(optimizer) -> None:
    model = _model()
    plain = copy.deepcopy(model)
    trainer = TorchRecTrainer(
        Device(GoldenBackend(CONFIG)),
        model,
        lambda dim: optimizer(LR, dim),
        lambda parameters: torch.optim.SGD(parameters, LR),
    )
    tables = dict(plain.sparse_arch.embedding_bag_collection.named_parameters())
    rest = [value for name, value in plain.named_parameters() if "embedding_bag" not in name]
    plain_optimizer = torch.optim.SGD(rest, LR)
    sums = {name: torch.zeros(len(weight)) for name, weight in tables.items()}
    batches = _batches(12)
    for number, (dense, kjt, labels) in enumerate(batches):
        if number % 4 == 0:
            trainer.learn(
                [features for _, features, _ in batches[number : number + 3]], forget=number == 8
            )
        loss = trainer.step(dense, kjt, labels)

        plain.zero_grad()
        logits = plain(dense, kjt).squeeze(1)
        expected = functional.binary_cross_entropy_with_logits(logits, labels)
        expected.backward()
        plain_optimizer.step()
        with torch.no_grad():
            for name, weight in tables.items():
                gradient = weight.grad
                if optimizer is RowWiseAdagrad:
                    sums[name] += gradient.square().mean(dim=1)
                    gradient = gradient / (sums[name].sqrt() + 1e-8)[:, None]
                weight -= LR * gradient
        assert loss == pytest.approx(float(expected), rel=1e-5)
    for name, weight in trainer.bags.weights():
        assert _relative(weight, tables[f"embedding_bags.{name}.weight"]) < 1e-5
    ours = dict(model.named_parameters())
    for name, value in plain.named_parameters():
        if "embedding_bag" not in name:
            assert _relative(ours[name], value) < 1e-5
    assert 0 < trainer.popular < trainer.samples == 480
    # Evaluation takes what TorchRec takes.
    with torch.no_grad():
        dense, kjt, _ = batches[0]
        assert torch.allclose(model(dense, kjt), plain(dense, kjt), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pooling": PoolingType.MEAN}, "table 't2' must pool by sum, not MEAN"),
        ({"feature_names": ["f2", "g"]}, "table 't2' must have one feature, not 2"),
    ],
)
def test_collections_that_do_not_fit(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TorchRecTrainer(
            Device(GoldenBackend(CONFIG)),
            _model(**changes),
            lambda dim: RowSgd(LR, dim),
            lambda parameters: torch.optim.SGD(parameters, LR),
        )


def test_a_missing_feature() -> None:
    trainer = TorchRecTrainer(
        Device(GoldenBackend(CONFIG)),
        _model(),
        lambda dim: RowSgd(LR, dim),
        lambda parameters: torch.optim.SGD(parameters, LR),
    )
    kjt = KeyedJaggedTensor(
        keys=["f0", "f1"], values=torch.tensor([1, 2]), lengths=torch.tensor([1, 1])
    )
    with pytest.raises(ValueError, match="the batch has no feature 'f2', only f0, f1"):
        trainer.learn([kjt])
