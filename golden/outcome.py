"""What a descriptor comes to, and how a command of the interpreter fails."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hotline.golden.bus import Fault
from hotline.golden.descriptor import StatusCode

__all__ = ["CommandError", "Outcome", "require", "spans"]


@dataclass
class Outcome:
    """What a descriptor came to.

    Parameters
    ----------
    status, info : int
        Of the record.
    words : tuple of 6 int
        Words 1 to 6 of the record.
    counts : dict of str to int
        What the counters of section 8 gain.
    undefined : list of (address, size)
        Bytes whose contents the specification leaves open after a failure.
    """

    status: StatusCode = StatusCode.OK
    info: int = 0
    words: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)
    counts: dict[str, int] = field(default_factory=dict)
    undefined: list[tuple[int, int]] = field(default_factory=list)


class CommandError(Exception):
    """Ends a command with the status of `fault`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def require(fault: Fault | None) -> None:
    """Fail with `fault`, if there is one."""
    if fault is not None:
        raise CommandError(fault)


def spans(addresses: np.ndarray, sizes: np.ndarray) -> list[tuple[int, int]]:
    """Pairs (address, size)."""
    return list(zip(addresses.tolist(), sizes.tolist(), strict=True))
