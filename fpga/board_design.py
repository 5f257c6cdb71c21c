"""A board's whole design for `amaranth-boards`: clock, reset and pads around the board top."""

from __future__ import annotations

from typing import Any

from amaranth import (
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    Instance,
    Module,
    Signal,
)
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from hotline.fpga.board_top import BoardTop
from hotline.fpga.pll import ecp5_pll, ice40_pll

__all__ = ["SDRAM_PHASE", "BoardDesign"]

#: Degrees of the SDRAM's clock behind the core clock. It is sent with a delay of about 3 ns through
#: a pad, and data comes up to 6 ns after its edge: at 80 to 110 MHz data then is stable around the
#: core's edge two cycles later, and commands around the SDRAM's.
SDRAM_PHASE = 270


class BoardDesign(Elaboratable):
    """Top of a bitstream.

    Reset: until the PLL has locked, and while the board's reset button, where it has one, is held.

    Parameters
    ----------
    top : BoardTop
        What is in it.
    """

    def __init__(self, top: BoardTop) -> None:
        self.top = top

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        board = self.top.board
        m.domains.sync = ClockDomain()
        locked = Signal()
        clock_pin = platform.request(platform.default_clk, dir="-")
        if board.family == "ecp5":
            self._ecp5_clocks(m, clock_pin, locked)
        else:
            self._ice40_clock(m, clock_pin, locked)
        reset = Signal()
        m.d.comb += reset.eq(~locked)
        if platform.default_rst is not None:
            m.submodules.reset_pad = pad = io.Buffer(
                "i", platform.request(platform.default_rst, dir="-")
            )
            m.d.comb += reset.eq(~locked | pad.i)
        m.submodules.reset = ResetSynchronizer(reset, domain="sync")

        m.submodules.top = top = self.top
        uart = platform.request("uart", 0, dir="-")
        m.submodules.rx_pad = rx = io.Buffer("i", uart.rx)
        m.submodules.tx_pad = tx = io.Buffer("o", uart.tx)
        m.d.comb += [top.serial_rx.eq(rx.i), tx.o.eq(top.serial_tx)]
        if board.ram == "sdram":
            self._sdram_pads(m, platform.request("sdram", 0, dir="-"))
        return m

    def _ecp5_clocks(self, m: Module, pin: io.PortLike, locked: Signal) -> None:
        """The core clock, and that of the SDRAM."""
        board = self.top.board
        pll = ecp5_pll(board.clock_in_mhz, board.core_mhz, SDRAM_PHASE)
        m.submodules.clock_pad = pad = io.Buffer("i", pin)
        loop = Signal()
        # Output phases count from CPHASE = DIV - 1.
        outputs = {
            "CLKOP": (loop, pll.loop, pll.loop - 1, 0),
            "CLKOS": (ClockSignal(), pll.output, pll.output - 1, 0),
        }
        if board.ram == "sdram":
            m.domains.sdram = ClockDomain(reset_less=True)
            coarse = pll.output - 1 + pll.coarse
            outputs["CLKOS2"] = (ClockSignal("sdram"), pll.output, coarse, pll.fine)
        ports: dict[str, Any] = {}
        for name, (clock, divisor, coarse, fine) in outputs.items():
            ports |= {
                f"p_{name}_ENABLE": "ENABLED",
                f"p_{name}_DIV": divisor,
                f"p_{name}_CPHASE": coarse,
                f"p_{name}_FPHASE": fine,
                f"o_{name}": clock,
            }
        m.submodules.pll = Instance(
            "EHXPLLL",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            p_CLKI_DIV=pll.reference,
            p_CLKFB_DIV=pll.feedback,
            p_FEEDBK_PATH="CLKOP",
            **ports,
            i_CLKI=pad.i,
            i_CLKFB=loop,
            i_RST=Const(0),
            i_STDBY=Const(0),
            i_PHASESEL0=Const(0),
            i_PHASESEL1=Const(0),
            i_PHASEDIR=Const(0),
            i_PHASESTEP=Const(0),
            i_PHASELOADREG=Const(0),
            i_PLLWAKESYNC=Const(0),
            i_ENCLKOP=Const(0),
            o_LOCK=locked,
        )

    def _ice40_clock(self, m: Module, pin: io.SingleEndedPort, locked: Signal) -> None:
        board = self.top.board
        pll = ice40_pll(board.clock_in_mhz, board.core_mhz)
        m.submodules.pll = Instance(
            "SB_PLL40_PAD",
            p_FEEDBACK_PATH="SIMPLE",
            p_DIVR=Const(pll.divr, 4),
            p_DIVF=Const(pll.divf, 7),
            p_DIVQ=Const(pll.divq, 3),
            p_FILTER_RANGE=Const(pll.filter_range, 3),
            i_PACKAGEPIN=pin.io,
            i_RESETB=Const(1),
            i_BYPASS=Const(0),
            o_PLLOUTGLOBAL=ClockSignal(),
            o_LOCK=locked,
        )

    def _sdram_pads(self, m: Module, port: Any) -> None:
        """Registers in the pads, and the SDRAM's own clock through one."""
        pins = self.top.sdram
        command = pins.command.as_value()
        # The port inverts what is active low.
        outputs = {
            "ras": ~command[2],
            "cas": ~command[1],
            "we": ~command[0],
            "ba": pins.bank,
            "a": pins.address,
            "dqm": pins.mask,
            "cs": Const(1),
            "clk_en": Const(1),
        }
        for name, value in outputs.items():
            m.submodules[f"{name}_pad"] = pad = io.FFBuffer("o", getattr(port, name))
            m.d.comb += pad.o.eq(value)
        m.submodules.dq_pad = dq = io.FFBuffer("io", port.dq)
        m.d.comb += [dq.o.eq(pins.dq_o), dq.oe.eq(pins.dq_oe), pins.dq_i.eq(dq.i)]
        m.submodules.clock_out = clock = io.DDRBuffer("o", port.clk, o_domain="sdram")
        m.d.comb += [clock.o[0].eq(1), clock.o[1].eq(0)]
