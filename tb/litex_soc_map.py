"""Where things are in the SoC of litex_soc.py; without LiteX, for the side that drives it."""

from __future__ import annotations

__all__ = ["RAM_BYTES", "REGISTERS"]

#: RAM lies at address 0, the registers at this one.
RAM_BYTES, REGISTERS = 1 << 15, 0x9000_0000
