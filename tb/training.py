"""Small logs, options and devices for the tests of the trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.golden.command_processor import Outcome
from hotline.golden.descriptor import Descriptor, StatusCode
from hotline.host.backends import GoldenBackend
from hotline.host.click_log import ClickLog
from hotline.host.device import Device
from hotline.host.train_options import TrainOptions
from hotline.host.trainer import Trainer

#: 64 entries: far fewer than the rows of the logs below.
CONFIG = preset("ecp5").replace(sets=16, learn_group=4)

OPTIONS = {"batch": 40, "dim": 4, "bottom": (8,), "top": (8,), "learn_share": 0.4}


def one_hot_log(samples: int = 310, seed: int = 3) -> ClickLog:
    """Three tables, two of them larger than the hot table, and two numerical features."""
    rng = np.random.default_rng(seed)
    rows = (90, 7, 70)
    indices = np.stack([(rng.random(samples) ** 3 * n).astype(np.uint32) for n in rows], axis=1)
    dense = rng.normal(2, 3, (samples, 2)).astype(np.float32)
    dense[rng.random(dense.shape) < 0.1] = np.nan
    labels = (rng.random(samples) < 0.3).astype(np.float32)
    return ClickLog("one-hot", ("a", "b", "c"), rows, indices.ravel(), None, labels, dense)


def bag_log(samples: int = 310, seed: int = 4) -> ClickLog:
    """Bags of no to four rows, rows that occur twice in a bag among them; nothing numerical."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, (samples, 3)).astype(np.uint16)
    indices = (rng.random(int(lengths.sum())) ** 3 * 60).astype(np.uint32)
    labels = (rng.random(samples) < 0.3).astype(np.float32)
    dense = np.zeros((samples, 0), np.float32)
    return ClickLog("bags", ("a", "b", "c"), (60,) * 3, indices, lengths, labels, dense)


def write_criteo(path: Path, samples: int, seed: int = 5) -> Path:
    """A file in Criteo's format, with few values and some of them missing; returns `path`."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(samples):
        numbers = ["" if x < 0 else str(x) for x in rng.integers(-2, 50, 13)]
        values = ["" if x < 1 else f"{int(x):08x}" for x in rng.random(26) ** 3 * 40]
        lines.append("\t".join([str(int(rng.random() < 0.3)), *numbers, *values]))
    path.write_text("\n".join(lines) + "\n")
    return path


def make_trainer(
    log: ClickLog,
    config: Config = CONFIG,
    backend: GoldenBackend | None = None,
    **options: object,
) -> Trainer:
    """A trainer on the golden model, with small layers."""
    chosen = TrainOptions(**{**OPTIONS, **options})  # type: ignore[arg-type]
    return Trainer(Device(backend or GoldenBackend(config)), log, chosen)


def run(trainer: Trainer, steps: int | None = None) -> Trainer:
    """Train to the end, or for so many steps."""
    end = trainer.total if steps is None else trainer.position + steps
    while trainer.position < end:
        trainer.step()
    return trainer


class FailingBackend(GoldenBackend):
    """A golden model whose n-th command of a kind meets what `spoil` does to it.

    As in hardware, what the failed command may have written is then undefined: it gets random
    bytes.

    Parameters
    ----------
    config : Config
        The configuration.
    chosen : callable
        Says of a descriptor whether it is of that kind.
    turn : int
        Which of them fails, from 0 on.
    spoil : callable
        Called with this device and the descriptor, which it may change.
    """

    def __init__(
        self,
        config: Config,
        chosen: Callable[[Descriptor], bool],
        turn: int,
        spoil: Callable[[FailingBackend, Descriptor], None],
    ) -> None:
        super().__init__(config)
        self.turns = turn
        execute = self.processor.execute

        def spoiled(descriptor: Descriptor) -> Outcome:
            if chosen(descriptor):
                self.turns -= 1
                if self.turns == -1:
                    spoil(self, descriptor)
            outcome = execute(descriptor)
            if outcome.status != StatusCode.OK:
                rng = np.random.default_rng(1)
                self.memory.clear_errors()
                for address, size in outcome.undefined:
                    self.memory.write(address, rng.integers(0, 256, size, np.uint8))
            return outcome

        self.processor.execute = spoiled  # type: ignore[method-assign]
