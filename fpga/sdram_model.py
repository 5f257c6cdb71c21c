"""An SDRAM chip for simulation, which checks how it is used."""

from __future__ import annotations

from amaranth import Array, Cat, ClockSignal, Const, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.fpga.sdram import CAS_LATENCY, SdramCommand, SdramPins, SdramTiming
from hotline.rtl.shared_module import ModuleLibrary

__all__ = ["STORAGE_VERILOG", "SdramModel"]

_BANKS, _COLUMN_BITS = 4, 9
#: Words of the model in Amaranth's own simulator: enough to change rows and banks.
_SMALL_BITS = 16
_FULL_BITS = 24
#: On the pins when the chip does not drive them.
_NOTHING = 0xA5C3

#: 32 MiB for Verilog simulators. As a memory of Amaranth it would be written with initial values.
STORAGE_VERILOG = """
module hotline_sdram_storage(input clk, input [23:0] addr, input [15:0] data_in, input [1:0] write,
    output reg [15:0] data_out);
  reg [15:0] words [0:16777215];
  always @(posedge clk) begin
    data_out <= words[addr];
    if (write[0]) words[addr][7:0] <= data_in[7:0];
    if (write[1]) words[addr][15:8] <= data_in[15:8];
  end
endmodule
"""


class SdramModel(wiring.Component):
    """The chip and the pad registers between it and the controller, in the controller's clock.

    Data comes after the CAS latency and for one cycle only; otherwise the pins have a constant
    that is not data. Any use that the datasheets do not allow sets `violation` for good: a command
    too early (tRP, tRCD, tRAS, tRC, tRFC, tWR, power-up), in a row that is not open, or before the
    mode is set; a refresh too late; a bus that both sides drive.

    Parameters
    ----------
    timing : SdramTiming
        Clock and power-up time. The limits are computed here from the datasheets.

    Members
    -------
    pins : In(SdramPins)
        Of the controller.
    violation : Out(1)
    """

    def __init__(self, timing: SdramTiming) -> None:
        self.timing = timing
        super().__init__({"pins": In(SdramPins()), "violation": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pins = self.pins
        command, bank = Signal(SdramCommand, init=SdramCommand.NOP), Signal(2)
        address, mask, data, drives = Signal(13), Signal(2), Signal(16), Signal()
        m.d.sync += [
            command.eq(pins.command),
            bank.eq(pins.bank),
            address.eq(pins.address),
            mask.eq(pins.mask),
            data.eq(pins.dq_o),
            drives.eq(pins.dq_oe),
        ]

        rows = Array(Signal(13, name=f"row_{i}") for i in range(_BANKS))
        is_open = Array(Signal(name=f"open_{i}") for i in range(_BANKS))
        writes, reads, wrong = Signal(), Signal(), Signal()
        self._check(m, command, bank, address, is_open, wrong)
        with m.If(wrong):
            m.d.sync += self.violation.eq(1)
        with m.Switch(command):
            with m.Case(SdramCommand.ACTIVATE):
                m.d.sync += [rows[bank].eq(address), is_open[bank].eq(1)]
            with m.Case(SdramCommand.PRECHARGE):
                for i in range(_BANKS):
                    with m.If(address[10] | (bank == i)):
                        m.d.sync += is_open[i].eq(0)
            with m.Case(SdramCommand.WRITE):
                m.d.comb += writes.eq(1)
            with m.Case(SdramCommand.READ):
                m.d.comb += reads.eq(1)

        place = Cat(address[:_COLUMN_BITS], bank, rows[bank])
        found = Signal(16)
        self._storage(m, platform, place, data, Mux(writes, ~mask, 0), found)
        # Stage i is on the pins i + 2 edges after the one that took the command.
        stages = [Signal(16, name=f"stage_{i}") for i in range(CAS_LATENCY - 1)]
        valid = Signal(CAS_LATENCY)
        m.d.sync += [
            valid.eq(Cat(reads, valid)),
            *(b.eq(a) for a, b in zip([found, *stages], stages, strict=False)),
            pins.dq_i.eq(Mux(valid[-1], stages[-1], _NOTHING)),
        ]
        # One cycle between the chip's data and ours.
        spoken = Signal()
        m.d.sync += spoken.eq(valid[-1])
        with m.If((drives & (valid[-1] | spoken)) | (writes & ~drives)):
            m.d.sync += self.violation.eq(1)
        return m

    def _check(self, m: Module, command, bank, address, is_open, wrong) -> None:
        """Set `wrong` for a command that the chip must not get now."""
        cycles = self.timing.cycles
        limits = {"tRP": 20, "tRCD": 20, "tRAS": 45, "tRC": 65, "tRFC": 66, "tWR": 14}
        since = {}
        triggers = {
            "tRP": command == SdramCommand.PRECHARGE,
            "tRCD": command == SdramCommand.ACTIVATE,
            "tRAS": command == SdramCommand.ACTIVATE,
            "tRC": command == SdramCommand.ACTIVATE,
            "tRFC": command == SdramCommand.REFRESH,
            "tWR": command == SdramCommand.WRITE,
        }
        for name, trigger in triggers.items():
            least = cycles(limits[name])
            left = Signal(range(least + 1), name=f"left_{name}")
            since[name] = left != 0
            with m.If(trigger):
                m.d.sync += left.eq(least - 1)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
        powered = Signal(range(self.timing.power_up + 1))
        with m.If(powered != self.timing.power_up):
            m.d.sync += powered.eq(powered + 1)
        refreshed, ready = Signal(range(9)), Signal()
        latest = int(64e6 / 8192 * self.timing.clock_mhz / 1000)
        refresh_age = Signal(range(latest + 2))
        with m.If(command == SdramCommand.REFRESH):
            m.d.sync += refresh_age.eq(0)
        with m.Elif(ready & (refresh_age <= latest)):
            m.d.sync += refresh_age.eq(refresh_age + 1)
        any_open = Cat(*is_open).any()
        busy = since["tRP"] | since["tRFC"]
        with m.Switch(command):
            with m.Case(SdramCommand.NOP):
                m.d.comb += wrong.eq(refresh_age > latest)
            with m.Case(SdramCommand.MODE):
                value = CAS_LATENCY << 4
                m.d.comb += wrong.eq(
                    busy | any_open | (refreshed != 8) | (address != value) | (bank != 0)
                )
                m.d.sync += ready.eq(1)
            with m.Case(SdramCommand.REFRESH):
                m.d.comb += wrong.eq(busy | any_open | since["tRC"])
                with m.If(refreshed != 8):
                    m.d.sync += refreshed.eq(refreshed + 1)
            with m.Case(SdramCommand.PRECHARGE):
                m.d.comb += wrong.eq(
                    busy | since["tRAS"] | since["tWR"] | (powered != self.timing.power_up)
                )
            with m.Case(SdramCommand.ACTIVATE):
                m.d.comb += wrong.eq(busy | since["tRC"] | is_open[bank] | ~ready)
            with m.Default():
                m.d.comb += wrong.eq(busy | since["tRCD"] | ~is_open[bank] | ~ready)

    def _storage(self, m: Module, platform: object, place, data, write, found) -> None:
        if isinstance(platform, ModuleLibrary):
            m.submodules.storage = Instance(
                "hotline_sdram_storage",
                i_clk=ClockSignal(),
                i_addr=place,
                i_data_in=data,
                i_write=write,
                o_data_out=found,
            )
            return
        m.submodules.storage = storage = Memory(shape=16, depth=1 << _SMALL_BITS, init=[])
        port, read = storage.write_port(granularity=8), storage.read_port()
        m.d.comb += [
            port.addr.eq(place),
            port.data.eq(data),
            port.en.eq(write),
            read.addr.eq(place),
            read.en.eq(Const(1)),
            found.eq(read.data),
        ]
