"""The driver's back-end for a top under cocotb, with the agents of this harness.

They do to the design what AXI allows; :mod:`hotline.host.cocotb_backend` is the one for users.
"""

from __future__ import annotations

from cocotb.task import resume

from harness.axi_lite import AxiLiteMaster
from harness.axi_memory import AxiMemory, ErrorRange
from harness.bench import Bench, config
from hotline.golden.memory import Memory

__all__ = ["HarnessBackend"]


class HarnessBackend:
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
