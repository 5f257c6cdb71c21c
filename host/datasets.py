"""Opens a click log by a name such as ``ml-100k`` or ``criteo:FILE``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from hotline.gen.config import Config
from hotline.host.cache import cache_folder
from hotline.host.click_log import ClickLog, DataError
from hotline.host.movielens import fetch_movielens, read_movielens
from hotline.host.readers import (
    read_avazu,
    read_criteo,
    read_dlrm_bin,
    read_dlrm_npz,
    read_libfm,
)
from hotline.host.synthetic import TRACES, synthetic_log

__all__ = ["SOURCES", "fold_rows", "open_log", "row_limit"]

#: Bytes of all tables that fit the memory of a small machine, twice, beside everything else.
_TABLE_BYTES = 1 << 30

_READERS: dict[str, Callable[[str, int | None], ClickLog]] = {
    "criteo": read_criteo,
    "avazu": read_avazu,
    "dlrm-npz": read_dlrm_npz,
    "dlrm-bin": read_dlrm_bin,
    "libfm": read_libfm,
}
_SYNTHETIC_SAMPLES = 100_000

#: What `open_log` takes, for help texts.
SOURCES = (
    "ml-100k",
    *(f"{name}:FILE" for name in _READERS),
    *(f"synthetic:{trace}" for trace in TRACES),
    *(f"synthetic:{trace}-drift" for trace in TRACES),
)


def open_log(source: str, samples: int | None = None, seed: int = 1) -> ClickLog:
    """The click log that `source` names, at most `samples` samples of it.

    Parameters
    ----------
    source : str
        One of :data:`SOURCES`.
    samples : int or None
        None: all; of a synthetic log, 100 000.
    seed : int
        Of a synthetic log.

    Raises
    ------
    DataError
        There is no such source, or it cannot be read. The sentence says what to do.
    """
    kind, _, rest = source.partition(":")
    if source == "ml-100k":
        return read_movielens(fetch_movielens(cache_folder() / "data"), samples)
    if kind == "synthetic":
        trace, _, suffix = rest.partition("-")
        if trace not in TRACES or suffix not in ("", "drift"):
            raise DataError(f"data must be one of {', '.join(SOURCES)}, not {source!r}")
        return synthetic_log(
            trace, samples or _SYNTHETIC_SAMPLES, seed=seed, drift=suffix == "drift"
        )
    if kind not in _READERS or not rest:
        raise DataError(f"data must be one of {', '.join(SOURCES)}, not {source!r}")
    if not Path(rest).is_file():
        raise DataError(f"there is no file {rest!r}")
    return _READERS[kind](rest, samples)


def row_limit(log: ClickLog, config: Config, row_bytes: int) -> int:
    """Rows of a table that the device can number, and that this machine has memory for."""
    return min(1 << config.row_bits, max(1, _TABLE_BYTES // (row_bytes * log.num_tables)))


def fold_rows(log: ClickLog, limit: int) -> ClickLog:
    """The log with row numbers taken modulo `limit` in tables that have more rows."""
    if max(log.table_rows) <= limit:
        return log
    rows = np.minimum(np.array(log.table_rows), limit)
    return ClickLog(
        log.name,
        log.tables,
        tuple(int(count) for count in rows),
        (log.indices % rows[log.key_tables]).astype(np.uint32),
        log.lengths,
        log.labels,
        log.dense,
    )
