"""cocotb side of test_key_stream.py: random commands against a model of spec section 7."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cocotb
import numpy as np
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource
from key_stream_traffic import LENGTHS, Command, model, random_command

from hotline.gen.config import Config
from hotline.rtl.interfaces import (
    Status,
    TableField,
    key_group,
    read_beat,
    read_request,
    table_write,
)
from hotline.rtl.key_stream import KeyMode


class Region:
    """A read port of the engine: answers requests from words, and fails one burst."""

    def __init__(self, bench: Bench, name: str, config_: Config) -> None:
        self.config, self.name, self.bench = config_, name, bench
        self.content, self.base, self.fault, self.in_window = b"", 0, -1, True
        self.beats = 0
        self.source = StreamSource(bench, f"{name}_data", read_beat(config_))
        self.sink = StreamSink(
            bench, f"{name}_request", read_request(config_), callback=self._answer
        )

    def load(self, base: int, content: bytes, fault: int, in_window: bool) -> None:
        self.base, self.content, self.fault, self.in_window = base, content, fault, in_window
        self.beats = 0

    def _answer(self, request: dict[str, int]) -> None:
        size = self.config.data_bytes
        start, beats = request["addr"], request["beats"]
        assert 1 <= beats <= self.config.max_burst_beats and start % size == 0
        assert start // 4096 == (start + beats * size - 1) // 4096
        end = self.base + -(-len(self.content) // 64) * 64
        assert self.base <= start and start + beats * size <= end, "reads outside the region"
        broken = start <= self.fault < start + beats * size
        if broken:
            code = Status.BUS_READ if self.in_window else Status.ADDR_WINDOW
            getattr(self.bench.dut, f"{self.name}_fault_code").value = code.value
            getattr(self.bench.dut, f"{self.name}_fault_addr").value = start
            beats = beats if self.in_window else 1
        self.beats += beats
        for i in range(beats):
            at = start - self.base + i * size
            value = int.from_bytes(self.content[at : at + size].ljust(size, b"\xee"), "little")
            if broken:
                value = int.from_bytes(self.bench.rng.bytes(size), "little")
            self.source.send({"data": value, "last": i == beats - 1, "fault": broken})


class KeyStreamBench:
    """The block with its two read ports, its table registers and a sink."""

    def __init__(self, dut: Any) -> None:
        self.config = config()
        self.bench = Bench(dut)
        self.dut = dut
        self.index = Region(self.bench, "index", self.config)
        self.length = Region(self.bench, "length", self.config)
        self.groups = StreamSink(self.bench, "groups", key_group(self.config))
        self.rows = [0] * self.config.max_tables
        self.limit = 1 << self.config.row_bits
        dut.start.value = 0
        dut.table_valid.value = 0

    async def write_table(self, table: int, which: TableField, value: int) -> None:
        bits = table_write(self.config)
        raw = table | which.value << bits["field"].offset | value << bits["value"].offset
        self.dut.table_write.value = raw
        self.dut.table_valid.value = 1
        await self.bench.cycles()
        self.dut.table_valid.value = 0

    async def set_rows(self) -> None:
        rng = self.bench.rng
        for table in range(self.config.max_tables):
            top = min(self.limit, 0xFFFF_FFFF)
            self.rows[table] = int(rng.choice([1, 2, int(rng.integers(1, 1 << 8)), top]))
            await self.write_table(table, TableField.ROWS, self.rows[table])
            await self.write_table(table, TableField.ROW_BYTES, 0)

    def pauses(self, index: float, length: float, groups: float) -> None:
        self.index.source.pause = self.index.sink.pause = index
        self.length.source.pause = self.length.sink.pause = length
        self.groups.pause = groups

    async def run(self, command: Command) -> list[dict]:
        """Groups of the command, up to the one with `last`."""
        dut = self.dut
        words = np.array(command.words, dtype="<u4").tobytes()
        lengths = np.array(command.lengths, dtype="<u2").tobytes()
        fault = command.fault
        self.index.load(command.indices, words, fault.get("index", -1), command.in_window)
        self.length.load(LENGTHS, lengths, fault.get("length", -1), command.in_window)
        dut.mode.value = command.mode.value
        dut.one_hot.value = int(command.one_hot)
        dut.aligned.value = int(command.aligned)
        dut.count.value = command.count
        dut.num_tables.value = command.num_tables
        dut.num_keys.value = command.num_keys
        dut.indices.value = command.indices
        dut.lengths.value = LENGTHS
        dut.start.value = 1
        await self.bench.cycles()
        dut.start.value = 0
        groups = self.groups.items
        await self.bench.until(
            lambda: bool(groups) and groups[-1]["meta"]["last"] == 1,
            f"last group of {command}",
            20_000,
        )
        result = list(groups)
        groups.clear()
        return result

    def check(self, command: Command, groups: list[dict]) -> None:
        """Groups against the model."""
        expected = model(self.config, command, self.rows)
        samples, begun = collect(groups, command.aligned)
        where = f"{expected.status} {expected.info:#x}, {command}"
        assert all(not group["meta"]["last"] for group in groups[:-1]), where
        assert groups[-1]["meta"]["error"] == (expected.status != Status.OK), where
        assert samples == expected.samples, where
        if expected.status == Status.OK:
            assert not begun, where
            return
        meta = groups[-1]["meta"]
        assert (meta["count"], meta["split"], meta["end_a"], meta["end_b"]) == (0, 0, 0, 0)
        # Keys before the error may have come; of a sample whose lengths failed, they mean nothing.
        assert not expected.begun or begun == expected.begun[: len(begun)], where
        assert int(self.dut.fault_code.value) == expected.status.value, where
        assert int(self.dut.fault_info.value) == expected.info, (
            hex(int(self.dut.fault_info.value)),
            where,
        )


def collect(groups: list[dict], aligned: bool) -> tuple[list[list[int]], list[int]]:
    """Samples from groups, and the keys of the one that is still open; checks the boundaries.

    An `aligned` group belongs to one sample.
    """
    samples: list[list[int]] = []
    begun: list[int] = []
    for group in groups:
        meta, keys = group["meta"], group["key"]
        assert meta["split"] <= meta["count"] <= len(keys)
        assert meta["end_a"] or (meta["split"] == meta["count"] and not meta["end_b"])
        assert not aligned or (meta["split"] == meta["count"] and not meta["end_b"])
        begun += keys[: meta["split"]]
        if meta["end_a"]:
            samples.append(begun)
            begun = keys[meta["split"] : meta["count"]]
            if meta["end_b"]:
                samples.append(begun)
                begun = []
    return samples, begun


@cocotb.test
@cocotb.parametrize(pause=[0.0, 0.4])
async def random_commands(dut, pause: float) -> None:
    """Every status at every place, back to back, with and without pauses."""
    bench = KeyStreamBench(dut)
    await bench.bench.start()
    await bench.set_rows()
    rng = bench.bench.rng
    seen: Counter[Status] = Counter()
    for _ in range(80):
        if pause:
            bench.pauses(*(float(rng.choice([0.0, pause, 0.8])) for _ in range(3)))
        command = random_command(rng, bench.config, bench.rows)
        groups = await bench.run(command)
        bench.check(command, groups)
        status = model(bench.config, command, bench.rows).status
        seen[status] += 1
        # All beats that were asked for must go, also after an error, without help.
        await bench.bench.cycles(20)
        await bench.index.source.drained()
        await bench.length.source.drained()
        await bench.bench.cycles(4)
        if status == Status.OK:
            size = bench.config.data_bytes
            beats = bench.index.beats, bench.length.beats
            wanted = -(-4 * len(command.words) // size), -(-2 * len(command.lengths) // size)
            assert beats == (wanted if command.count else (0, 0)), (beats, wanted, command)
        assert not bench.groups.items, "nothing comes behind the last group"
        if status != Status.OK:
            await bench.bench.reset(1)
    print(dict(seen))


@cocotb.test
async def reset_in_mid_traffic(dut) -> None:
    bench = KeyStreamBench(dut)
    await bench.bench.start()
    await bench.set_rows()
    tables = min(4, bench.config.max_tables)
    words = [0] * (40 * tables)
    command = Command(KeyMode.SAMPLES, 40, tables, len(words), True, words)
    for cycles in (1, 3, 8, 21):
        bench.pauses(0.0, 0.0, 1.0)
        task = cocotb.start_soon(bench.run(command))
        await bench.bench.cycles(cycles)
        task.cancel()
        dut.start.value = 0
        await bench.bench.reset()
        bench.index.source.clear()
        bench.groups.items.clear()
        await bench.bench.cycles(2)
        bench.pauses(0.0, 0.0, 0.0)
        bench.check(command, await bench.run(command))
        await bench.index.source.drained()


@cocotb.test
async def line_rate(dut) -> None:
    """One-hot: a full group every cycle; and with as many lanes as words, a beat."""
    bench = KeyStreamBench(dut)
    await bench.bench.start()
    await bench.set_rows()
    width, words = bench.config.lanes, bench.config.data_words
    tables = min(26, bench.config.max_tables)
    keys = tables * 64
    command = Command(KeyMode.SAMPLES, 64, tables, keys, True, [0] * keys)
    groups = await bench.run(command)
    bench.check(command, groups)
    times = bench.groups.times
    cycles = times[-1] - times[0]
    best = max(-(-keys // width), -(-keys // words))
    print(f"{keys} keys in {cycles + 1} cycles, bound {best}")
    assert cycles <= best + 2
    assert len(groups) == -(-keys // width)

    await bench.index.source.drained()
    command.aligned = True
    groups = await bench.run(command)
    bench.check(command, groups)
    assert len(groups) == 64 * -(-tables // width)
    cycles = times[-1] - times[-len(groups)]
    assert cycles <= max(len(groups), -(-keys // words)) + 2
