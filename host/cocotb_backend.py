"""The driver's back-end inside a cocotb test, with the agents of cocotbext-axi as bus partners.

The driver blocks, cocotb does not: call it from a bridged thread. ::

    @cocotb.test
    async def splits(dut):
        await cocotb.task.bridge(work)(dut)

    def work(dut):
        device = Device.open("cocotb", config, dut=dut)

cocotbext-axi samples at rising edges. Verilator shows such an agent the cycle after the edge, so
there the top is :func:`peer_verilog`; other simulators take the plain top as well.
"""

from __future__ import annotations

from typing import Any

from amaranth import Shape
from amaranth.lib import wiring

from hotline.gen.config import Config
from hotline.golden.memory import Memory

try:
    import cocotb
    from cocotb.clock import Clock
    from cocotb.task import resume
    from cocotb.triggers import ClockCycles, FallingEdge, First, RisingEdge, Timer
    from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam
except ModuleNotFoundError as error:
    raise RuntimeError(
        f"the cocotb back-end needs the packages cocotb and cocotbext-axi: {error}"
    ) from None

__all__ = ["CocotbBackend", "PeerMemory", "peer_verilog"]

_PERIOD_NS = 10
#: From the falling edge of `aclk` to the rising edge of `peer_clk`.
_PEER_DELAY_NS = 4
_RESET_CYCLES = 4
_TAIL = 64


class CocotbBackend:
    """The top in a cocotb simulation; make it, and use it, in a bridged thread.

    Starts the clock and resets the design.

    Parameters
    ----------
    config : Config
        What the design was generated from.
    dut : cocotb handle
        The top: `hotline`, or `hotline_peer` of :func:`peer_verilog`.

    Members
    -------
    memory : Memory
        What the design's bus master sees, in place. cocotbext-axi answers no errors: an access to
        what is not mapped fails the test.
    ram : cocotbext.axi.AxiRam
        The memory's agent, for example to pause its channels.
    """

    def __init__(self, config: Config, *, dut: Any) -> None:
        self.config = config
        self.memory = Memory()
        self._dut = dut
        self.ram: AxiRam
        self._master: AxiLiteMaster
        resume(self._start)()

    async def _start(self) -> None:
        dut = self._dut
        dut.aresetn.value = 0
        Clock(dut.aclk, _PERIOD_NS, unit="ns").start()
        clock = dut.aclk
        if hasattr(dut, "peer_clk"):
            clock = dut.peer_clk
            clock.value = 0
            cocotb.start_soon(self._run_peer_clock())
        size = 1 << self.config.addr_width
        buffer = PeerMemory(self.memory, size)
        self.ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), clock, size=size, mem=buffer)
        self._master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), clock)
        await ClockCycles(dut.aclk, _RESET_CYCLES)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)

    async def _run_peer_clock(self) -> None:
        while True:
            await FallingEdge(self._dut.aclk)
            self._dut.peer_clk.value = 0
            await Timer(_PEER_DELAY_NS, "ns")
            self._dut.peer_clk.value = 1

    def write_register(self, offset: int, value: int) -> int:
        """Write a register; returns the AXI response (0 OKAY, 2 SLVERR)."""

        async def access() -> int:
            done = await self._master.write(offset, value.to_bytes(4, "little"))
            return int(done.resp)

        return resume(access)()

    def read_register(self, offset: int) -> tuple[int, int]:
        """Read a register; returns value and AXI response."""

        async def access() -> tuple[int, int]:
            done = await self._master.read(offset, 4)
            return int.from_bytes(done.data, "little"), int(done.resp)

        return resume(access)()

    def wait_irq(self, max_cycles: int) -> bool:
        """Simulate until the interrupt is high, at most `max_cycles`; whether it is."""

        async def wait() -> bool:
            irq = self._dut.irq
            if not irq.value:
                await First(RisingEdge(irq), Timer(max_cycles * _PERIOD_NS, "ns"))
            return bool(irq.value)

        return resume(wait)()

    def close(self) -> None:
        """Nothing to free: cocotb owns the simulation."""


class PeerMemory:
    """A :class:`Memory` as the buffer that cocotbext-axi reads and writes by slices.

    Parameters
    ----------
    memory : Memory
        The regions.
    size : int
        Bytes of the address space.
    """

    def __init__(self, memory: Memory, size: int) -> None:
        self._memory = memory
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice) -> bytes:
        size = place.stop - place.start
        if not self._memory.covers(place.start, size):
            # Reads may run past a region's end to the next 64-byte boundary.
            for base, data in self._memory.regions:
                end = base + data.size
                if base <= place.start and place.stop <= -(-end // _TAIL) * _TAIL:
                    return data[place.start - base :].tobytes()[:size].ljust(size, b"\0")
        return self._memory.read(place.start, size).tobytes()

    def __setitem__(self, place: slice, data: bytes) -> None:
        self._memory.write(place.start, bytes(data))


def peer_verilog(design: wiring.Component) -> str:
    """A module `hotline_peer` around `hotline` for agents that sample at rising edges.

    After a rising edge Verilator shows such an agent the next cycle. So it gets a clock
    `peer_clk` of its own, which rises just before `aclk`, and what it drives reaches the design
    only at the falling edge of `aclk`, as if it came from a register of the right clock.
    """
    ports, registers, binding = ["input wire peer_clk"], [], []
    for name, member in design.signature.members.items():
        bits = Shape.cast(member.shape).width
        wide = f"[{bits - 1}:0] " if bits > 1 else ""
        ports.append(f"{'input' if member.flow is wiring.In else 'output'} wire {wide}{name}")
        if member.flow is wiring.In and name.startswith(("m_axi_", "s_axil_")):
            registers.append(f"reg {wide}{name}_q; always @(negedge aclk) {name}_q <= {name};")
            binding.append(f".{name}({name}_q)")
        else:
            binding.append(f".{name}({name})")
    return (
        "module hotline_peer(" + ", ".join(ports) + ");\n" + "\n".join(registers)
        + "\nhotline design_under_test(" + ", ".join(binding) + ");\nendmodule\n"
    )  # fmt: skip
