"""cocotb side of test_registers.py."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotbext.axi import AxiLiteBus
from cocotbext.axi import AxiLiteMaster as IndependentMaster
from harness.axi_lite import AxiLiteMaster
from harness.bench import Bench, config
from harness.streams import StreamSource, pack

from hotline.gen.register_map import COUNTERS, VERSION, WINDOWS, capabilities
from hotline.golden.registers import OKAY, SLVERR, Registers
from hotline.rtl.counters import (
    COMMAND_COUNTERS,
    EVENT_COUNTERS,
    command_counts,
    counter_events,
)
from hotline.rtl.interfaces import TableField, table_write, windows
from hotline.rtl.register_store import failure

PREFIX = "s_axil__"
REGISTERS = Registers(config()).by_name
WRITABLE = [name for name, register in REGISTERS.items() if register.writable]
OFFSET = {name: register.offset for name, register in REGISTERS.items()}
TABLE_NAMES = ("TABLE_BASE_LO", "TABLE_BASE_HI", "TABLE_ROWS", "TABLE_ROW_BYTES")
INPUTS = (
    "restart", "soft_reset_pending", "busy", "error", "dirty", "draining", "ring_head",
    "completion_event", "error_event",
)  # fmt: skip


class Device:
    """A register bank with its bench, its host, and the golden registers beside it."""

    def __init__(self, dut: Any, pause: float = 0.0) -> None:
        self.dut = dut
        self.bench = Bench(dut)
        self.host = AxiLiteMaster(self.bench, PREFIX, pause=pause)
        self.failures = StreamSource(self.bench, "failure", failure())
        self.counts = StreamSource(self.bench, "counts", command_counts())
        self.golden = Registers(config())
        self.busy = False
        self.tables = [[None] * 4 for _ in range(config().max_tables)]
        for name in INPUTS:
            getattr(dut, name).value = 0
        dut.events.value = 0
        dut.table_write__ready.value = 1
        self.bench.on_sample(self._watch_tables)

    def _watch_tables(self) -> None:
        if int(self.dut.table_write__valid.value):
            change = table_write(config()).from_bits(int(self.dut.table_write__payload.value))
            self.tables[change.table][TableField(change.field).value] = change.value

    async def read(self, name: str) -> int:
        """Value of a register; the answer must be OKAY."""
        value, response = await self.host.read(OFFSET[name])
        assert response == OKAY, name
        return value

    async def write(self, name: str, value: int) -> None:
        """Write a register, here and in the golden model; the answer must be OKAY."""
        assert await self.host.write(OFFSET[name], value) == OKAY, f"{name} = {value:#x}"
        assert self.golden_write(OFFSET[name], value) == OKAY

    async def read64(self, name: str) -> int:
        """Value of a register pair."""
        return await self.read(f"{name}_LO") | await self.read(f"{name}_HI") << 32

    async def pulse(self, name: str) -> None:
        """Raise an input for one cycle."""
        getattr(self.dut, name).value = 1
        await self.bench.cycles(1)
        getattr(self.dut, name).value = 0

    def golden_write(self, offset: int, value: int, strobe: int = 0xF) -> int:
        """The write in the golden model, with what the command interpreter does of it."""
        name, response = self.golden.write(offset, value, strobe, self.busy)
        if name == "CONTROL":
            self.golden.put(name, value & 1)
        if name in ("RING_BASE_LO", "RING_BASE_HI", "RING_LOG2"):
            self.golden.put("RING_TAIL", 0)
        return response

    def random_access(self) -> tuple[int, int, int]:
        """Offset, value and strobe of an access, legal about half of the time."""
        rng = self.bench.rng
        register = list(REGISTERS.values())[int(rng.integers(len(REGISTERS)))]
        if rng.random() < 0.6:  # rather not always the counters, which are half of the map
            register = REGISTERS[str(rng.choice([*TABLE_NAMES, *WRITABLE]))]
        offset = register.offset + int(rng.choice([0, 0, 0, 0, 1, 3]))
        if rng.random() < 0.1:
            offset = int(rng.integers(1 << 12))
        low, high, align = register.minimum, register.maximum, register.align
        inside = low + int(rng.integers(high - low + 1)) // align * align
        value = [
            inside, inside, inside, low, high, low - 1, high + 1, inside ^ 1 << rng.integers(32),
            int(rng.integers(1 << 32)),
        ][int(rng.integers(9))]  # fmt: skip
        strobe = 0xF if rng.random() < 0.9 else int(rng.integers(16))
        return offset, int(value) & 0xFFFFFFFF, strobe

    async def compare(self) -> None:
        """Every output and every register, of all instances, is as in the golden model."""
        golden, dut = self.golden, self.dut
        await self.bench.cycles(2)
        assert int(dut.run.value) == golden.get("CONTROL")
        assert int(dut.ring_base.value) == golden.wide("RING_BASE")
        assert int(dut.ring_log2.value) == golden.get("RING_LOG2")
        assert int(dut.ring_tail.value) == golden.get("RING_TAIL")
        assert int(dut.gpu_count.value) == golden.get("GPU_COUNT")
        bounds = [
            {"lo": golden.wide("WINDOW_LO", number), "hi": golden.wide("WINDOW_HI", number)}
            for number in range(WINDOWS)
        ]
        assert int(dut.windows.value) == pack(windows(config()), bounds)
        for number, table in enumerate(self.tables):
            assert table == [golden.get(name, number) for name in TABLE_NAMES], number
        for name, register in REGISTERS.items():
            if register.readable:
                expected = golden.read(register.offset)
                assert await self.host.read(register.offset) == expected, name
        for selector in {register.selector for register in REGISTERS.values()} - {None}:
            for number in range(REGISTERS[selector].maximum + 1):
                await self.write(selector, number)
                for name, register in REGISTERS.items():
                    if register.selector == selector:
                        assert await self.read(name) == golden.get(name, number), (name, number)


@cocotb.test
async def identity_and_reset_values(dut) -> None:
    device = Device(dut)
    await device.bench.start()
    assert await device.read("ID") == 0x4C544F48
    major, minor, patch = VERSION
    assert await device.read("VERSION") == major << 16 | minor << 8 | patch
    assert await device.read("CONFIG_HASH") == config().config_hash
    assert await device.read("CAPS") == capabilities(config())
    await device.compare()


@cocotb.test
@cocotb.parametrize(pause=[0.0, 0.6])
async def random_accesses(dut, pause: float) -> None:
    """Every kind of access, legal or not, answered and applied as the golden model says."""
    device = Device(dut, pause)
    bench, golden = device.bench, device.golden
    await bench.start()
    refused = 0
    for number in range(2000 if pause == 0 else 600):
        if number % 30 == 0:
            device.busy = bool(bench.rng.integers(2))
            dut.busy.value = int(device.busy)
            golden.put("STATUS", int(device.busy))
        offset, value, strobe = device.random_access()
        if offset & ~3 == OFFSET["COUNTERS"]:
            continue  # its effect on the snapshot has a test of its own
        if bench.rng.random() < 0.3:
            assert await device.host.read(offset) == golden.read(offset), f"read of {offset:#x}"
            continue
        response = await device.host.write(offset, value, strobe)
        expected = device.golden_write(offset, value, strobe)
        assert response == expected, f"write of {value:#x}, {strobe:#x} to {offset:#x}"
        refused += response == SLVERR
    assert refused > 100
    dut.busy.value = 0
    device.busy = False
    golden.put("STATUS", 0)
    await device.compare()


@cocotb.test
async def live_registers(dut) -> None:
    """STATUS, CONTROL, RING_HEAD and the pulses."""
    device = Device(dut)
    seen = {"soft_reset": 0, "resume": 0, "ring_reset": 0}

    def watch() -> None:
        for name in seen:
            seen[name] += int(getattr(dut, name).value)

    device.bench.on_sample(watch)
    await device.bench.start()
    for bit, name in enumerate(("busy", "error", "dirty", "draining")):
        getattr(dut, name).value = 1
        assert await device.read("STATUS") == 1 << bit
        getattr(dut, name).value = 0
    dut.ring_head.value = 0x5A5A
    assert await device.read("RING_HEAD") == 0x5A5A
    await device.write("CONTROL", 7)
    assert seen == {"soft_reset": 1, "resume": 1, "ring_reset": 0}
    assert await device.read("CONTROL") == 1
    dut.soft_reset_pending.value = 1
    assert await device.read("CONTROL") == 3
    await device.write("RING_LOG2", 4)
    await device.write("RING_TAIL", 15)
    assert int(dut.ring_tail.value) == 15
    await device.write("RING_BASE_LO", 0x40)
    assert await device.read("RING_TAIL") == 0
    assert seen == {"soft_reset": 1, "resume": 1, "ring_reset": 2}


@cocotb.test
async def interrupts(dut) -> None:
    """A set wins over a clear in the same cycle; irq follows within four cycles."""
    device = Device(dut)
    await device.bench.start()
    await device.pulse("completion_event")
    assert await device.read("IRQ_STATUS") == 1
    assert not int(dut.irq.value)
    await device.write("IRQ_ENABLE", 3)
    await device.bench.cycles(4)
    assert int(dut.irq.value)
    await device.write("IRQ_STATUS", 1)
    await device.bench.cycles(4)
    assert not int(dut.irq.value) and await device.read("IRQ_STATUS") == 0
    dut.error_event.value = 1  # in every cycle, so also in that of the clear
    await device.write("IRQ_STATUS", 3)
    dut.error_event.value = 0
    assert await device.read("IRQ_STATUS") == 2
    assert int(dut.irq.value)


@cocotb.test
async def failures(dut) -> None:
    """ERROR_* show the last failure, whatever the bus does meanwhile."""
    device = Device(dut, pause=0.3)
    rng = device.bench.rng
    await device.bench.start()
    for number in range(20):
        info = int(rng.integers(1 << 63))
        device.failures.send({"status": number % 9, "info": info})
        await device.read("ID")
        await device.failures.drained()
        assert await device.read("ERROR_STATUS") == number % 9
        assert await device.read64("ERROR_INFO") == info


@cocotb.test
async def performance_counters(dut) -> None:
    """Snapshots are atomic, a clear loses nothing; absent counters read 0."""
    device = Device(dut)
    bench, golden = device.bench, device.golden
    events, number = counter_events(), len(EVENT_COUNTERS)
    live = {"on": True}

    def drive() -> None:
        bits = int(bench.rng.integers(1 << number)) if live["on"] else 0
        dut.events.value = 0 if bench.in_reset else bits

    def sample() -> None:
        event = events.from_bits(int(dut.events.value))
        golden.count(**{name: event[name.lower()] for name in EVENT_COUNTERS})

    bench.on_drive(drive)
    bench.on_sample(sample)
    await bench.start()
    for turn in range(12):
        amounts = [
            {name.lower(): int(bench.rng.integers(1 << 32)) for name in COMMAND_COUNTERS}
            for _ in range(1 + turn % 3)
        ]
        device.counts.send_all(amounts)
        await bench.cycles(int(bench.rng.integers(700)))
        await device.counts.drained()
        for amount in amounts:
            golden.count(**{name.upper(): value for name, value in amount.items()})
        live["on"] = False  # so that the cycle of the snapshot does not matter
        await bench.cycles(2)
        command = 1 + turn % 3
        assert await device.host.write(OFFSET["COUNTERS"], command) == OKAY
        if command & 1:
            golden.snapshot()
        if command & 2:
            golden.clear_counters()
        live["on"] = True
        shown = {name: await device.read64(name) for name in COUNTERS}
        assert shown == {name: golden.wide(name) for name in COUNTERS}
        assert await device.read("COUNTERS_SATURATED") == 0
    assert await device.host.write(OFFSET["COUNTERS"], 0) == SLVERR
    assert await device.host.read(OFFSET["COUNTERS"]) == (0, SLVERR)


@cocotb.test
async def soft_reset_in_mid_traffic(dut) -> None:
    """Accesses around a restart are answered, and the registers are as after reset."""
    device = Device(dut)
    bench = device.bench
    await bench.start()
    for _ in range(12):
        await device.write("RING_LOG2", 5)
        await device.write("TABLE_ROWS", 77)
        delay = int(bench.rng.integers(12))

        async def restart(cycles: int = delay) -> None:
            await bench.cycles(cycles)
            await device.pulse("restart")

        task = cocotb.start_soon(restart())
        assert await device.host.write(OFFSET["IRQ_ENABLE"], 1) == OKAY
        await device.host.read(OFFSET["ID"])
        await task
        applied = await device.read("IRQ_ENABLE")
        device.golden.reset()
        await device.write("IRQ_ENABLE", applied)
        await device.compare()
        await device.write("IRQ_ENABLE", 0)


@cocotb.test
async def independent_master(dut) -> None:
    """cocotbext-axi, many accesses in flight, finds what it wrote."""
    device = Device(dut)
    await device.bench.start()
    bus = AxiLiteBus.from_prefix(dut, PREFIX.removesuffix("_"))
    master = IndependentMaster(bus, dut.clk, dut.rst)
    master.write_if.aw_channel.log.setLevel("WARNING")
    await master.write(OFFSET["RING_LOG2"], (9).to_bytes(4, "little"))
    for tail in range(20):
        write = master.init_write(OFFSET["RING_TAIL"], tail.to_bytes(4, "little"))
        reads = [master.init_read(OFFSET["ID"], 4), master.init_read(OFFSET["CAPS"], 4)]
        await write.wait()
        assert write.data.resp == OKAY
        values = []
        for read in reads:
            await read.wait()
            values.append(int.from_bytes(read.data.data, "little"))
        assert values == [0x4C544F48, capabilities(config())]
        answer = await master.read(OFFSET["RING_TAIL"], 4)
        assert int.from_bytes(answer.data, "little") == tail
    refused = await master.write(OFFSET["ID"], bytes(4))
    assert refused.resp == SLVERR
    partial = await master.write(OFFSET["RING_TAIL"], bytes(2))
    assert partial.resp == SLVERR
