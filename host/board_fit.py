"""What of a click log fits into the memory of a board."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hotline.fpga.boards import Board
from hotline.gen.config import Config
from hotline.host.click_log import ClickLog
from hotline.host.job import JobError, JobOptions, buffer_sizes

__all__ = ["fit_batch", "fit_rows"]

_PAGE = 4096
#: The first page, the command ring, and the record of one command.
_OTHER_PAGES = 3


def _needed(config: Config, log: ClickLog, options: JobOptions, limit: int) -> int:
    """Bytes of the board's memory for a job whose row numbers are taken modulo `limit`."""
    rows = np.minimum(np.array(log.table_rows), limit).tolist()
    sizes = buffer_sizes(config, log, options, rows)
    return sum(-(-size // _PAGE) for size in sizes) * _PAGE + _OTHER_PAGES * _PAGE


def fit_batch(config: Config, log: ClickLog, options: JobOptions, board: Board) -> JobOptions:
    """`options` with the batch halved until tables may have half of the board's memory."""
    while options.batch > 1 and _needed(config, log, options, 1) > board.ram_bytes // 2:
        options = replace(options, batch=options.batch // 2)
    return options


def fit_rows(config: Config, log: ClickLog, options: JobOptions, board: Board) -> int:
    """Most rows of a table with which the job fits into the board's memory.

    Raises
    ------
    JobError
        It does not fit even with one row.
    """
    least = _needed(config, log, options, 1)
    if least > board.ram_bytes:
        raise JobError(
            f"mini-batches of {options.batch} samples take {least} bytes, and board {board.name} "
            f"has {board.ram_bytes}: choose fewer with --batch, or fewer with --row-bytes"
        )
    low, high = 1, max(log.table_rows)
    while low < high:
        middle = (low + high + 1) // 2
        if _needed(config, log, options, middle) <= board.ram_bytes:
            low = middle
        else:
            high = middle - 1
    return low
