"""A small LiteX SoC with the accelerator: RAM, no CPU, and a port through which a test is host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from litex.build.generic_platform import GenericPlatform, Pins, Subsignal
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import axi
from litex_soc_map import RAM_BYTES, REGISTERS
from migen.genlib.io import CRG

from hotline.fpga.litex import add_hotline
from hotline.gen.config import Config

__all__ = ["soc_verilog"]

_HOST = {
    "aw": {"addr": 32, "prot": 3, "valid": 1, "ready": 1},
    "w": {"data": 32, "strb": 4, "valid": 1, "ready": 1},
    "b": {"resp": 2, "valid": 1, "ready": 1},
    "ar": {"addr": 32, "prot": 3, "valid": 1, "ready": 1},
    "r": {"data": 32, "resp": 2, "valid": 1, "ready": 1},
}


class _Soc(SoCMini):
    mem_map: ClassVar[dict[str, int]] = {**SoCMini.mem_map, "csr": 0xF000_0000}


def _platform() -> GenericPlatform:
    pins = [
        Subsignal(f"{channel}{name}", Pins(width))
        for channel, fields in _HOST.items()
        for name, width in fields.items()
    ]
    io = [("clk", 0, Pins(1)), ("rst", 0, Pins(1)), ("irq", 0, Pins(1)), ("host", 0, *pins)]
    return GenericPlatform("simulation", io)


def soc_verilog(config: Config, folder: Path, bus: str = "wishbone") -> str:
    """Verilog of the SoC, module `soc`, and of the accelerator."""
    platform = _platform()
    soc: Any = _Soc(platform, clk_freq=int(100e6), bus_standard=bus, bus_data_width=32)
    soc.submodules.crg = CRG(platform.request("clk"), platform.request("rst"))
    soc.add_ram("main_ram", origin=0, size=RAM_BYTES)
    hotline = add_hotline(soc, config, folder / "hotline", origin=REGISTERS)
    soc.comb += platform.request("irq").eq(hotline.irq)
    host = axi.AXILiteInterface(data_width=32, address_width=32)
    pads = platform.request("host")
    for channel, fields in _HOST.items():
        for name in fields:
            if name == "prot":  # LiteX has none
                continue
            inner, pad = getattr(getattr(host, channel), name), getattr(pads, channel + name)
            to_pad = (name == "ready") == (channel in ("aw", "w", "ar"))
            soc.comb += pad.eq(inner) if to_pad else inner.eq(pad)
    soc.bus.add_master("host", host)
    soc.finalize()
    text = platform.get_verilog(soc, name="soc").main_source
    # The head has the date, which would make every build a new one; RAM begins empty.
    text = re.sub(
        r"initial begin\s+\$readmemh\(.*?\);\s+end\n", "", text[text.index("module soc") :]
    )
    return text + (folder / "hotline" / "hotline.v").read_text()
