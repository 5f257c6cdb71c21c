"""The driver's back-end for a top in a cocotb simulation, and cocotbext-axi as its peer."""

from __future__ import annotations

from typing import Any

import cocotb
from amaranth.lib.wiring import In
from cocotb.task import resume
from cocotb.triggers import FallingEdge, Timer
from cocotbext.axi import AxiBus, AxiRam

from harness.axi_lite import AxiLiteMaster
from harness.axi_memory import AxiMemory, ErrorRange
from harness.bench import Bench, config
from harness.layouts import width
from hotline.golden.memory import Memory
from hotline.rtl.top import Hotline

__all__ = ["CocotbBackend", "PeerMemory", "attach_peer", "peer_verilog"]


class CocotbBackend:
    """Registers, interrupt and memory of the design under test, for code in a bridged thread.

    Parameters
    ----------
    bench : Bench
    memory : Memory
        What the bus model works on.
    bus : AxiMemory, optional
        That bus model, for injected errors.
    pause : float
        Of the register accesses, see :class:`~harness.axi_lite.AxiLiteMaster`.
    """

    def __init__(
        self, bench: Bench, memory: Memory, bus: AxiMemory | None = None, pause: float = 0.0
    ) -> None:
        self.config = config()
        self.bench = bench
        self.memory = memory
        self.bus = bus
        self.master = AxiLiteMaster(bench, pause=pause)

    def write_register(self, offset: int, value: int) -> int:
        """Response of a register write."""
        return resume(self.master.write)(offset, value)

    def read_register(self, offset: int) -> tuple[int, int]:
        """Value and response of a register read."""
        return resume(self.master.read)(offset)

    def wait_irq(self, max_cycles: int) -> bool:
        """Wait for the interrupt; fails the test if it does not come."""
        resume(self._wait)(max_cycles)
        return True

    async def _wait(self, max_cycles: int) -> None:
        irq = self.bench.dut.irq
        await self.bench.until(lambda: int(irq.value) == 1, "irq", max_cycles)

    def add_error(self, first: int, last: int, *, reads: bool = True, writes: bool = True) -> None:
        """Answer bursts that touch bytes `first` to `last` with SLVERR."""
        assert self.bus is not None, "the peer cannot inject errors"
        self.bus.errors.append(ErrorRange(first, last, reads=reads, writes=writes))

    def clear_errors(self) -> None:
        """No more errors."""
        if self.bus is not None:
            self.bus.errors.clear()

    def close(self) -> None:
        """Nothing to free: cocotb owns the simulation."""


class PeerMemory:
    """A :class:`Memory` as the buffer that cocotbext-axi reads and writes by slices."""

    def __init__(self, memory: Memory, size: int) -> None:
        self._memory = memory
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice) -> bytes:
        return self._memory.read(place.start, place.stop - place.start).tobytes()

    def __setitem__(self, place: slice, data: bytes) -> None:
        self._memory.write(place.start, bytes(data))


def peer_verilog(design: Hotline) -> str:
    """A module `hotline_peer` around `hotline` for an agent that samples at rising edges.

    After a rising edge Verilator shows such an agent the next cycle. So it gets a clock
    `peer_clk` of its own, which rises just before `aclk`, and what it drives reaches the design
    only at the falling edge of `aclk`, as if it came from a register of the right clock.
    """
    ports, registers, binding = ["input wire peer_clk"], [], []
    for name, member in design.signature.members.items():
        bits = width(member.shape)
        wide = f"[{bits - 1}:0] " if bits > 1 else ""
        ports.append(f"{'input' if member.flow is In else 'output'} wire {wide}{name}")
        if member.flow is In and name.startswith("m_axi_"):
            registers.append(f"reg {wide}{name}_q; always @(negedge aclk) {name}_q <= {name};")
            binding.append(f".{name}({name}_q)")
        else:
            binding.append(f".{name}({name})")
    return (
        "module hotline_peer(" + ", ".join(ports) + ");\n" + "\n".join(registers)
        + "\nhotline design_under_test(" + ", ".join(binding) + ");\nendmodule\n"
    )  # fmt: skip


def attach_peer(dut: Any, memory: Memory, size: int) -> AxiRam:
    """Connect cocotbext-axi's RAM model to a `hotline_peer`, and run its clock."""

    async def clock() -> None:
        while True:
            await FallingEdge(dut.aclk)
            dut.peer_clk.value = 0
            await Timer(4, "ns")
            dut.peer_clk.value = 1

    dut.peer_clk.value = 0
    cocotb.start_soon(clock())
    bus = AxiBus.from_prefix(dut, "m_axi")
    return AxiRam(bus, dut.peer_clk, size=size, mem=PeerMemory(memory, size))
