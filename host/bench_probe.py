"""The hot table alone in simulation, fed with a group of keys every cycle.

Behind the bus of the whole device the table cannot be seen at its limit. So this is a top with the
same ports, in which nothing but a memory of keys stands before the table.
"""

from __future__ import annotations

import re

import numpy as np
from amaranth import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from hotline.gen.config import Config, log2
from hotline.gen.verilog import to_verilog
from hotline.golden.memory import Memory as Image
from hotline.host.verilated import VerilatorBackend
from hotline.rtl.axi_lite import Response
from hotline.rtl.hot_table import HotTable
from hotline.rtl.interfaces import HotOp
from hotline.rtl.top import top_ports

__all__ = ["GROUPS", "ProbedTable", "TableProbe"]

#: Groups in the memory of keys; they are sent over and over.
GROUPS = 1024

#: Registers: which key is written next (group * lanes + lane), its halves (the high one writes it),
#: how many groups to send (starts), cycles from the first to the last answer, cycles that lanes
#: waited for banks.
_PLACE, _KEY_LO, _KEY_HI, _START, _CYCLES, _STALLS = 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34

#: Head of the module of which all banks are instances.
_BANK = re.compile(r"(module hot_table_bank\s*\(.*?\);)", re.DOTALL)


class TableProbe(wiring.Component):
    """A hot table whose look-ups come from a memory of keys; `irq` when all are answered.

    Offers a group every cycle and takes every answer, so that the table alone decides how long it
    takes. Reset empties the table; the keys must be written again.

    Parameters
    ----------
    config : Config
        Of the table.

    Members
    -------
    As :class:`~hotline.rtl.top.Hotline`; the AXI4 master is silent.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(top_ports(config))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.domains.sync = ClockDomain(local=True)
        m.d.comb += [ClockSignal().eq(self.aclk), ResetSignal().eq(~self.aresetn)]
        m.submodules.table = table = HotTable(config)

        place, low, count = Signal(32), Signal(32), Signal(32)
        start, cycles, stalls = Signal(), Signal(32), Signal(32)
        write = self._registers(
            m, {_PLACE: place, _KEY_LO: low}, {_CYCLES: cycles, _STALLS: stalls}
        )
        with m.If(write & (self.s_axil_awaddr == _KEY_HI)):
            m.d.sync += place.eq(place + 1)
        with m.If(write & (self.s_axil_awaddr == _START)):
            m.d.sync += count.eq(self.s_axil_wdata)
            m.d.comb += start.eq(1)

        sent, answered, loaded = Signal(32), Signal(32), Signal()
        accepted = table.request.valid & table.request.ready
        request, group = table.request.payload, Signal(range(GROUPS))
        m.d.comb += [
            table.request.valid.eq(loaded & (sent != count)),
            table.response.ready.eq(1),
            request.op.eq(HotOp.LOOKUP),
            request.group.meta.count.eq(config.lanes),
            request.group.meta.split.eq(config.lanes),
            group.eq(sent + accepted),
        ]
        lane_of, group_of = place[: log2(config.lanes)], place[log2(config.lanes) :]
        for lane in range(config.lanes):
            memory = Memory(shape=config.key_bits, depth=GROUPS, init=[])
            m.submodules[f"keys_{lane}"] = memory
            port, read = memory.write_port(), memory.read_port()
            key = (self.s_axil_wdata << 32) | low
            here = (lane_of == lane) if config.lanes > 1 else 1
            m.d.comb += [
                port.addr.eq(group_of),
                port.data.eq(key),
                port.en.eq(write & (self.s_axil_awaddr == _KEY_HI) & here),
                read.addr.eq(group),
                request.group.key[lane].eq(read.data),
            ]
        came = table.response.valid
        m.d.sync += [
            loaded.eq(~start & (sent + accepted != count)),
            sent.eq(sent + accepted),
            answered.eq(answered + came),
            stalls.eq(stalls + table.bank_stall),
            self.irq.eq((count != 0) & (answered == count)),
        ]
        with m.If((answered != 0) & (answered != count)):
            m.d.sync += cycles.eq(cycles + 1)
        with m.If(start):
            m.d.sync += [sent.eq(0), answered.eq(0), cycles.eq(0), stalls.eq(0), self.irq.eq(0)]
        return m

    def _registers(
        self, m: Module, writable: dict[int, Signal], readable: dict[int, Signal]
    ) -> Signal:
        """An AXI4-Lite slave; returns the strobe of a write."""
        write, read = Signal(), Signal()
        m.d.comb += [
            write.eq(self.s_axil_awvalid & self.s_axil_wvalid & ~self.s_axil_bvalid),
            read.eq(self.s_axil_arvalid & ~self.s_axil_rvalid),
            self.s_axil_awready.eq(write),
            self.s_axil_wready.eq(write),
            self.s_axil_arready.eq(read),
            self.s_axil_bresp.eq(Response.OKAY),
            self.s_axil_rresp.eq(Response.OKAY),
            self.m_axi_rready.eq(1),
            self.m_axi_bready.eq(1),
        ]
        with m.If(self.s_axil_bready):
            m.d.sync += self.s_axil_bvalid.eq(0)
        with m.If(self.s_axil_rready):
            m.d.sync += self.s_axil_rvalid.eq(0)
        with m.If(write):
            m.d.sync += self.s_axil_bvalid.eq(1)
        for offset, register in writable.items():
            with m.If(write & (self.s_axil_awaddr == offset)):
                m.d.sync += register.eq(self.s_axil_wdata)
        with m.If(read):
            m.d.sync += [self.s_axil_rvalid.eq(1), self.s_axil_rdata.eq(0)]
            for offset, register in readable.items():
                with m.If(self.s_axil_araddr == offset):
                    m.d.sync += self.s_axil_rdata.eq(register)
        return write


class ProbedTable:
    """The simulation of a :class:`TableProbe`, built when it is made."""

    def __init__(self, config: Config) -> None:
        self.config = config
        text = to_verilog(TableProbe(config), "hotline")
        # Compiled once, not once for each bank: half the time.
        text = _BANK.sub(r"\1 /*verilator no_inline_module*/", text)
        self.backend = VerilatorBackend(config, Image(), verilog=text)

    def close(self) -> None:
        """Free the simulation."""
        self.backend.close()

    def rate(self, keys: np.ndarray, groups: int) -> tuple[float, float]:
        """Keys a cycle, and the share of the cycles in which a lane waited for a bank.

        Parameters
        ----------
        keys : np.ndarray
            int64 [GROUPS, lanes].
        groups : int
            To send; the keys are repeated.
        """
        write = self.backend.write_register
        write(_PLACE, 0)
        for key in keys.ravel().tolist():
            write(_KEY_LO, key & 0xFFFFFFFF)
            write(_KEY_HI, key >> 32)
        write(_START, groups)
        self.backend.run(200 * groups * self.config.lanes + 100_000, "irq")
        cycles, _ = self.backend.read_register(_CYCLES)
        stalls, _ = self.backend.read_register(_STALLS)
        return (groups - 1) * self.config.lanes / cycles, stalls / cycles
