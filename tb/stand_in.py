"""A small design with the ports of the top (spec section 6), to test the simulators' harnesses.

It copies `COUNT` bursts of four beats from `SOURCE` to `TARGET`. Reads use all IDs, so responses
may come in any order and interleave.
"""

from __future__ import annotations

from amaranth.hdl import Array, ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config

__all__ = ["BEATS", "StandIn"]

BEATS = 4

ID, CONTROL, STATUS, SOURCE, TARGET, COUNT = 0x000, 0x010, 0x014, 0x020, 0x028, 0x030


def _ports(config: Config) -> dict[str, wiring.Member]:
    address, data, ids = config.addr_width, config.data_width, config.id_width
    request = {
        "valid": Out(1), "ready": In(1), "addr": Out(address), "id": Out(ids), "len": Out(8),
        "size": Out(3), "burst": Out(2), "cache": Out(4), "prot": Out(3),
    }  # fmt: skip
    channels = {
        "m_axi_ar": request,
        "m_axi_aw": request,
        "m_axi_r": {"valid": In(1), "ready": Out(1), "data": In(data), "id": In(ids),
                    "resp": In(2), "last": In(1)},
        "m_axi_w": {"valid": Out(1), "ready": In(1), "data": Out(data), "strb": Out(data // 8),
                    "last": Out(1)},
        "m_axi_b": {"valid": In(1), "ready": Out(1), "id": In(ids), "resp": In(2)},
        "s_axil_aw": {"valid": In(1), "ready": Out(1), "addr": In(12), "prot": In(3)},
        "s_axil_w": {"valid": In(1), "ready": Out(1), "data": In(32), "strb": In(4)},
        "s_axil_b": {"valid": Out(1), "ready": In(1), "resp": Out(2)},
        "s_axil_ar": {"valid": In(1), "ready": Out(1), "addr": In(12), "prot": In(3)},
        "s_axil_r": {"valid": Out(1), "ready": In(1), "data": Out(32), "resp": Out(2)},
    }  # fmt: skip
    ports = {"aclk": In(1), "aresetn": In(1), "irq": Out(1)}
    for prefix, members in channels.items():
        ports |= {prefix + name: member for name, member in members.items()}
    return ports


class StandIn(wiring.Component):
    """See the module.

    Parameters
    ----------
    config : Config
        Only the bus parameters matter.
    fault : str
        Break the protocol on purpose: ``"unaligned"``, ``"boundary"``, ``"drop"`` (WVALID falls
        again), ``"last"`` (WLAST missing).
    """

    def __init__(self, config: Config, fault: str = "") -> None:
        self.config = config
        self.fault = fault
        super().__init__(_ports(config))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain(local=True)
        m.d.comb += [ClockSignal().eq(self.aclk), ResetSignal().eq(~self.aresetn)]
        source, target = Signal(64), Signal(64)
        count, start, busy, error = Signal(32), Signal(), Signal(), Signal()
        self._registers(m, source, target, count, start, busy, error)
        self._copy(m, source, target, count, start, busy, error)
        m.d.sync += self.irq.eq(~busy & (count != 0) & ~start)
        return m

    def _registers(self, m, source, target, count, start, busy, error) -> None:
        write, read = Signal(), Signal()
        m.d.comb += [
            write.eq(self.s_axil_awvalid & self.s_axil_wvalid & ~self.s_axil_bvalid),
            self.s_axil_awready.eq(write),
            self.s_axil_wready.eq(write),
            read.eq(self.s_axil_arvalid & ~self.s_axil_rvalid),
            self.s_axil_arready.eq(read),
        ]
        m.d.sync += start.eq(0)
        with m.If(self.s_axil_bready):
            m.d.sync += self.s_axil_bvalid.eq(0)
        with m.If(self.s_axil_rready):
            m.d.sync += self.s_axil_rvalid.eq(0)
        places = {
            SOURCE: source[:32], SOURCE + 4: source[32:], TARGET: target[:32],
            TARGET + 4: target[32:], COUNT: count, CONTROL: start,
        }  # fmt: skip
        with m.If(write):
            m.d.sync += [self.s_axil_bvalid.eq(1), self.s_axil_bresp.eq(0)]
            with m.Switch(self.s_axil_awaddr):
                for offset, place in places.items():
                    with m.Case(offset):
                        m.d.sync += place.eq(self.s_axil_wdata)
                with m.Default():
                    m.d.sync += self.s_axil_bresp.eq(2)
        values = {ID: 0x4C544F48, STATUS: busy | error << 1, COUNT: count}
        with m.If(read):
            m.d.sync += [self.s_axil_rvalid.eq(1), self.s_axil_rresp.eq(0)]
            with m.Switch(self.s_axil_araddr):
                for offset, value in values.items():
                    with m.Case(offset):
                        m.d.sync += self.s_axil_rdata.eq(value)
                with m.Default():
                    m.d.sync += [self.s_axil_rdata.eq(0), self.s_axil_rresp.eq(2)]

    def _copy(self, m, source, target, count, start, busy, error) -> None:
        step = self.config.data_width // 8
        size = step.bit_length() - 1
        ids = 1 << self.config.id_width
        used = Array(Signal(name=f"used_{i}") for i in range(ids))
        place = Array(Signal(self.config.addr_width, name=f"place_{i}") for i in range(ids))
        number, answered, written = Signal(32), Signal(34), Signal(34)
        odd = {"unaligned": 4, "boundary": 4096 - step}.get(self.fault, 0)
        m.d.comb += [
            self.m_axi_arvalid.eq(busy & (number != count) & ~used[self.m_axi_arid]),
            self.m_axi_arid.eq(number),
            self.m_axi_araddr.eq(source + number * (BEATS * step) + odd),
            self.m_axi_arlen.eq(BEATS - 1),
            self.m_axi_awlen.eq(0),
            self.m_axi_wstrb.eq(-1),
            self.m_axi_wlast.eq(self.fault != "last"),
            self.m_axi_bready.eq(1),
            self.m_axi_rready.eq(
                (~self.m_axi_awvalid | self.m_axi_awready)
                & (~self.m_axi_wvalid | self.m_axi_wready)
                & (written - answered < self.config.write_outstanding)
            ),
        ]
        for request in ("ar", "aw"):
            m.d.comb += [
                getattr(self, f"m_axi_{request}size").eq(size),
                getattr(self, f"m_axi_{request}burst").eq(1),
                getattr(self, f"m_axi_{request}cache").eq(3),
            ]
        with m.If(self.m_axi_arvalid & self.m_axi_arready):
            m.d.sync += [
                number.eq(number + 1),
                used[self.m_axi_arid].eq(1),
                place[self.m_axi_arid].eq(target + number * (BEATS * step)),
            ]
        with m.If(self.m_axi_awready):
            m.d.sync += self.m_axi_awvalid.eq(0)
        with m.If(self.m_axi_wready | (self.fault == "drop")):
            m.d.sync += self.m_axi_wvalid.eq(0)
        with m.If(self.m_axi_rvalid & self.m_axi_rready):
            m.d.sync += [
                written.eq(written + 1),
                self.m_axi_awvalid.eq(1),
                self.m_axi_wvalid.eq(1),
                self.m_axi_awaddr.eq(place[self.m_axi_rid]),
                self.m_axi_wdata.eq(self.m_axi_rdata),
                place[self.m_axi_rid].eq(place[self.m_axi_rid] + step),
                error.eq(error | (self.m_axi_rresp != 0)),
            ]
            with m.If(self.m_axi_rlast):
                m.d.sync += used[self.m_axi_rid].eq(0)
        with m.If(self.m_axi_bvalid):
            m.d.sync += [answered.eq(answered + 1), error.eq(error | (self.m_axi_bresp != 0))]
        with m.If(start):
            m.d.sync += [busy.eq(count != 0), number.eq(0), written.eq(0)]
            m.d.sync += [answered.eq(0), error.eq(0)]
        with m.Elif(answered == count * BEATS):
            m.d.sync += busy.eq(0)
