"""cocotb side of test_top.py: the top against the golden model, command by command."""

from __future__ import annotations

import os
from collections.abc import Callable

import cocotb
import numpy as np
from cocotb.task import bridge
from cocotb.triggers import FallingEdge
from harness.axi_memory import AxiMemory, AxiTiming
from harness.bench import Bench, config, random_generator
from harness.cocotb_backend import HarnessBackend
from harness.pair import Pair
from harness.traffic import Traffic

from hotline.gen.commands import Opcode
from hotline.golden.descriptor import Descriptor
from hotline.golden.memory import Memory
from hotline.host.backends import Backend
from hotline.host.cocotb_backend import CocotbBackend
from hotline.host.device import Device

_VALIDS = ("m_axi_arvalid", "m_axi_awvalid", "m_axi_wvalid", "s_axil_bvalid", "s_axil_rvalid")


def _bench(dut) -> Bench:
    return Bench(dut, clock="aclk", reset="aresetn", active_low=True, max_cycles=5_000_000)


def _bus(bench: Bench, memory: Memory, timing: AxiTiming) -> AxiMemory:
    return AxiMemory(
        bench,
        "m_axi_",
        memory.regions,
        timing=timing,
        max_burst_beats=config().max_burst_beats,
        max_reads=config().read_outstanding,
        max_writes=config().write_outstanding,
    )


def _commands(backend: Backend, rng: np.random.Generator) -> None:
    """Random commands on both devices; :class:`Pair` compares all memory after each."""
    pair = Pair(config(), rng, backend=backend)
    traffic = Traffic(pair, rng, tables=3, rows=30, row_bytes=min(100, config().max_row_bytes))
    for _ in range(int(os.environ.get("HOTLINE_COMMANDS", "12"))):
        traffic.any_command()


async def _on_thread(work: Callable[..., None], *arguments: object) -> None:
    await bridge(work)(*arguments)


@cocotb.test
async def commands_on_a_rough_bus(dut) -> None:
    bench = _bench(dut)
    memory = Memory()
    bus = _bus(bench, memory, AxiTiming.rough())
    backend = HarnessBackend(bench, memory, bus, pause=0.2)
    await bench.start()
    await _on_thread(_commands, backend, bench.rng)
    assert bus.idle and not bus.outside


@cocotb.test
async def commands_with_an_independent_peer(dut) -> None:
    """Registers and memory by the agents of cocotbext-axi."""

    def work() -> None:
        _commands(CocotbBackend(config(), dut=dut), random_generator())

    await _on_thread(work)


def _start_load(backend: HarnessBackend, count: int) -> None:
    """Let the device LOAD keys, and do not wait for it."""
    device = Device(backend)
    keys = device.allocate(8 * count)
    ring = device.allocate(128)
    ring.data[:64] = Descriptor(
        opcode=Opcode.LOAD, count=count, lists=keys.address, completion=device.record.address
    ).pack()
    device.set_table(0, keys.address, 1, 4)
    device.write64("RING_BASE", ring.address)
    device.write("RING_LOG2", 1)
    device.write("RING_TAIL", 1)


@cocotb.test
async def reset_in_mid_traffic(dut) -> None:
    bench = _bench(dut)
    memory = Memory()
    bus = _bus(bench, memory, AxiTiming(20, 10, ar_pause=0.5))
    backend = HarnessBackend(bench, memory, bus)
    await bench.start()
    await _on_thread(_start_load, backend, 2000)
    begin = bus.read_beats
    await bench.until(lambda: bus.read_beats > begin + 30, "traffic")
    assert not bus.idle
    await bench.reset(2)
    for _ in range(20):
        assert not any(int(getattr(dut, name).value) for name in _VALIDS)
        await bench.cycles(1)
    memory.regions.clear()
    await _on_thread(_commands, backend, bench.rng)


@cocotb.test
async def record_states_its_cycles(dut) -> None:
    """Words 8-9: from the descriptor's last R beat to the first cycle with the record's AWVALID."""
    bench = _bench(dut)
    memory = Memory()
    bus = _bus(bench, memory, AxiTiming(20, 10))
    backend = HarnessBackend(bench, memory, bus)
    await bench.start()
    seen: dict[int, int] = {}

    async def watch() -> None:
        cycle = last_read = 0
        while True:
            await FallingEdge(dut.aclk)
            cycle += 1
            if dut.m_axi_awvalid.value:
                # A record may take several bursts; the first one counts.
                seen.setdefault(last_read, cycle - last_read)
            if dut.m_axi_rvalid.value and dut.m_axi_rready.value and dut.m_axi_rlast.value:
                last_read = cycle

    cocotb.start_soon(watch())
    stated: list[int] = []

    def commands() -> None:
        device = Device(backend)
        for opcode in (Opcode.NOP, Opcode.CLEAR, Opcode.AGE, Opcode.NOP):
            stated.append(device.execute(Descriptor(opcode=opcode)).cycles)

    await _on_thread(commands)
    assert list(seen.values()) == stated, (seen, stated)
