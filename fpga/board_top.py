"""What a board holds, without clock, reset and pads: the accelerator, memory and a bridge."""

from __future__ import annotations

from amaranth import ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.axi_interconnect import AxiInterconnect
from hotline.fpga.axi_memory import AxiMemory
from hotline.fpga.axi_slice import AxiSlice
from hotline.fpga.axi_spram import AxiSpram
from hotline.fpga.block_memory import BlockMemory
from hotline.fpga.boards import Board
from hotline.fpga.sdram import SdramController, SdramPins, SdramTiming
from hotline.fpga.serial_bridge import SerialBridge
from hotline.fpga.uart import Uart
from hotline.gen.config import Config
from hotline.rtl.axi import axi_read, axi_write
from hotline.rtl.axi_lite import AxiLiteSignature
from hotline.rtl.top import Hotline

__all__ = ["BoardTop"]


class BoardTop(wiring.Component):
    """Accelerator and serial bridge on one memory.

    The memory is at address 0 for both; bursts above it are answered DECERR. The bridge has the
    accelerator's registers for itself. On a bus of more than 32 bits the accelerator is behind
    register slices, so that its paths end there.

    Parameters
    ----------
    config : Config
        Of the accelerator.
    board : Board
        Which memory, and how fast.
    divisor : int, optional
        Cycles for each bit on the serial line, if not those of the board.
    power_up_us : float, optional
        First pause of the SDRAM.

    Members
    -------
    serial_rx : In(1)
        From the host; high when idle.
    serial_tx : Out(1)
    sdram : Out(SdramPins)
        On boards with SDRAM only. One register in each direction belongs between it and the chip.

    Raises
    ------
    ValueError
        The configuration does not go with the board's memory.
    """

    def __init__(
        self,
        config: Config,
        board: Board,
        *,
        divisor: int | None = None,
        power_up_us: float | None = None,
    ) -> None:
        if board.ram == "spram" and not config.narrow:
            raise ValueError(
                f"data_width must be 32 on board {board.name}, not {config.data_width}: "
                f"use preset tiny or one made from it"
            )
        self.config, self.board = config, board
        self.divisor = board.baud_divisor if divisor is None else divisor
        pause = {} if power_up_us is None else {"power_up_us": power_up_us}
        self.timing = SdramTiming(board.core_mhz, **pause)
        members = {"serial_rx": In(1, init=1), "serial_tx": Out(1, init=1)}
        if board.ram == "sdram":
            members["sdram"] = Out(SdramPins())
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.hotline = device = Hotline(config)
        bits = (self.board.ram_bytes - 1).bit_length()
        m.submodules.bridge = bridge = SerialBridge(config, bits)
        m.submodules.uart = uart = Uart(self.divisor)
        m.submodules.interconnect = interconnect = AxiInterconnect(config)
        m.d.comb += [
            uart.rx.eq(self.serial_rx),
            self.serial_tx.eq(uart.tx),
            bridge.irq.eq(device.irq),
        ]
        wiring.connect(m, uart.received, bridge.rx)
        wiring.connect(m, bridge.tx, uart.transmit)

        # Thousands of flip-flops hang on this reset; let it come from a register.
        running = Signal()
        m.d.sync += running.eq(~ResetSignal())
        m.d.comb += [device.aclk.eq(ClockSignal()), device.aresetn.eq(running)]
        _flat(m, device, "s_axil_", AxiLiteSignature().flip(), bridge.axil)

        accelerator_r, accelerator_w = interconnect.masters_r[0], interconnect.masters_w[0]
        if not config.narrow:
            m.submodules.slice = register = AxiSlice(config)
            wiring.connect(m, register.slave_r, accelerator_r)
            wiring.connect(m, register.slave_w, accelerator_w)
            accelerator_r, accelerator_w = register.master_r, register.master_w
        _flat(m, device, "m_axi_", axi_read(config), accelerator_r)
        _flat(m, device, "m_axi_", axi_write(config), accelerator_w)
        wiring.connect(m, bridge.axi_r, interconnect.masters_r[1])
        wiring.connect(m, bridge.axi_w, interconnect.masters_w[1])

        memory = self._memory(m, interconnect.id_width)
        wiring.connect(m, interconnect.memory_r, memory.axi_r)
        wiring.connect(m, interconnect.memory_w, memory.axi_w)
        return m

    def _memory(self, m: Module, id_width: int) -> wiring.Component:
        """The AXI slave of the board's memory, added to `m` with all that is behind it."""
        config, board = self.config, self.board
        if board.ram == "spram":
            m.submodules.memory = spram = AxiSpram(config, id_width)
            return spram
        m.submodules.memory = front = AxiMemory(config, id_width, board.ram_bytes)
        if board.ram == "sdram":
            behind = SdramController(config.data_width, self.timing)
            wiring.connect(m, behind.pins, wiring.flipped(self.sdram))
        else:
            behind = BlockMemory(config.data_width, board.ram_bytes // config.data_bytes)
        m.submodules.ram = behind
        wiring.connect(m, front.memory, behind.port)
        return front


def _flat(
    m: Module, device: Hotline, prefix: str, signature: wiring.Signature, port: object
) -> None:
    """Join the flat ports of the accelerator with an interface seen from the other side."""
    for name, member in signature.members.items():
        outer, inner = getattr(device, prefix + name), getattr(port, name)
        m.d.comb += inner.eq(outer) if member.flow is Out else outer.eq(inner)
