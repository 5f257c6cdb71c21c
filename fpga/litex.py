"""The accelerator in a LiteX SoC.

::

    from hotline.fpga.litex import add_hotline

    add_hotline(soc, preset("ecp5").replace(addr_width=32, data_width=32), folder="build/hotline")

The registers become a region of the SoC's bus, the bus master joins the SoC's DMA bus (its main bus
where it has no DMA bus of its own), and the interrupt becomes one of the CPU's where there is one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotline.gen.config import Config
from hotline.gen.export import generate

try:
    from litex.gen import LiteXModule
    from litex.soc.integration.soc import SoCRegion
    from litex.soc.interconnect import axi
    from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
    from migen import ClockSignal, Instance, ResetSignal, Signal
except ModuleNotFoundError as error:
    raise RuntimeError(
        f"hotline.fpga.litex needs LiteX ({error}): install the extra 'litex'"
    ) from None

__all__ = ["HotlineModule", "add_hotline"]

_TOP = "hotline"
_REGISTER_BITS = 12


class HotlineModule(LiteXModule):
    """The top as a LiteX module in the clock domain `sys`.

    Parameters
    ----------
    platform : litex.build.generic_platform.GenericPlatform
        Gets the Verilog.
    config : Config
        Of the accelerator.
    folder : path
        For the files of ``hotline generate``; made if need be.
    address_width : int
        Of the bus that `dma` will join, in bits.

    Raises
    ------
    ValueError
        The accelerator's addresses are wider than the bus.

    Members
    -------
    bus : AXILiteInterface
        The registers, 4 KiB.
    dma : AXIInterface
        The bus master.
    irq : Signal
        Level of the interrupt.
    ev : EventManager
        With the source `hotline`, for the SoC's interrupt controller.
    """

    def __init__(
        self, platform: Any, config: Config, folder: str | Path, address_width: int = 32
    ) -> None:
        if config.addr_width > address_width:
            raise ValueError(
                f"addr_width must be at most the {address_width} bits of the SoC's bus, not "
                f"{config.addr_width}"
            )
        self.config = config
        self.bus = axi.AXILiteInterface(data_width=32, address_width=address_width)
        self.dma = axi.AXIInterface(
            data_width=config.data_width, address_width=address_width, id_width=config.id_width
        )
        self.irq = Signal()
        self.ev = EventManager()
        self.ev.hotline = EventSourceLevel(description="Hotline's interrupt.")
        self.ev.finalize()
        self.comb += self.ev.hotline.trigger.eq(self.irq)

        ports: dict[str, Any] = {
            "i_aclk": ClockSignal("sys"),
            "i_aresetn": ~ResetSignal("sys"),
            "o_irq": self.irq,
        }
        address = {name: Signal(config.addr_width) for name in ("ar", "aw")}
        for channel, signal in address.items():
            # LiteX has the wider address.
            self.comb += getattr(self.dma, channel).addr.eq(signal)
        for channel, fields, sends in (
            ("ar", ("addr", "id", "len", "size", "burst", "cache", "prot"), True),
            ("aw", ("addr", "id", "len", "size", "burst", "cache", "prot"), True),
            ("w", ("data", "strb", "last"), True),
            ("r", ("data", "id", "resp", "last"), False),
            ("b", ("id", "resp"), False),
        ):
            stream = getattr(self.dma, channel)
            self._bind(ports, f"m_axi_{channel}", stream, fields, sends)
            if channel in address:
                ports[f"o_m_axi_{channel}addr"] = address[channel]
        registers: tuple[tuple[str, tuple[str, ...], bool], ...] = (
            ("aw", (), False),
            ("w", ("data", "strb"), False),
            ("b", ("resp",), True),
            ("ar", (), False),
            ("r", ("data", "resp"), True),
        )
        for channel, names, sends in registers:
            self._bind(ports, f"s_axil_{channel}", getattr(self.bus, channel), names, sends)
        for channel in ("aw", "ar"):
            # LiteX hands down whole addresses; the region is aligned to its size.
            ports[f"i_s_axil_{channel}addr"] = getattr(self.bus, channel).addr[:_REGISTER_BITS]
            ports[f"i_s_axil_{channel}prot"] = 0
        self.specials += Instance(_TOP, **ports)

        folder = Path(folder)
        generate(config, _TOP, folder)
        platform.add_source(str(folder / f"{_TOP}.v"))

    @staticmethod
    def _bind(
        ports: dict[str, Any], prefix: str, stream: Any, fields: tuple[str, ...], sends: bool
    ) -> None:
        """Join a channel; `sends` if the accelerator drives it."""
        out, back = ("o", "i") if sends else ("i", "o")
        ports[f"{out}_{prefix}valid"] = stream.valid
        ports[f"{back}_{prefix}ready"] = stream.ready
        for field in fields:
            ports[f"{out}_{prefix}{field}"] = getattr(stream, field)


def add_hotline(
    soc: Any,
    config: Config,
    folder: str | Path,
    *,
    origin: int | None = None,
    name: str = "hotline",
) -> HotlineModule:
    """Put the accelerator into a SoC that is not finalised yet.

    Parameters
    ----------
    soc : litex.soc.integration.soc.SoC
    config : Config
        Its `data_width` must be that of the bus, its `addr_width` at most that of the bus.
    folder : path
        For the Verilog.
    origin : int, optional
        Address of the registers; by default LiteX finds one.
    name : str
        Of the region, the bus master and the interrupt.

    Raises
    ------
    ValueError
        The configuration does not fit the bus.
    """
    bus = getattr(soc, "dma_bus", soc.bus)
    if config.data_width != bus.data_width:
        raise ValueError(
            f"data_width must be the {bus.data_width} bits of the SoC's bus, not "
            f"{config.data_width}: LiteX's converters of AXI widths take no bursts apart"
        )
    module = HotlineModule(soc.platform, config, folder, bus.address_width)
    soc.add_module(name, module)
    region = SoCRegion(origin=origin, size=1 << _REGISTER_BITS, cached=False)
    soc.bus.add_slave(name, module.bus, region)
    bus.add_master(name, module.dma)
    if soc.irq.enabled:
        soc.irq.add(name, use_loc_if_exists=True)
    return module
