"""Requests that banks take in a cycle: the published curve, its model, and a model of ours.

The published accelerator has one queue in front of its banks: of all requests that wait in it,
each bank takes one a cycle. Here every lane has a queue of its own, of which only the head may go;
a bank has two ports, and equal keys at the heads are one request.
"""

from __future__ import annotations

import numpy as np

__all__ = ["LANE_QUEUE", "PUBLISHED", "QUEUES", "crossbar_rate", "queue_rate"]

#: Keys that wait in the queue of a lane at most: fixed in :mod:`hotline.rtl.crossbar`.
LANE_QUEUE = 16

#: Entries of the queue at the points of the published curve.
QUEUES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

#: Requests an iteration by banks, read off the figure (arXiv 2204.05436).
PUBLISHED = {
    8: (1, 1.87, 3.26, 4.94, 6.31, 7.12, 7.54, 7.79, 7.90, 7.95, 7.97),
    16: (1, 1.94, 3.62, 6.31, 9.62, 12.41, 14.13, 15.05, 15.51, 15.74, 15.86),
    32: (1, 1.97, 3.81, 7.13, 12.41, 18.98, 24.60, 28.16, 30.04, 31.02, 31.48),
    64: (1, 1.98, 3.90, 7.56, 14.13, 24.63, 37.70, 49.02, 56.18, 60.03, 61.97),
}


def queue_rate(
    banks: int, queue: int, rng: np.random.Generator, *, replicas: int = 16, cycles: int = 400
) -> float:
    """Requests a cycle of one queue: each bank takes one, the rest stays, the queue refills.

    Parameters
    ----------
    banks, queue : int
        Banks, and entries of the queue; each request wants a random bank.
    rng : Generator
        Draws.
    replicas, cycles : int
        Independent queues, and cycles that are counted of each, after as many to settle.
    """
    shares = np.full(banks, 1 / banks)
    waiting = rng.multinomial(np.full(replicas, queue), shares)
    total = 0
    for cycle in range(2 * cycles):
        taken = (waiting > 0).astype(np.int64)
        served = taken.sum(axis=1)
        waiting += rng.multinomial(served, shares) - taken
        total += int(served.sum()) * (cycle >= cycles)
    return total / (cycles * replicas)


def crossbar_rate(keys: np.ndarray, banks: np.ndarray, depth: int = LANE_QUEUE) -> float:
    """Keys a cycle of the crossbar of the hot table.

    Parameters
    ----------
    keys : np.ndarray
        Groups of keys, one a lane: int64 [groups, lanes].
    banks : np.ndarray
        Bank of each key, of the same shape.
    depth : int
        Groups that wait in the queue of a lane at most.
    """
    groups, lanes = keys.shape
    key_rows, bank_rows = keys.tolist(), banks.tolist()
    head = [0] * lanes
    pushed = cycles = 0
    while (last := min(head)) < groups:
        cycles += 1
        first_of: dict[int, int] = {}
        last_of: dict[int, int] = {}
        seen: set[int] = set()
        for lane in range(lanes):
            if head[lane] < pushed:
                key, bank = key_rows[head[lane]][lane], bank_rows[head[lane]][lane]
                if key not in seen:
                    # Port A takes the first key that wants the bank, port B the last one.
                    seen.add(key)
                    first_of.setdefault(bank, key)
                    last_of[bank] = key
        for lane in range(lanes):
            if head[lane] < pushed:
                key, bank = key_rows[head[lane]][lane], bank_rows[head[lane]][lane]
                if key in (first_of[bank], last_of[bank]):
                    head[lane] += 1
        if pushed < groups and pushed - last < depth:
            pushed += 1
    return keys.size / cycles
