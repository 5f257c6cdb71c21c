"""The run whose speed is compared: one mini-batch learned, split, gathered and scattered."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hotline.golden.descriptor import Regions
from hotline.host import Device

__all__ = ["measure"]

TABLES, ROWS, WIDTH, SEED = 26, 1000, 16, 1


def measure(
    device: Device, cycle: Callable[[], int], samples: int, repeats: int
) -> dict[str, float | int]:
    """Cycles that the device simulates, and how fast, in the fastest of several runs.

    The fastest, because whatever else the machine does makes a run slower, and nothing makes it
    faster. Seconds are those of the processor.

    Parameters
    ----------
    device : Device
        Fresh from reset, with the memory model of spec section 9.
    cycle : callable
        Clock cycles so far.
    samples : int
        Of the mini-batch.
    repeats : int
        How many runs.
    """
    rng = np.random.default_rng(SEED)
    tables = rng.random((TABLES, ROWS, WIDTH), np.float32)
    clicks = (rng.random((2 * samples, TABLES)) ** 6 * ROWS).astype(np.uint32)
    device.use_tables(tables)
    keys = samples * TABLES
    lists = device.allocate(device.list_bytes(samples, keys))
    rows = device.allocate(keys * tables[0, :1].nbytes)
    best: dict[str, float | int] = {}
    for _ in range(repeats):
        device.clear()
        begin, start = cycle(), time.process_time()
        device.learn(clicks[:samples])
        device.commit()
        split = device.split(clicks[samples:], lists, rows)
        regions = Regions.of(lists.address, samples, keys)
        device.scatter(len(split.keys), TABLES, regions.keys, rows)
        seconds, cycles = time.process_time() - start, cycle() - begin
        if not best or seconds < best["seconds"]:
            best = {"cycles": cycles, "seconds": seconds, "cycles_per_second": cycles / seconds}
    return {"samples": samples, "runs": repeats, "rows_gathered": len(split.keys), **best}
