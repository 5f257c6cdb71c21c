"""MovieLens 100k, as packaged in the `recbole` wheel on PyPI: the log that everyone can get.

Columns: user, item, age, gender, occupation, zip, year, genres; interactions sorted stably by
timestamp; the genres string is one value; a rating of 4 or 5 counts as a click.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from hotline.host.click_log import ClickLog, DataError

__all__ = ["WHEEL_SHA256", "WHEEL_VERSION", "fetch_movielens", "read_movielens"]

#: The wheel that is fetched, and the hash that it must have.
WHEEL_VERSION = "1.2.1"
WHEEL_SHA256 = "9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407"
_WHEEL = f"recbole-{WHEEL_VERSION}-py3-none-any.whl"
_FOLDER = "recbole/dataset_example/ml-100k/ml-100k"


def fetch_movielens(folder: str | Path) -> Path:
    """The wheel in `folder`, fetched there with pip if it is not there yet.

    Raises
    ------
    DataError
        pip cannot get it, or it is not the file that it should be.
    """
    wheel = Path(folder, _WHEEL)
    if not wheel.exists():
        wheel.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wheel.parent) as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary", ":all:", "--dest", scratch, f"recbole=={WHEEL_VERSION}"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            fetched = Path(scratch, _WHEEL)
            if result.returncode or not fetched.exists():
                reason = (result.stderr.strip().splitlines() or ["no output"])[-1]
                raise DataError(f"pip could not fetch recbole {WHEEL_VERSION}: {reason}")
            _check(fetched)
            fetched.replace(wheel)
    _check(wheel)
    return wheel


def read_movielens(wheel: str | Path, samples: int | None = None) -> ClickLog:
    """The log in `wheel`: at most `samples` interactions, the earliest."""
    with zipfile.ZipFile(wheel) as archive:
        interactions = _columns(archive, "inter")
        users = _columns(archive, "user")
        items = _columns(archive, "item")
    order = np.argsort(interactions["timestamp"].astype(np.float64), kind="stable")[:samples]
    user, item = interactions["user_id"][order], interactions["item_id"][order]
    of_user = _positions(users["user_id"], user)
    of_item = _positions(items["item_id"], item)
    columns = {
        "user": user,
        "item": item,
        "age": users["age"][of_user],
        "gender": users["gender"][of_user],
        "occupation": users["occupation"][of_user],
        "zip": users["zip_code"][of_user],
        "year": items["release_year"][of_item],
        "genres": items["class"][of_item],
    }
    ratings = interactions["rating"][order].astype(np.float32)
    return ClickLog.from_columns("ml-100k", columns, ratings >= 4)


def _check(wheel: Path) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise DataError(f"{wheel} has SHA-256 {digest} instead of {WHEEL_SHA256}: delete it")


def _columns(archive: zipfile.ZipFile, kind: str) -> dict[str, np.ndarray]:
    """Columns of one of the tab-separated files, by name without its type."""
    with io.TextIOWrapper(archive.open(f"{_FOLDER}.{kind}"), encoding="utf-8") as file:
        names = [name.partition(":")[0] for name in next(file).rstrip("\n").split("\t")]
        table = np.array([line.rstrip("\n").split("\t") for line in file])
    return {name: table[:, i] for i, name in enumerate(names)}


def _positions(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each of `wanted` stands in `ids`."""
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]
