"""The run whose speed is compared: one mini-batch learned, split, gathered and scattered."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hotline.golden.descriptor import Regions
from hotline.host import Device

__all__ = ["measure"]

TABLES, ROWS, WIDTH, SEED = 26, 1000, 16, 1


def measure(device: Device, cycle: Callable[[], int], samples: int) -> dict[str, float | int]:
    """Cycles that the device simulates, and the seconds of the whole run.

    Parameters
    ----------
    device : Device
        Fresh from reset, with the memory model of spec section 9.
    cycle : callable
        Clock cycles so far.
    samples : int
        Of the mini-batch.
    """
    rng = np.random.default_rng(SEED)
    tables = rng.random((TABLES, ROWS, WIDTH), np.float32)
    clicks = (rng.random((2 * samples, TABLES)) ** 6 * ROWS).astype(np.uint32)
    device.use_tables(tables)
    keys = samples * TABLES
    lists = device.allocate(device.list_bytes(samples, keys))
    rows = device.allocate(keys * tables[0, :1].nbytes)
    begin, wall, cpu = cycle(), time.perf_counter(), time.process_time()
    device.learn(clicks[:samples])
    device.commit()
    split = device.split(clicks[samples:], lists, rows)
    regions = Regions.of(lists.address, samples, keys)
    device.scatter(len(split.keys), TABLES, regions.keys, rows)
    return {
        "samples": samples,
        "rows_gathered": len(split.keys),
        "cycles": cycle() - begin,
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
    }
