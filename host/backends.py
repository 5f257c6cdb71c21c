"""Back-ends of :class:`~hotline.host.device.Device`: the golden model and the Verilated RTL."""

from __future__ import annotations

from typing import Any

from hotline.gen.config import Config
from hotline.golden.accelerator import Hotline
from hotline.golden.memory import Memory
from hotline.host.verilated import VerilatorBackend

__all__ = ["GoldenBackend", "RtlBackend"]


class GoldenBackend(Hotline):
    """The golden model; commands take no time.

    Parameters
    ----------
    config : Config
        The configuration.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config, Memory())

    def wait_irq(self, max_cycles: int) -> bool:
        """Run until the device stops by itself; whether the interrupt is high."""
        self.run()
        return self.irq


class RtlBackend(VerilatorBackend):
    """The generated Verilog in Verilator, in this process.

    Parameters
    ----------
    config : Config
        The configuration.
    **options
        See :class:`~hotline.host.verilated.VerilatorBackend`.
    """

    memory: Memory

    def __init__(self, config: Config, **options: Any) -> None:
        super().__init__(config, Memory(), **options)

    def wait_irq(self, max_cycles: int) -> bool:
        """Simulate until the interrupt is high, at most `max_cycles`; whether it is."""
        try:
            self.run(max_cycles, "irq")
        except TimeoutError:
            return False
        return True
