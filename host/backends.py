"""What the driver runs on: the golden model, the Verilated RTL, a cocotb simulation; by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.golden.accelerator import Hotline
from hotline.golden.memory import Memory
from hotline.host.verilated import VerilatorBackend

__all__ = ["BACKENDS", "Backend", "GoldenBackend", "RtlBackend", "open_backend"]


class Backend(Protocol):
    """What the driver needs of a device: the golden model, a simulation, or a board.

    The device has come out of reset. Time may pass in every call.

    Members
    -------
    config : Config
        What the device was generated from.
    memory : Memory
        What the device's AXI master sees. Regions may be added and removed between calls.
    addresses : (int, int), optional
        First address that the driver may give to a region, and the one behind the last; a
        back-end without this member leaves it all of them.
    """

    config: Config
    memory: Memory

    def write_register(self, offset: int, value: int) -> int:
        """Write a register; returns the AXI response (0 OKAY, 2 SLVERR)."""
        ...

    def read_register(self, offset: int) -> tuple[int, int]:
        """Read a register; returns value and AXI response."""
        ...

    def wait_irq(self, max_cycles: int) -> bool:
        """Let time pass until the interrupt line is high; whether it is.

        At most `max_cycles` cycles, where there are cycles.
        """
        ...

    def close(self) -> None:
        """Give the device back."""
        ...


class GoldenBackend(Hotline):
    """The golden model; commands take no time.

    Parameters
    ----------
    config : Config
        The configuration.
    addresses : (int, int), optional
        First address that the driver may give to a region, and the one behind the last.
    """

    def __init__(self, config: Config, addresses: tuple[int, int] | None = None) -> None:
        super().__init__(config, Memory())
        self.addresses = addresses

    def wait_irq(self, max_cycles: int) -> bool:
        """Run until the device stops by itself; whether the interrupt is high."""
        self.run()
        return self.irq

    def close(self) -> None:
        """Nothing to free."""


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


def _cocotb(config: Config, **options: Any) -> Backend:
    # cocotb exists only inside a simulation, and only where it is installed.
    from hotline.host.cocotb_backend import CocotbBackend

    return CocotbBackend(config, **options)


def _serial(config: Config, **options: Any) -> Backend:
    from hotline.host.serial_backend import SerialBackend

    return SerialBackend(config, **options)


#: How to make a back-end, by name: called with the configuration and the back-end's own options.
#: A board joins with ``BACKENDS["name"] = its_class``.
BACKENDS: dict[str, Callable[..., Backend]] = {
    "golden": GoldenBackend,
    "verilator": RtlBackend,
    "cocotb": _cocotb,
    "serial": _serial,
}


def open_backend(name: str, config: Config | str, **options: Any) -> Backend:
    """The back-end `name` for a configuration or the name of a preset.

    Parameters
    ----------
    name : str
        One of :data:`BACKENDS`.
    config : Config or str
        What the device is generated from.
    **options
        Of the back-end.

    Raises
    ------
    ValueError
        There is no such back-end, or no such preset.
    """
    if name not in BACKENDS:
        raise ValueError(f"back-end must be one of {', '.join(BACKENDS)}, not {name!r}")
    return BACKENDS[name](preset(config) if isinstance(config, str) else config, **options)
