"""Readers for the formats in which users have their click logs.

Formats: Criteo TSV, Avazu CSV, the `.npz` and `.bin` files of DLRM's preprocessing, and
libfm/svmlight text. Each returns a :class:`~hotline.host.click_log.ClickLog` and raises
:class:`~hotline.host.click_log.DataError` with one sentence that names file and line.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from hotline.host.click_log import ClickLog, DataError

__all__ = ["read_avazu", "read_criteo", "read_dlrm_bin", "read_dlrm_npz", "read_libfm"]

_CRITEO_DENSE, _CRITEO_TABLES = 13, 26
_CRITEO_COLUMNS = tuple(f"C{i + 1}" for i in range(_CRITEO_TABLES))
_AVAZU_COLUMNS = 24


def read_criteo(path: str | Path, samples: int | None = None) -> ClickLog:
    """Criteo TSV: ``label I1..I13 C1..C26``, no header, empty = missing.

    Parameters
    ----------
    path : str or Path
        The file.
    samples : int or None
        Read at most so many samples.
    """
    width = 1 + _CRITEO_DENSE + _CRITEO_TABLES
    labels: list[float] = []
    dense: list[list[float]] = []
    values: list[list[str]] = []
    for number, line in _lines(path, samples):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != width:
            raise DataError(f"{path}, line {number}: {len(fields)} fields instead of {width}")
        try:
            labels.append(float(fields[0]))
            dense.append([float(field) if field else np.nan for field in fields[1:14]])
        except ValueError:
            raise DataError(f"{path}, line {number}: a field of 1 to 14 is not a number") from None
        values.append(fields[14:])
    table = _table(path, values)
    columns = {name: table[:, i] for i, name in enumerate(_CRITEO_COLUMNS)}
    return ClickLog.from_columns(
        f"criteo:{Path(path).name}", columns, np.array(labels), np.array(dense, np.float32)
    )


def read_avazu(path: str | Path, samples: int | None = None) -> ClickLog:
    """Avazu CSV: a header, then ``id, click, hour, C1, ...``: 24 columns, all but id and click
    categorical; of `hour` (YYMMDDHH) the hour of the day is one."""
    lines = (line for _, line in _lines(path, None if samples is None else samples + 1))
    rows = csv.reader(lines)
    header = next(rows, [])
    if len(header) != _AVAZU_COLUMNS or header[1:3] != ["click", "hour"]:
        raise DataError(f"{path}: not an Avazu header (id, click, hour, ...; 24 columns)")
    labels: list[float] = []
    values: list[list[str]] = []
    for number, fields in enumerate(rows, 2):
        if len(fields) != _AVAZU_COLUMNS or fields[1] not in ("0", "1"):
            raise DataError(f"{path}, line {number}: not 24 columns with a click of 0 or 1")
        labels.append(float(fields[1]))
        values.append([fields[2][-2:], *fields[3:]])
    table = _table(path, values)
    columns = {name: table[:, i] for i, name in enumerate(header[2:])}
    return ClickLog.from_columns(f"avazu:{Path(path).name}", columns, np.array(labels))


def read_dlrm_npz(path: str | Path, samples: int | None = None) -> ClickLog:
    """DLRM's preprocessed archive: `X_cat` (N, T), `X_int` (N, D), `y` (N,), `counts` (T,)."""
    try:
        with np.load(path) as archive:
            part = slice(samples)
            cat, dense = archive["X_cat"][part], archive["X_int"][part]
            labels, counts = archive["y"][part], archive["counts"]
    except KeyError as error:
        raise DataError(f"{path}: {error.args[0]}") from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a readable .npz archive ({error})") from None
    if cat.ndim != 2 or counts.shape != (cat.shape[1],) or len(dense) != len(cat):
        raise DataError(f"{path}: X_cat must be (N, T), X_int (N, D) and counts (T,)")
    if cat.size and (cat.min() < 0 or (cat.max(axis=0) >= counts).any()):
        raise DataError(f"{path}: a row in X_cat is not below its table's count")
    return ClickLog(
        f"dlrm-npz:{Path(path).name}",
        tuple(f"C{i + 1}" for i in range(cat.shape[1])),
        tuple(int(count) for count in counts),
        cat.astype(np.uint32).ravel(),
        None,
        labels.astype(np.float32),
        dense.astype(np.float32),
    )


def read_dlrm_bin(path: str | Path, samples: int | None = None) -> ClickLog:
    """DLRM's binary file: 40 int32 a record, label, 13 numerical, 26 categorical rows."""
    width = 1 + _CRITEO_DENSE + _CRITEO_TABLES
    try:
        size = Path(path).stat().st_size
        count = -1 if samples is None else samples * width
        records = np.fromfile(path, "<i4", count)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    if size == 0 or size % (4 * width):
        raise DataError(f"{path}: {size} bytes are not a whole number of 160-byte records")
    records = records.reshape(-1, width)
    rows = records[:, 1 + _CRITEO_DENSE :]
    if rows.min() < 0:
        raise DataError(f"{path}: record {int((rows < 0).any(axis=1).argmax())} has a negative row")
    return ClickLog(
        f"dlrm-bin:{Path(path).name}",
        _CRITEO_COLUMNS,
        tuple(int(row) + 1 for row in rows.max(axis=0)),
        rows.astype(np.uint32).ravel(),
        None,
        records[:, 0].astype(np.float32),
        records[:, 1 : 1 + _CRITEO_DENSE].astype(np.float32),
    )


def read_libfm(path: str | Path, samples: int | None = None) -> ClickLog:
    """libfm/svmlight: ``label index:value ...``; one table, a sample's bag are its indices.

    The values are not used: the accelerator sees which rows a sample needs.
    """
    labels: list[float] = []
    lengths: list[int] = []
    indices: list[int] = []
    for number, line in _lines(path, samples):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        try:
            labels.append(float(fields[0]))
            bag = [int(field.partition(":")[0]) for field in fields[1:]]
        except ValueError:
            raise DataError(f"{path}, line {number}: not 'label index:value ...'") from None
        if len(bag) > 0xFFFF or any(not 0 <= index < 1 << 32 for index in bag):
            raise DataError(f"{path}, line {number}: an index is not in 0 .. 2**32 - 1")
        lengths.append(len(bag))
        indices += bag
    if not labels:
        raise DataError(f"{path}: no samples")
    return ClickLog(
        f"libfm:{Path(path).name}",
        ("feature",),
        (max(indices, default=0) + 1,),
        np.array(indices, np.uint32),
        np.array(lengths, np.uint16).reshape(-1, 1),
        np.array(labels, np.float32),
        np.zeros((len(labels), 0), np.float32),
    )


def _lines(path: str | Path, limit: int | None) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, at most `limit`."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            yield from islice(enumerate(file, 1), limit)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text") from None


def _table(path: str | Path, values: list[list[str]]) -> np.ndarray:
    """Rows of strings as an array, shape (n, columns)."""
    if not values:
        raise DataError(f"{path}: no samples")
    return np.array(values)
