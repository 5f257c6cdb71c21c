"""Several AXI masters on one memory."""

from __future__ import annotations

from typing import Any

from amaranth import Array, Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.axi_channels import read_port, sink, source, stream_for, write_port
from hotline.gen.config import Config, ceil_log2

__all__ = ["AxiInterconnect"]


class AxiInterconnect(wiring.Component):
    """Merges the bursts of several masters on one memory, whose answers find back by their IDs.

    On the memory's side the upper bits of an ID are the number of the master.

    Latency: a cycle for AR and AW, none for the other channels. Throughput: a read burst every
    second cycle; a write burst takes two cycles and those of its beats. The masters take turns,
    burst by burst, where several want to go. W follows AW: a master whose AW was taken must send
    its data, whatever the other ones do (the accelerator and the bridge have it before they issue
    AW). Back-pressure: as AXI says; an answer that its master does not take delays those behind
    it. Reset: no burst in flight; masters and memory must be reset with it.

    Parameters
    ----------
    config : Config
        Of the accelerator; all masters have its widths.
    masters : int
        How many, at least 2.

    Members
    -------
    masters_r, masters_w : In, arrays of AXI ports
        From the masters.
    memory_r, memory_w : Out
        To the memory.
    """

    def __init__(self, config: Config, masters: int = 2) -> None:
        if masters < 2:
            raise ValueError(f"masters must be at least 2, not {masters}")
        self.config, self.masters = config, masters
        self.id_width = config.id_width + ceil_log2(masters)
        super().__init__(
            {
                "masters_r": In(read_port(config)).array(masters),
                "masters_w": In(write_port(config)).array(masters),
                "memory_r": Out(read_port(config, self.id_width)),
                "memory_w": Out(write_port(config, self.id_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._route(m, "ar", self.masters_r, self.memory_r)
        self._answer(m, "r", self.masters_r, self.memory_r)
        self._route(m, "aw", self.masters_w, self.memory_w)
        self._answer(m, "b", self.masters_w, self.memory_w)
        return m

    def _route(self, m: Module, channel: str, ports: object, memory: object) -> None:
        """Pass on one address after the other, and the data of a write burst behind its own."""
        offers = [source(m, port, channel) for port in ports]
        owner = Signal(range(self.masters), name=f"{channel}_owner")
        passed = Signal(name=f"{channel}_passed")
        offer = self._choose(m, channel, memory, offers, owner)
        with m.FSM(name=f"{channel}_state"):
            with m.State("IDLE"):
                m.d.sync += owner.eq(self._next(m, channel, offers, owner))
                with m.If(Cat(item.valid for item in offers).any()):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.d.comb += passed.eq(1)
                with m.If(offer.valid & offer.ready):
                    m.next = "DATA" if channel == "aw" else "IDLE"
            if channel == "aw":
                beats = [source(m, port, "w") for port in ports]
                flowing = Signal()
                beat = self._choose(m, "w", memory, beats, owner)
                with m.State("DATA"):
                    m.d.comb += flowing.eq(1)
                    with m.If(beat.valid & beat.ready & beat.payload.last):
                        m.next = "IDLE"
                self._gate(m, beat, beats, owner, flowing)
        self._gate(m, offer, offers, owner, passed)

    def _next(self, m: Module, channel: str, offers: list, owner: Value) -> Value:
        """The first master that wants to go, beginning after the one that went last."""
        wanted = Cat(item.valid for item in offers)
        choice = Signal(range(self.masters), name=f"{channel}_choice")
        m.d.comb += choice.eq(owner)
        for distance in reversed(range(1, self.masters)):
            others = Array((number + distance) % self.masters for number in range(self.masters))
            with m.If(Array(wanted)[others[owner]]):
                m.d.comb += choice.eq(others[owner])
        return choice

    def _choose(
        self, m: Module, channel: str, memory: object, offers: list, owner: Value
    ) -> stream.Interface:
        """What the owner offers, on its way to the memory, without valid and ready of its own."""
        chosen = stream_for(memory, channel)
        payload = Array(item.payload for item in offers)[owner]
        for name, _ in chosen.payload.shape():
            value = Cat(payload.id, owner) if name == "id" else payload[name]
            m.d.comb += chosen.payload[name].eq(value)
        sink(m, memory, channel, chosen)
        return chosen

    def _gate(
        self, m: Module, chosen: stream.Interface, offers: list, owner: Value, go: Value
    ) -> None:
        m.d.comb += chosen.valid.eq(Array(item.valid for item in offers)[owner] & go)
        for number, item in enumerate(offers):
            m.d.comb += item.ready.eq(chosen.ready & go & (owner == number))

    def _answer(self, m: Module, channel: str, ports: Any, memory: object) -> None:
        """Send each answer to the master that its ID names."""
        answer = source(m, memory, channel)
        own = answer.payload.id[: self.config.id_width]
        owner = answer.payload.id[self.config.id_width :]
        for number, port in enumerate(ports):
            mine = owner == number
            for name, _ in answer.payload.shape():
                value = own if name == "id" else answer.payload[name]
                m.d.comb += getattr(port, channel + name).eq(value)
            m.d.comb += getattr(port, channel + "valid").eq(answer.valid & mine)
            with m.If(mine):
                m.d.comb += answer.ready.eq(getattr(port, channel + "ready"))
