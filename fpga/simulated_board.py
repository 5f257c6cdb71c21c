"""The board top with what surrounds it on the board, for simulation."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.board_top import BoardTop
from hotline.fpga.boards import Board
from hotline.fpga.sdram_model import STORAGE_VERILOG, SdramModel
from hotline.gen.config import Config
from hotline.gen.verilog import to_verilog

__all__ = ["SIMULATED_TOP", "SimulatedBoard", "simulated_verilog"]

#: Name of the module.
SIMULATED_TOP = "simulated_board"

#: The pause after power-up tests nothing, and takes longer than the rest of a start.
_POWER_UP_US = 1.0


class SimulatedBoard(wiring.Component):
    """:class:`BoardTop`, and the SDRAM chip where the board has one.

    Parameters
    ----------
    config : Config
        Of the accelerator.
    board : Board
    divisor : int
        Cycles for each bit on the serial line.

    Members
    -------
    serial_rx, serial_tx : In(1), Out(1)
        The serial line; high when idle.
    violation : Out(1)
        The SDRAM was used in a way that its datasheet forbids; stays high.
    """

    def __init__(self, config: Config, board: Board, divisor: int) -> None:
        self.top = BoardTop(config, board, divisor=divisor, power_up_us=_POWER_UP_US)
        super().__init__({"serial_rx": In(1, init=1), "serial_tx": Out(1), "violation": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.top = top = self.top
        m.d.comb += [top.serial_rx.eq(self.serial_rx), self.serial_tx.eq(top.serial_tx)]
        if top.board.ram == "sdram":
            m.submodules.sdram = sdram = SdramModel(top.timing)
            wiring.connect(m, top.sdram, sdram.pins)
            m.d.comb += self.violation.eq(sdram.violation)
        return m


def simulated_verilog(config: Config, board: Board, divisor: int) -> str:
    """Verilog of :class:`SimulatedBoard`, complete; its clock is `clk`, its reset `rst`."""
    text = to_verilog(SimulatedBoard(config, board, divisor), SIMULATED_TOP)
    return text + (STORAGE_VERILOG if board.ram == "sdram" else "")
