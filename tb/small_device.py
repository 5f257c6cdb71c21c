"""A small device with tables of random floats, for the tests of the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from system_configs import SYSTEM_CONFIGS

from hotline.host import Device

CONFIG = SYSTEM_CONFIGS["tiny"]
TABLES, ROWS, ROW_BYTES = 3, 40, 36
HOT_BYTES = 64


@contextmanager
def small_device(backend: str, seed: int) -> Iterator[Device]:
    """The device, with `tables` and `hot` as further members."""
    with Device.open(backend, CONFIG, max_cycles=1_000_000, ring_log2=3) as opened:
        rng = np.random.default_rng(seed)
        opened.tables = rng.random((TABLES, ROWS, ROW_BYTES // 4), np.float32)
        opened.use_tables(opened.tables)
        opened.hot = np.zeros((CONFIG.slots, HOT_BYTES // 4), np.float32)
        opened.use_hot_buffers([opened.hot])
        yield opened


def random_clicks(seed: int, count: int = 50) -> np.ndarray:
    """Rows of which some are hot, because small ones are frequent: uint32 [count, TABLES]."""
    rng = np.random.default_rng(seed)
    return (rng.random((count, TABLES)) ** 4 * ROWS).astype(np.uint32)


def train(device: Device, clicks: np.ndarray) -> np.ndarray:
    """Learn, and fill the hot buffer; the records of COMMIT."""
    device.learn(clicks)
    return device.commit(fill=True)[0]
