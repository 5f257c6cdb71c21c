"""AXI4-Lite signature of the register port."""

from __future__ import annotations

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["AxiLiteSignature", "Response"]


class Response(enum.Enum, shape=2):
    """xRESP codes that an AXI4-Lite slave gives."""

    OKAY = 0
    SLVERR = 2


class AxiLiteSignature(wiring.Signature):
    """AXI4-Lite, directions as the master sees them; ``In`` makes it a slave port.

    The members are the channel signals of the AXI specification in lower case, so that a thin
    top can bind them to flat ports such as ``s_axil_awaddr``.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    data_width : int
        Bits of a data word, 32 or 64.

    Raises
    ------
    ValueError
        ``data_width`` is not one that AXI4-Lite has.
    """

    def __init__(self, addr_width: int = 12, data_width: int = 32) -> None:
        if data_width not in (32, 64):
            raise ValueError(f"data_width must be one of 32, 64, not {data_width}")
        self.addr_width = addr_width
        self.data_width = data_width
        super().__init__(
            {
                "awvalid": Out(1),
                "awready": In(1),
                "awaddr": Out(addr_width),
                "awprot": Out(3),
                "wvalid": Out(1),
                "wready": In(1),
                "wdata": Out(data_width),
                "wstrb": Out(data_width // 8),
                "bvalid": In(1),
                "bready": Out(1),
                "bresp": In(Response),
                "arvalid": Out(1),
                "arready": In(1),
                "araddr": Out(addr_width),
                "arprot": Out(3),
                "rvalid": In(1),
                "rready": Out(1),
                "rdata": In(data_width),
                "rresp": In(Response),
            }
        )
