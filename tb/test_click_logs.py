"""Readers and the synthetic generator: what they read, and how they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hotline.host.click_log import ClickLog, DataError, number_by_first_appearance
from hotline.host.datasets import SOURCES, fold_rows, open_log
from hotline.host.readers import (
    read_avazu,
    read_criteo,
    read_dlrm_bin,
    read_dlrm_npz,
    read_libfm,
)
from hotline.host.synthetic import KAGGLE_ROWS, synthetic_log


def _criteo_line(label: int, first: str, second: str) -> str:
    dense = ["-1", "", *["2"] * 11]
    return "\t".join([str(label), *dense, first, second, *["00000001"] * 24])


def test_criteo(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    lines = [_criteo_line(0, "aa", ""), _criteo_line(1, "bb", ""), _criteo_line(0, "aa", "cc")]
    file.write_text("\n".join(lines) + "\n")
    log = read_criteo(file)
    assert (len(log), log.num_tables) == (3, 26)
    # Numbered by first appearance; an empty value is a value.
    assert log.indices.reshape(3, 26)[:, :2].tolist() == [[0, 0], [1, 0], [0, 1]]
    assert log.table_rows[:3] == (2, 2, 1)
    assert log.labels.tolist() == [0, 1, 0]
    assert log.dense[0, 0] == -1
    assert np.isnan(log.dense[0, 1])
    assert len(read_criteo(file, 2)) == 2
    file.write_text("1\t2\n")
    with pytest.raises(DataError, match=r"line 1: 2 fields instead of 40"):
        read_criteo(file)


def test_avazu(tmp_path: Path) -> None:
    header = ["id", "click", "hour", *[f"C{i}" for i in range(21)]]
    rows = [["7", "1", "14102105", *["x"] * 21], ["8", "0", "14102205", *["y"] * 21]]
    file = tmp_path / "train.csv"
    file.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    log = read_avazu(file)
    assert (len(log), log.num_tables) == (2, 22)
    assert log.indices.reshape(2, 22)[:, 0].tolist() == [0, 0]  # the same hour of the day
    assert log.indices.reshape(2, 22)[:, 1].tolist() == [0, 1]
    file.write_text("a,b\n")
    with pytest.raises(DataError, match="not an Avazu header"):
        read_avazu(file)


def test_dlrm_npz(tmp_path: Path) -> None:
    file = tmp_path / "day.npz"
    cat = np.array([[0, 5], [2, 1]])
    arrays = {"X_cat": cat, "X_int": np.ones((2, 3)), "y": np.array([0, 1])}
    np.savez(file, **arrays, counts=np.array([3, 6]))
    log = read_dlrm_npz(file)
    assert log.indices.tolist() == [0, 5, 2, 1]
    assert log.table_rows == (3, 6)
    np.savez(file, **arrays, counts=np.array([3, 5]))
    with pytest.raises(DataError, match="not below its table's count"):
        read_dlrm_npz(file)
    np.savez(file, X_cat=cat)
    with pytest.raises(DataError, match="X_int"):
        read_dlrm_npz(file)


def test_dlrm_bin(tmp_path: Path) -> None:
    file = tmp_path / "day.bin"
    records = np.arange(80, dtype="<i4").reshape(2, 40)
    records.tofile(file)
    log = read_dlrm_bin(file)
    assert log.labels.tolist() == [0, 40]
    assert log.indices[:2].tolist() == [14, 15]
    assert log.table_rows[0] == 55
    file.write_bytes(b"\0" * 161)
    with pytest.raises(DataError, match="161 bytes are not a whole number"):
        read_dlrm_bin(file)


def test_libfm(tmp_path: Path) -> None:
    file = tmp_path / "log.libfm"
    file.write_text("1 3:1 7:0.5\n0\n1 3:2 # a comment\n")
    log = read_libfm(file)
    assert log.indices.tolist() == [3, 7, 3]
    assert log.lengths is not None
    assert log.lengths.ravel().tolist() == [2, 0, 1]
    assert log.offsets.tolist() == [0, 2, 2, 3]
    assert log[1:3].indices.tolist() == [3]
    file.write_text("1 x:1\n")
    with pytest.raises(DataError, match="line 1"):
        read_libfm(file)


def test_unknown_sources(tmp_path: Path) -> None:
    for source in ("movielens", "criteo", "synthetic:Q", "parquet:x"):
        with pytest.raises(DataError, match=f"not {source!r}"):
            open_log(source)
    with pytest.raises(DataError, match="there is no file"):
        open_log(f"criteo:{tmp_path / 'missing'}")
    assert "ml-100k" in SOURCES


def test_numbering_and_keys() -> None:
    numbers, count = number_by_first_appearance(np.array(["b", "", "b", "a"]))
    assert (numbers.tolist(), count) == ([0, 1, 0, 2], 3)
    log = ClickLog.from_columns(
        "x", {"p": np.array([5, 6]), "q": np.array([7, 7])}, np.array([0, 1])
    )
    assert log.keys(28).tolist() == [0, 1 << 28, 1, 1 << 28]


def test_folding() -> None:
    log = synthetic_log("K", 500)
    folded = fold_rows(log, 1000)
    assert max(folded.table_rows) == 1000
    assert folded.table_rows[4] == log.table_rows[4]
    assert (folded.indices == log.indices % np.array(folded.table_rows)[log.key_tables]).all()
    assert fold_rows(log, 1 << 28) is log


@pytest.mark.parametrize("drift", [False, True])
def test_synthetic_log(drift: bool) -> None:
    log = synthetic_log("R", 20_000, seed=3, drift=drift)
    again = synthetic_log("R", 20_000, seed=3, drift=drift)
    assert (log.indices == again.indices).all()
    rows = log.indices.reshape(-1, 26)
    assert (rows < np.array(KAGGLE_ROWS)).all()
    # C11 is a fixed function of C7, C10's most frequent row is the missing value's 27 %.
    parents, children = rows[:, 6], rows[:, 10]
    order = np.argsort(parents, kind="stable")
    same = parents[order][1:] == parents[order][:-1]
    assert (children[order][1:] == children[order][:-1])[same].all()
    top = np.unique(rows[:, 9], return_counts=True)[1].max() / len(rows)
    assert 0.26 < top < 0.33
    with pytest.raises(ValueError, match="trace must be one of K, R"):
        synthetic_log("X", 10)
    with pytest.raises(ValueError, match="samples must be at least 1, not 0"):
        synthetic_log("K", 0)
