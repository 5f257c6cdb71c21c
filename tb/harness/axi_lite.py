"""AXI4-Lite master for cocotb benches: single register accesses, with random timing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.bench import Bench

__all__ = ["AxiLiteMaster"]


class AxiLiteMaster:
    """Registers of a design behind ``<prefix>awaddr`` and so on.

    Parameters
    ----------
    bench : Bench
    prefix : str
    pause : float
        Probability, per cycle, of delaying valid (separately for AW and W) or ready.
    """

    def __init__(self, bench: Bench, prefix: str = "s_axil_", *, pause: float = 0.0) -> None:
        self.bench = bench
        self.prefix = prefix
        self.pause = pause
        for channel in ("aw", "w", "ar"):
            self._signal(f"{channel}valid").value = 0
        for channel in ("b", "r"):
            self._signal(f"{channel}ready").value = 0
        for channel in ("aw", "ar"):
            self._signal(f"{channel}prot").value = 0

    def _signal(self, name: str) -> Any:
        return getattr(self.bench.dut, self.prefix + name)

    def _wait(self) -> int:
        return int(self.bench.rng.geometric(1 - self.pause)) - 1 if self.pause else 0

    async def _channels(
        self, forward: dict[str, dict[str, int]], back: str, fields: tuple[str, ...]
    ) -> dict[str, int]:
        """Send on the `forward` channels in any order, then take one answer on `back`."""
        delay = {channel: self._wait() for channel in forward}
        pending = set(forward)
        answer: dict[str, int] | None = None
        for _ in range(10_000):
            for channel in pending:
                ready_now = delay[channel] == 0
                self._signal(f"{channel}valid").value = int(ready_now)
                for name, value in forward[channel].items():
                    self._signal(channel + name).value = value if ready_now else 0
                delay[channel] = max(0, delay[channel] - 1)
            accept = self.bench.rng.random() >= self.pause
            self._signal(f"{back}ready").value = int(accept)
            await self.bench.sampled()
            taken = {
                channel
                for channel in pending
                if int(self._signal(f"{channel}valid").value)
                and int(self._signal(f"{channel}ready").value)
            }
            if accept and int(self._signal(f"{back}valid").value):
                assert not pending - taken, f"{back} answered before its request was taken"
                answer = {name: int(self._signal(back + name).value) for name in fields}
            await self.bench.cycles(1)
            pending -= taken
            for channel in taken:
                self._signal(f"{channel}valid").value = 0
            if answer is not None:
                self._signal(f"{back}ready").value = 0
                return answer
        raise AssertionError(f"no answer on {self.prefix}{back}")

    async def write(self, offset: int, value: int, strobe: int = 0xF) -> int:
        """Write a register; returns the response."""
        forward = {"aw": {"addr": offset}, "w": {"data": value, "strb": strobe}}
        return (await self._channels(forward, "b", ("resp",)))["resp"]

    async def read(self, offset: int) -> tuple[int, int]:
        """Read a register; returns value and response."""
        answer = await self._channels({"ar": {"addr": offset}}, "r", ("data", "resp"))
        return answer["data"], answer["resp"]

    async def write64(self, offset: int, value: int) -> None:
        """Write a register pair, low word first; both must be OKAY."""
        for word in range(2):
            response = await self.write(offset + 4 * word, value >> 32 * word & 0xFFFFFFFF)
            assert response == 0, f"write of {offset + 4 * word:#x}: response {response}"

    async def poll(self, offset: int, done: Callable[[int], bool], limit: int = 20_000) -> int:
        """Read a register until `done(value)`."""
        for _ in range(limit):
            value, response = await self.read(offset)
            assert response == 0, f"read of {offset:#x}: response {response}"
            if done(value):
                return value
        raise AssertionError(f"register {offset:#x} stays {value:#x}")
