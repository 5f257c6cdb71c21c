"""Driver, back-ends, data sets, and what runs on them. ``from hotline.host import Device``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotline.host.backends import BACKENDS as BACKENDS
    from hotline.host.batch import Batch as Batch
    from hotline.host.device import Device as Device
    from hotline.host.device_memory import Buffer as Buffer
    from hotline.host.errors import CommandError as CommandError
    from hotline.host.errors import CommandSkippedError as CommandSkippedError
    from hotline.host.errors import RegisterError as RegisterError
    from hotline.host.future import Future as Future
    from hotline.host.lookahead import Lookahead as Lookahead
    from hotline.host.micro_batch import MicroBatch as MicroBatch
    from hotline.host.micro_batch import Split as Split
    from hotline.host.samples import Samples as Samples
    from hotline.host.verilated import BusTiming as BusTiming

#: Where the public names live. They are imported when they are asked for, because the command
#: line and the build tools import this package too, and need none of them.
_HOMES = {
    "BACKENDS": "backends",
    "Batch": "batch",
    "Buffer": "device_memory",
    "BusTiming": "verilated",
    "CommandError": "errors",
    "CommandSkippedError": "errors",
    "Device": "device",
    "Future": "future",
    "Lookahead": "lookahead",
    "MicroBatch": "micro_batch",
    "RegisterError": "errors",
    "Samples": "samples",
    "Split": "micro_batch",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
