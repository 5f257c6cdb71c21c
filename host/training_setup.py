"""What to train on, and on which device."""

from __future__ import annotations

from dataclasses import dataclass

from hotline.gen.config import Config
from hotline.host.click_log import ClickLog
from hotline.host.datasets import fold_rows, open_log, row_limit
from hotline.host.row_homes import RowHomes
from hotline.host.row_optimizers import row_optimizer
from hotline.host.train_options import TrainOptions

__all__ = ["BACKENDS", "Setup", "open_training_log", "with_entries"]

#: Back-ends that run in this process.
BACKENDS = ("golden", "verilator")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What to train on, and on which device.

    Parameters
    ----------
    config, name : Config, str
        The configuration, and what to call it.
    source : str
        See :func:`~hotline.host.datasets.open_log`.
    samples : int or None
        At most so many samples; None: all.
    backend : str
        ``"golden"`` or ``"verilator"``.
    world : int
        Processes.
    threads : int
        Threads of PyTorch in each process.
    """

    config: Config
    name: str
    source: str
    samples: int | None = None
    backend: str = "verilator"
    world: int = 1
    threads: int = 1

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {self.backend!r}")
        for name in ("world", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


def with_entries(config: Config, entries: int | None) -> Config:
    """The configuration with so many hot-table entries, and at most as many banks as sets.

    Raises
    ------
    ValueError
        It cannot have that many.
    """
    if entries is None:
        return config
    sets = entries // config.ways
    if entries < config.ways or entries % config.ways or sets & (sets - 1):
        raise ValueError(
            f"hot entries must be a power of two times the {config.ways} ways, not {entries}"
        )
    return config.replace(sets=sets, banks=min(sets, config.banks))


def open_training_log(setup: Setup, options: TrainOptions) -> ClickLog:
    """The log, with row numbers folded so that the tables fit; checked against the device.

    Raises
    ------
    ValueError
        It does not fit.
    """
    log = open_log(setup.source, setup.samples, options.seed)
    width = row_optimizer(options.optimizer, options.lr, options.dim).width
    row_bytes = RowHomes.check_width(setup.config, width, options.numpy_dtype)
    log = fold_rows(log, row_limit(log, setup.config, row_bytes))
    if (reason := log.misfit(setup.config)) is not None:
        raise ValueError(reason)
    options.check_epoch(-(-len(log) // options.batch))
    return log
