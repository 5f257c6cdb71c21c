"""The boards that bitstreams are built for, as data.

Flow, board top and host all read this table. What can be had from `amaranth-boards` (pins, package,
input clock) is repeated here only where the host needs it without that package; a test compares.

Sources of the capacities: Lattice FPGA-DS-02012 (ECP5 and ECP5-5G), table 1.1, and FPGA-DS-02008
(iCE40 UltraPlus), table 1.1. The open tools know the LFE5U-12F as the die of the LFE5U-25F; here
the smaller numbers of the datasheet hold.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BOARDS", "RAM_BASE", "Board", "Capacity", "board"]

#: First byte of the RAM in the device's address space, on every board.
RAM_BASE = 0


@dataclass(frozen=True)
class Capacity:
    """What a device has.

    Parameters
    ----------
    luts, flip_flops : int
        Four-input look-up tables and flip-flops (on an iCE40 both in logic cells).
    block_rams : int
        DP16KD of 18 Kibit (ECP5), or SB_RAM40 of 4 Kibit (iCE40).
    block_ram_bits : int
        Bits of one of them.
    multipliers : int
        18 x 18 (ECP5) or 16 x 16 bits (iCE40).
    """

    luts: int
    flip_flops: int
    block_rams: int
    block_ram_bits: int
    multipliers: int


@dataclass(frozen=True)
class Board:
    """A board, and what is built for it.

    Parameters
    ----------
    name, title : str
        What the command line calls it, and what its maker does.
    platform : str
        Module and class in `amaranth_boards`, with a colon between.
    family : str
        ``"ecp5"`` or ``"ice40"``.
    device, package, speed : str
        As in `amaranth_boards`; an iCE40 UltraPlus has one speed grade only.
    capacity : Capacity
        Of the device.
    clock_in_mhz, core_mhz : float
        Oscillator of the board, and clock of the board top, from a PLL.
    ram : str
        What holds tables, ring and results: ``"sdram"``, ``"block"`` (block RAM of the FPGA) or
        ``"spram"`` (single-port RAM of the iCE40 UltraPlus).
    ram_bytes : int
        Size of that, a power of two; it begins at :data:`RAM_BASE`.
    baud : int
        Bits a second on the serial line over USB.
    seeds : int
        Seeds of place and route that a build tries by default: more than one where that takes
        seconds, and the clock is near to what can be reached.
    """

    name: str
    title: str
    platform: str
    family: str
    device: str
    package: str
    speed: str
    capacity: Capacity
    clock_in_mhz: float
    core_mhz: float
    ram: str
    ram_bytes: int
    baud: int
    seeds: int = 1

    @property
    def baud_divisor(self) -> int:
        """Cycles of the core clock for each bit on the serial line."""
        return round(self.core_mhz * 1e6 / self.baud)


_LFE5U_85F = Capacity(83640, 83640, 208, 18 << 10, 156)
_LFE5U_12F = Capacity(12144, 12144, 32, 18 << 10, 28)
_UP5K = Capacity(5280, 5280, 30, 4 << 10, 8)

#: Board by name.
BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board(
            name="ulx3s-85f", title="Radiona ULX3S-85F", platform="ulx3s:ULX3S_85F_Platform",
            family="ecp5", device="LFE5U-85F", package="BG381", speed="6", capacity=_LFE5U_85F,
            clock_in_mhz=25.0, core_mhz=80.0, ram="sdram", ram_bytes=32 << 20, baud=2_000_000,
        ),
        Board(
            name="ulx3s-12f", title="Radiona ULX3S-12F", platform="ulx3s:ULX3S_12F_Platform",
            family="ecp5", device="LFE5U-12F", package="BG381", speed="6", capacity=_LFE5U_12F,
            clock_in_mhz=25.0, core_mhz=50.0, ram="sdram", ram_bytes=32 << 20, baud=2_000_000,
        ),
        Board(
            name="ecpix5-85f", title="LambdaConcept ECPIX-5-85F",
            platform="ecpix5:ECPIX585Platform", family="ecp5", device="LFE5UM5G-85F",
            package="BG554", speed="8", capacity=_LFE5U_85F, clock_in_mhz=100.0, core_mhz=80.0,
            ram="block", ram_bytes=128 << 10, baud=2_000_000,
        ),
        Board(
            name="icebreaker", title="1BitSquared iCEBreaker",
            platform="icebreaker:ICEBreakerPlatform", family="ice40", device="iCE40UP5K",
            package="SG48", speed="", capacity=_UP5K, clock_in_mhz=12.0, core_mhz=24.0,
            ram="spram", ram_bytes=128 << 10, baud=1_000_000, seeds=3,
        ),
    )
}  # fmt: skip


def board(name: str) -> Board:
    """The board `name`.

    Raises
    ------
    ValueError
        There is no such board.
    """
    if name not in BOARDS:
        raise ValueError(f"board must be one of {', '.join(BOARDS)}, not {name!r}")
    return BOARDS[name]
