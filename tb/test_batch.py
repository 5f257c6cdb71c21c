"""Mini-batches of trainers, converted to the device's order."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hotline.host import Batch


def _bags(seed: int, tables: int, count: int, longest: int) -> list[list[list[int]]]:
    """Rows by sample and table."""
    rng = np.random.default_rng(seed)
    return [
        [rng.integers(0, 1000, rng.integers(0, longest + 1)).tolist() for _ in range(tables)]
        for _ in range(count)
    ]


def _check(batch: Batch, bags: list[list[list[int]]]) -> None:
    assert batch.count == len(bags) and batch.num_tables == len(bags[0])
    assert batch.indices.dtype == np.uint32
    assert batch.indices.tolist() == [row for sample in bags for bag in sample for row in bag]
    assert batch.lengths.dtype == np.uint16
    assert batch.lengths.tolist() == [[len(bag) for bag in sample] for sample in bags]
    assert batch.copied and batch.seconds > 0


@pytest.mark.parametrize("index", [np.int64, np.int32, np.uint32])
@pytest.mark.parametrize("shape", [(3, 20, 4), (1, 7, 2), (5, 1, 3), (2, 9, 0)])
def test_dlrm_and_kjt(seed: int, shape: tuple[int, int, int], index: type) -> None:
    tables, count, longest = shape
    bags = _bags(seed, tables, count, longest)
    columns = [[sample[t] for sample in bags] for t in range(tables)]
    indices = [np.array([row for bag in column for row in bag], index) for column in columns]
    lengths = np.array([[len(bag) for bag in column] for column in columns])
    offsets = np.cumsum(lengths, axis=1) - lengths
    _check(Batch.from_dlrm(offsets, indices), bags)
    weights = np.arange(lengths.sum(), dtype=np.float64)
    names = [f"feature {t}" for t in range(tables)]
    batch = Batch.from_kjt(names, np.concatenate(indices), lengths.ravel(), weights)
    _check(batch, bags)
    # Each weight stays with its index.
    numbers = np.concatenate(indices)
    assert batch.weights.dtype == np.float32
    assert (numbers[batch.weights.astype(int)] == batch.indices).all()


def test_bags_of_one_become_one_hot(seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 99, (6, 4))
    batch = Batch.from_kjt(4, rows.T.ravel(), np.ones(24, np.int32))
    assert batch.lengths is None and batch.count == 6
    assert (batch.indices.reshape(6, 4) == rows).all()
    offsets = np.tile(np.arange(6), (4, 1))
    assert (Batch.from_dlrm(offsets, list(rows.T)).indices == batch.indices).all()


@pytest.mark.parametrize("kind", [np.uint32, np.int32])
def test_dense_words_are_not_copied(kind: type) -> None:
    rows = np.arange(12, dtype=kind).reshape(4, 3)
    batch = Batch.dense(rows)
    assert np.shares_memory(batch.indices, rows) and not batch.copied
    assert (batch.count, batch.num_tables, batch.lengths) == (4, 3, None)
    rows[0, 0] = 77
    assert batch.indices[0] == 77


def test_other_dense_arrays_are_copied() -> None:
    rows = np.arange(12).reshape(4, 3)
    for given in (rows, rows.astype(np.uint32).T.copy().T, rows.tolist()):
        batch = Batch.dense(given)
        assert batch.copied and batch.indices.tolist() == list(range(12))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Batch.dense(np.zeros(4, int)), r"\[samples, tables\] .* not int64 \[4\]"),
        (lambda: Batch.dense(np.zeros((4, 2))), r"not float64 \[4, 2\]"),
        (lambda: Batch.dense([[0, -1]]), "an index must be from 0 to 4294967295, not -1"),
        (lambda: Batch.dense([[1 << 32]]), "an index must be from 0 to 4294967295, not 4294967296"),
        (lambda: Batch.from_dlrm([[0]], []), "as many arrays of offsets as of indices"),
        (lambda: Batch.from_dlrm([[1]], [[5, 6]]), "table 0 must ascend from 0 to its 2 indices"),
        (lambda: Batch.from_dlrm([[0, 3]], [[5, 6]]), "table 0 must ascend from 0 to its 2"),
        (
            lambda: Batch.from_dlrm([[0, 1], [0]], [[5, 6], [7]]),
            "table 1 has offsets of 1 samples, table 0 of 2",
        ),
        (lambda: Batch.from_kjt(2, [1, 2, 3], [1, 1, 1]), "each of 2 keys, not 3 in all"),
        (lambda: Batch.from_kjt(0, [], []), "each of 0 keys, not 0 in all"),
        (lambda: Batch.from_kjt(1, [1, 2], [1]), "add up to 1, but there are 2 indices"),
        (lambda: Batch.from_kjt(1, [1], [1], [0.5, 1]), "add up to 1, but there are 2 weights"),
        (lambda: Batch.from_kjt(1, [1], [-1]), "a bag must be from 0 to 65535, not -1"),
        (lambda: Batch.from_kjt(1, [1] * 65536, [65536]), "from 0 to 65535, not 65536"),
        (lambda: Batch.from_kjt(1, [1.5], [1]), "must be integers, not float64 and int64"),
    ],
)
def test_batches_that_make_no_sense(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_conversion_is_vectorised() -> None:
    """A mini-batch of 106 496 indices takes milliseconds, not the tenth of a second of a loop."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 3, 26 * 4096)
    values = rng.integers(0, 1 << 20, int(lengths.sum()))
    begin = time.perf_counter()
    batch = min((Batch.from_kjt(26, values, lengths) for _ in range(5)), key=lambda b: b.seconds)
    assert batch.seconds < time.perf_counter() - begin
    print(f"{len(values)} indices in {1000 * batch.seconds:.2f} ms")
    assert batch.seconds < 0.05
