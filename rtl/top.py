"""The top module: ports of spec section 6, registers, command processor, datapath."""

from __future__ import annotations

from amaranth import ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.axi import axi_read, axi_write
from hotline.rtl.axi_lite import AxiLiteSignature
from hotline.rtl.command_processor import CommandProcessor
from hotline.rtl.datapath import Datapath
from hotline.rtl.registers import RegisterBank

__all__ = ["Hotline", "top_ports"]


def top_ports(config: Config) -> dict[str, wiring.Member]:
    """Ports of the top (spec section 6), by their flat names."""
    master = {**axi_read(config).members, **axi_write(config).members}
    slave = AxiLiteSignature().flip().members
    return {
        "aclk": In(1),
        "aresetn": In(1),
        "irq": Out(1),
        **{f"m_axi_{name}": member for name, member in master.items()},
        **{f"s_axil_{name}": member for name, member in slave.items()},
    }


class Hotline(wiring.Component):
    """The whole accelerator.

    `aclk`, `aresetn` (active low, synchronous), `irq` (level), an AXI4-Lite slave `s_axil_*` and an
    AXI4 master `m_axi_*`.

    Parameters
    ----------
    config : Config
        The configuration.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(top_ports(config))

    def elaborate(self, platform: object) -> Module:
        config, m = self.config, Module()
        # A soft reset acts as aresetn once the bus is quiet; the register port, in a domain of its
        # own with the same clock, answers all along. What a fault flushes is a domain too.
        m.domains.core = ClockDomain(local=True)
        m.domains.flushed = ClockDomain(local=True)
        m.domains.port = ClockDomain(local=True)

        registers, processor, datapath = (
            RegisterBank(config),
            CommandProcessor(config),
            Datapath(config),
        )
        m.submodules.registers = DomainRenamer("port")(registers)
        m.submodules.command_processor = DomainRenamer("core")(processor)
        m.submodules.datapath = DomainRenamer("core")(datapath)
        # From registers, since they go everywhere.
        reset, flush = Signal(init=1, reset_less=True), Signal(init=1, reset_less=True)
        m.d.port += [
            reset.eq(~self.aresetn | processor.reset_request),
            flush.eq(~self.aresetn | processor.reset_request | processor.flush),
        ]
        m.d.comb += [
            ClockSignal("core").eq(self.aclk),
            ClockSignal("flushed").eq(self.aclk),
            ClockSignal("port").eq(self.aclk),
            ResetSignal("core").eq(reset),
            ResetSignal("flushed").eq(flush),
            ResetSignal("port").eq(~self.aresetn),
        ]

        self._bind(m, "m_axi_", axi_read(config), datapath.axi_r)
        self._bind(m, "m_axi_", axi_write(config), datapath.axi_w)
        self._bind(m, "s_axil_", AxiLiteSignature().flip(), registers.s_axil)
        wiring.connect(m, registers.failure, processor.failure)
        wiring.connect(m, registers.counts, processor.counts)
        wiring.connect(m, registers.table_write, datapath.table_write)
        wiring.connect(m, registers.hot_write, datapath.hot_write)
        for name in ("fetch_request", "record", "sweep"):
            wiring.connect(m, getattr(processor, name), getattr(datapath, name))
        wiring.connect(m, datapath.fetch_data, processor.fetch_data)

        m.d.comb += [
            self.irq.eq(registers.irq),
            registers.restart.eq(reset),
            registers.soft_reset_pending.eq(processor.resetting),
            datapath.windows.eq(registers.windows),
            datapath.gpu_count.eq(registers.gpu_count),
        ]
        for name in ("run", "resume", "soft_reset", "ring_reset", "ring_base", "ring_log2"):
            m.d.comb += getattr(processor, name).eq(getattr(registers, name))
        m.d.comb += processor.ring_tail.eq(registers.ring_tail)
        for name in ("ring_head", "busy", "error", "dirty"):
            m.d.comb += getattr(registers, name).eq(getattr(processor, name))
        m.d.comb += [
            registers.draining.eq(processor.halt),
            registers.completion_event.eq(processor.completion_event),
            registers.error_event.eq(processor.error_event),
        ]
        for name in (
            "job", "start", "list_start", "list_base", "learner_clear", "fetching",
            "halt",
        ):  # fmt: skip
            m.d.comb += getattr(datapath, name).eq(getattr(processor, name))
        for name in (
            "start_ready", "sweep_done", "results", "command_done", "fetch_fault_status",
            "fetch_fault_info", "fault", "fault_status", "fault_info", "write_idle", "write_fault",
            "write_fault_status", "write_fault_info", "bus_quiet", "quiet", "table_busy",
        ):  # fmt: skip
            m.d.comb += getattr(processor, name).eq(getattr(datapath, name))

        read, write, events = datapath.axi_r, datapath.axi_w, registers.events
        m.d.comb += [
            processor.read_last.eq(read.rvalid & read.rready & read.rlast),
            events.busy_cycles.eq(processor.busy),
            events.read_beats.eq(read.rvalid & read.rready),
            events.read_stalls.eq(read.arvalid & ~read.arready),
            events.write_beats.eq(write.wvalid & write.wready),
            events.write_stalls.eq(write.wvalid & ~write.wready),
            events.bank_stalls.eq(datapath.bank_stall),
        ]
        return m

    def _bind(self, m: Module, prefix: str, signature: wiring.Signature, inner: object) -> None:
        """Join flat ports with the members of an inner interface."""
        for name, member in signature.members.items():
            outer, port = getattr(self, prefix + name), getattr(inner, name)
            if member.flow is Out:
                m.d.comb += outer.eq(port)
            else:
                m.d.comb += port.eq(outer)
