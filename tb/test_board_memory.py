"""The memories of the boards behind their interconnect: two masters, random traffic."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from axi_traffic import Master

from hotline.fpga.axi_interconnect import AxiInterconnect
from hotline.fpga.axi_memory import AxiMemory
from hotline.fpga.axi_slice import AxiSlice
from hotline.fpga.axi_spram import SPRAM_BYTES, AxiSpram
from hotline.fpga.block_memory import BlockMemory
from hotline.fpga.sdram import SDRAM_BYTES, SdramController, SdramTiming
from hotline.fpga.sdram_model import SdramModel
from hotline.gen.config import Config
from hotline.gen.presets import preset

SEED = 5
TINY, ECP5 = preset("tiny"), preset("ecp5")
BLOCK_BYTES = 16 << 10


class System(Elaboratable):
    """Interconnect and memory of a kind of board; the first master behind register slices."""

    def __init__(self, config: Config, kind: str, wrong: SdramTiming | None = None) -> None:
        self.kind = kind
        self.interconnect = AxiInterconnect(config)
        self.slice = AxiSlice(config)
        self.timing = SdramTiming(80.0, power_up_us=1.0)
        wide = self.interconnect.id_width
        if kind == "spram":
            self.size, self.ram = SPRAM_BYTES, AxiSpram(config, wide)
        else:
            self.size = SDRAM_BYTES if kind == "sdram" else BLOCK_BYTES
            self.ram = AxiMemory(config, wide, self.size)
        if kind == "sdram":
            self.behind = SdramController(config.data_width, wrong or self.timing)
            self.model = SdramModel(self.timing)
        elif kind == "block":
            self.behind = BlockMemory(config.data_width, self.size // config.data_bytes)
        slow, fast = self.slice, self.interconnect
        self.ports = [
            (slow.master_r, slow.master_w),
            (fast.masters_r[1], fast.masters_w[1]),
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.slice, m.submodules.interconnect = self.slice, self.interconnect
        m.submodules.ram = self.ram
        wiring.connect(m, self.slice.slave_r, self.interconnect.masters_r[0])
        wiring.connect(m, self.slice.slave_w, self.interconnect.masters_w[0])
        wiring.connect(m, self.interconnect.memory_r, self.ram.axi_r)
        wiring.connect(m, self.interconnect.memory_w, self.ram.axi_w)
        if self.kind != "spram":
            m.submodules.behind = self.behind
            wiring.connect(m, self.ram.memory, self.behind.port)
        if self.kind == "sdram":
            m.submodules.model = self.model
            wiring.connect(m, self.behind.pins, self.model.pins)
        return m


@pytest.mark.parametrize(
    ("kind", "config", "pause"),
    [
        ("block", ECP5, 0.0),
        ("block", TINY, 0.3),
        ("spram", TINY, 0.0),
        ("spram", TINY, 0.3),
        ("sdram", ECP5, 0.0),
        ("sdram", ECP5, 0.3),
        ("sdram", TINY, 0.1),
    ],
)
def test_traffic_of_two_masters(kind: str, config: Config, pause: float) -> None:
    """Every byte read is the one last written, whoever else is at the memory."""
    system = System(config, kind)
    simulator = Simulator(system)
    simulator.add_clock(1e-6)
    # What the model of the chip can hold in Amaranth's simulator.
    size = min(system.size, 128 << 10) // 2
    masters = [
        Master(
            *ports,
            first=number * size,
            size=size,
            outside=system.size,
            seed=random.Random(f"{SEED}{kind}{number}").randrange(1 << 30),
            longest=config.max_burst_beats,
            pause=pause,
            rounds=150,
        )
        for number, ports in enumerate(system.ports)
    ]
    for master in masters:
        simulator.add_process(master.run)

    async def watch(ctx: Any) -> None:
        for _ in range(200):
            await ctx.tick().repeat(100)
            if all(master.done for master in masters):
                break
        else:
            raise TimeoutError(f"not done after 20 000 cycles, seed {SEED}")
        if kind == "sdram":
            assert not ctx.get(system.model.violation)

    simulator.add_testbench(watch)
    simulator.run()
    for master in masters:
        assert master.bursts >= 150 and master.decode_errors > 3 and master.known.any()


def test_chip_notices_a_controller_that_is_too_fast() -> None:
    """The timing of a slower clock breaks the limits at a faster one: the model can fail."""
    system = System(ECP5, "sdram", wrong=SdramTiming(20.0, power_up_us=4.0))
    simulator = Simulator(system)
    simulator.add_clock(1e-6)
    first, second = system.ports[0]
    master = Master(
        first, second, first=0, size=128 << 10, outside=system.size, seed=SEED, longest=4,
        pause=0.0, rounds=10,
    )  # fmt: skip
    simulator.add_process(master.run)

    async def watch(ctx: Any) -> None:
        await ctx.tick().repeat(400)
        assert ctx.get(system.model.violation)

    simulator.add_testbench(watch)
    simulator.run()
