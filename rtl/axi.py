"""AXI4 master signatures, with the signal names of the specification.

A member ``axi`` of one of these signatures comes out as ``axi__arvalid`` and so on; the top binds
them to its flat ``m_axi_*`` ports. Directions are those of the master.
"""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.burst import beat_bits

__all__ = ["BURST_INCR", "CACHE", "PROT", "axi_read", "axi_size", "axi_write"]

#: AxBURST of an incrementing burst.
BURST_INCR = 0b01
#: AxCACHE: normal memory, not cacheable, bufferable.
CACHE = 0b0011
#: AxPROT: data, non-secure, unprivileged.
PROT = 0b010


def axi_size(config: Config) -> int:
    """AxSIZE of a beat as wide as the bus."""
    return beat_bits(config)


def axi_read(config: Config) -> wiring.Signature:
    """Read address (AR) and read data (R) channels of a master."""
    return wiring.Signature(
        {
            "arvalid": Out(1),
            "arready": In(1),
            "araddr": Out(config.addr_width),
            "arid": Out(config.id_width),
            "arlen": Out(8),
            "arsize": Out(3),
            "arburst": Out(2),
            "arcache": Out(4),
            "arprot": Out(3),
            "rvalid": In(1),
            "rready": Out(1),
            "rdata": In(config.data_width),
            "rid": In(config.id_width),
            "rresp": In(2),
            "rlast": In(1),
        }
    )


def axi_write(config: Config) -> wiring.Signature:
    """Write address (AW), write data (W) and write response (B) channels of a master."""
    return wiring.Signature(
        {
            "awvalid": Out(1),
            "awready": In(1),
            "awaddr": Out(config.addr_width),
            "awid": Out(config.id_width),
            "awlen": Out(8),
            "awsize": Out(3),
            "awburst": Out(2),
            "awcache": Out(4),
            "awprot": Out(3),
            "wvalid": Out(1),
            "wready": In(1),
            "wdata": Out(config.data_width),
            "wstrb": Out(config.data_bytes),
            "wlast": Out(1),
            "bvalid": In(1),
            "bready": Out(1),
            "bid": In(config.id_width),
            "bresp": In(2),
        }
    )
