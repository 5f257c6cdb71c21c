"""The timeline of a training run: what `hotline train --timeline` writes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotline.host.account import Account
from hotline.host.timeline import schedule, summary
from hotline.host.timeline_files import write_picture, write_trace

__all__ = ["WORK", "TimelineOptions", "parse_times", "write_timeline"]

#: Work of the GPU in a step.
WORK = ("popular", "nonpopular", "gradients", "update")


@dataclass(frozen=True, kw_only=True)
class TimelineOptions:
    """How times are made of what was counted.

    Parameters
    ----------
    file : Path
        For the trace; the picture goes beside it, as ``.png``.
    clock_mhz : float
        Clock of the device.
    bus_gbytes : float or None
        What the bus carries, in 10^9 bytes a second; None: as much as the device wants.
    gpu_seconds : dict
        Time of work by name, instead of that measured here.

    Raises
    ------
    ValueError
        A value outside its range.
    """

    file: Path
    clock_mhz: float = 100.0
    bus_gbytes: float | None = None
    gpu_seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file.suffix != ".json":
            raise ValueError(f"the timeline must be a .json file, not {str(self.file)!r}")
        for name, value in (("clock", self.clock_mhz), ("bus", self.bus_gbytes)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"the {name} must be above 0 and finite, not {value}")


def write_timeline(account: Account, options: TimelineOptions) -> dict[str, Any]:
    """Write trace and picture; returns what hides behind what, ready for JSON."""
    rate = None if options.bus_gbytes is None else options.bus_gbytes * 1e9
    events = schedule(
        account.spans or (),
        clock_mhz=options.clock_mhz,
        bytes_per_second=rate,
        gpu_seconds=options.gpu_seconds,
    )
    write_trace(events, options.file)
    write_picture(events, options.file.with_suffix(".png"))
    return summary(events) | {
        "clock_mhz": options.clock_mhz,
        "bus_gbytes": options.bus_gbytes,
        "gpu_seconds": options.gpu_seconds or "measured",
    }


def parse_times(text: str) -> dict[str, float]:
    """Times in seconds from a text such as ``popular=0.001,nonpopular=0.002``.

    Raises
    ------
    ValueError
        It is something else, or names unknown work.
    """
    times = {}
    for part in text.split(",") if text else ():
        found = re.fullmatch(r"(\w+)=([0-9.eE+-]+)", part.strip())
        try:
            name, seconds = found[1], float(found[2])
        except (TypeError, ValueError):
            raise ValueError(
                f"GPU times must look like popular=0.001,update=0.0002, not {text!r}"
            ) from None
        if name not in WORK or not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(
                f"GPU times must be at least 0, of {', '.join(WORK)}, not {part.strip()!r}"
            )
        times[name] = seconds
    return times
