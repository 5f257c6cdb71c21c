"""Serial port: loops of two that run at different clocks, noise, broken characters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth import ClockDomain, DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from hotline.fpga.uart import MIN_DIVISOR, Uart

#: Femtoseconds; far above what a clock that is 2 % off needs to be exact.
PERIOD = 1e-8


class _Pair(wiring.Component):
    """Two serial ports that talk to each other, each with a clock of its own."""

    def __init__(self, divisor: int) -> None:
        self.ends = [Uart(divisor) for _ in range(2)]
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for number, end in enumerate(self.ends):
            domain = f"end_{number}"
            m.domains += ClockDomain(domain)
            m.submodules[domain] = DomainRenamer(domain)(end)
            m.d.comb += end.rx.eq(self.ends[1 - number].tx)
        return m


async def _send(ctx: Any, end: Uart, domain: str, data: bytes, gaps: np.ndarray) -> None:
    for byte, gap in zip(data, gaps, strict=True):
        await ctx.tick(domain).repeat(int(gap)) if gap else None
        ctx.set(end.transmit.payload, byte)
        ctx.set(end.transmit.valid, 1)
        await ctx.tick(domain).until(end.transmit.ready)
        ctx.set(end.transmit.valid, 0)


async def _receive(ctx: Any, end: Uart, domain: str, count: int) -> bytes:
    ctx.set(end.received.ready, 1)
    data = b""
    for _ in range(count):
        (byte,) = await ctx.tick(domain).sample(end.received.payload).until(end.received.valid)
        data += bytes([byte])
    return data


@pytest.mark.parametrize("off", [-0.02, 0.0, 0.02])
@pytest.mark.parametrize("divisor", [MIN_DIVISOR, 5, 7, 16])
def test_two_clocks(divisor: int, off: float, seed: int) -> None:
    """Both directions at once, with and without gaps, with clocks that are up to 2 % apart."""
    rng = np.random.default_rng([seed, divisor])
    pair = _Pair(divisor)
    texts = [bytes(rng.integers(0, 256, 60, np.uint8)) for _ in range(2)]
    simulator = Simulator(pair)
    # In steps of a femtosecond: periods and phases that never meet again.
    simulator.add_clock(PERIOD, domain="end_0")
    simulator.add_clock(PERIOD * (1 + off) + 1.3e-14, phase=0.37 * PERIOD, domain="end_1")
    done = []
    for number, end in enumerate(pair.ends):
        gaps = rng.integers(0, 2, 60) * rng.integers(0, 25, 60)
        domain, other = f"end_{number}", texts[1 - number]

        async def sender(ctx: Any, end=end, domain=domain, number=number, gaps=gaps) -> None:
            await _send(ctx, end, domain, texts[number], gaps)

        async def receiver(ctx: Any, end=end, domain=domain, other=other) -> None:
            assert await _receive(ctx, end, domain, len(other)) == other
            done.append(domain)

        simulator.add_testbench(sender)
        simulator.add_testbench(receiver)
    simulator.run()
    assert sorted(done) == ["end_0", "end_1"]


def _drive(divisor: int, levels: list[tuple[int, int]]) -> list[int]:
    """Characters that come out when the line has these levels for these numbers of cycles."""
    uart, found = Uart(divisor), []

    async def line(ctx: Any) -> None:
        ctx.set(uart.received.ready, 1)
        for level, cycles in levels:
            ctx.set(uart.rx, level)
            for _ in range(cycles):
                await ctx.tick()
                if ctx.get(uart.received.valid):
                    found.append(ctx.get(uart.received.payload))

    simulator = Simulator(uart)
    simulator.add_clock(PERIOD)
    simulator.add_testbench(line)
    simulator.run()
    return found


def _character(byte: int, divisor: int, stop: int = 1) -> list[tuple[int, int]]:
    bits = [0, *(byte >> i & 1 for i in range(8)), stop]
    return [(bit, divisor) for bit in bits]


def test_noise_and_broken_characters() -> None:
    good = _character(0xA5, 16)
    assert _drive(16, [(1, 50), *good, (1, 50)]) == [0xA5]
    # A pulse of less than half a bit is no start bit, and one character may follow another.
    assert _drive(16, [(1, 50), (0, 5), (1, 40), *good, *good, (1, 50)]) == [0xA5] * 2
    # No stop bit: dropped; a line that is low for long is not a row of characters.
    broken = _character(0x12, 16, stop=0)
    assert _drive(16, [(1, 50), *broken, (1, 20), *good, (1, 50)]) == [0xA5]
    assert _drive(16, [(1, 50), (0, 5000), (1, 50), *good, (1, 50)]) == [0xA5]


def test_a_character_that_is_not_taken_is_lost() -> None:
    uart = Uart(4)
    levels = [(1, 20), *_character(1, 4), *_character(2, 4), (1, 20)]

    async def line(ctx: Any) -> None:
        for level, cycles in levels:
            ctx.set(uart.rx, level)
            await ctx.tick().repeat(cycles)
        assert ctx.get(uart.received.valid) and ctx.get(uart.received.payload) == 2

    simulator = Simulator(uart)
    simulator.add_clock(PERIOD)
    simulator.add_testbench(line)
    simulator.run()


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_too_fast() -> None:
    with pytest.raises(
        ValueError, match="a bit must last at least 4 cycles, not 3: choose a lower"
    ):
        Uart(3)
