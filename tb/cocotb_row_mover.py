"""cocotb side of test_row_mover.py."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
import numpy as np
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource
from row_tables import SIZE, RowTables

from hotline.golden.pool import add_f32
from hotline.rtl.burst import burst_limit
from hotline.rtl.interfaces import (
    Status,
    hot_write,
    read_beat,
    read_request,
    row_entry,
    table_write,
    write_beat,
)
from hotline.rtl.row_address import row_words_bits

#: ADD is SCATTER with `add`.
GATHER, SCATTER, FILL, BACK, ADD = range(5)
PAGE = 4096


class Mover:
    """The row mover between two simple engines, and what it should have written."""

    def __init__(self, dut: Any, *, pause: float = 0.0, latency: int = 5) -> None:
        self.dut = dut
        self.config = config()
        self.bench = Bench(dut)
        self.latency = latency
        self.fail_burst: int | None = None
        self.failed_addr = 0
        self.bursts: list[tuple[int, int]] = []
        self._coming: deque[tuple[int, dict[str, int]]] = deque()
        self._burst: tuple[int, int] | None = None
        self._answers: deque[int] = deque()
        bench = self.bench
        self.registers = StreamSource(bench, "table_write", table_write(self.config))
        self.hot_registers = StreamSource(bench, "hot_write", hot_write(self.config))
        self.entries = StreamSource(bench, "entries", row_entry(self.config), pause=pause)
        self.data = StreamSource(bench, "data", read_beat(self.config), pause=pause)
        self.requests = StreamSink(
            bench, "request", read_request(self.config), pause=pause, callback=self._read
        )
        self.output = StreamSink(
            bench, "output", write_beat(self.config), pause=pause, callback=self._write
        )
        bench.on_drive(self._deliver)
        for name in ("start", "direction", "hot_rows", "num_tables", "table_limit", "rows"):
            getattr(dut, name).value = 0
        for name in ("add", "pool", "weighted", "row_written", "weights__valid"):
            getattr(dut, name).value = 0
        dut.gpu_count.value = self.config.gpus
        dut.read_fault_code.value = 0
        dut.read_fault_addr.value = 0

    # ---- engines ------------------------------------------------------------------------------

    def _read(self, request: dict[str, int]) -> None:
        addr, beats, width = request["addr"], request["beats"], self.config.data_bytes
        assert addr % width == 0 and 1 <= beats <= burst_limit(self.config)
        assert addr // PAGE == (addr + beats * width - 1) // PAGE
        at = addr - self.tables.origin
        fault = self.fail_burst == len(self.bursts)
        self.bursts.append((addr, beats))
        if fault:
            self.failed_addr = addr
        # Only ADD reads what it has written.
        memory = self.result if self.adds else self.tables.content
        for i in range(beats):
            content = memory[at + i * width : at + (i + 1) * width].tobytes()
            beat = {"data": int.from_bytes(content, "little"), "last": int(i == beats - 1)}
            self._coming.append((self.bench.cycle + self.latency, beat | {"fault": int(fault)}))

    def _deliver(self) -> None:
        if self.bench.in_reset:
            self._coming.clear()
            self._answers.clear()
        answered = bool(self._answers) and self._answers[0] <= self.bench.cycle
        self.dut.row_written.value = int(answered)
        if answered:
            self._answers.popleft()
        while self._coming and self._coming[0][0] <= self.bench.cycle:
            beat = self._coming.popleft()[1]
            if beat["fault"]:
                self.dut.read_fault_code.value = Status.BUS_READ.value
                self.dut.read_fault_addr.value = self.failed_addr
            self.data.send(beat)

    def _write(self, beat: dict[str, int]) -> None:
        width = self.config.data_bytes
        if self._burst is None:
            self._burst = (beat["addr"], 0)
            self.write_bursts += 1
        addr, number = self._burst
        assert beat["addr"] == addr and addr % width == 0
        assert number < burst_limit(self.config)
        assert addr // PAGE == (addr + number * width) // PAGE
        self._burst = None if beat["last"] else (addr, number + 1)
        at = addr + number * width - self.tables.origin
        content = np.frombuffer(beat["data"].to_bytes(width, "little"), np.uint8)
        enabled = np.repeat([bool(beat["strobe"] >> i & 1) for i in range(width // 4)], 4)
        self.result[at : at + width][enabled] = content[enabled]
        self.written[at : at + width] |= enabled
        if beat["last"] and beat["row_end"]:
            self._answers.append(self.bench.cycle + self.latency)

    # ---- lists --------------------------------------------------------------------------------

    async def start(self, tables: RowTables) -> None:
        await self.bench.start()
        await self.describe(tables)

    async def describe(self, tables: RowTables) -> None:
        """Load the table registers."""
        self.tables = tables
        self.registers.send_all(tables.writes())
        await self.registers.drained()
        self.hot_registers.send_all(tables.hot_writes())
        await self.hot_registers.drained()

    async def begin(
        self,
        direction: int,
        rows: list[tuple[int, int]],
        hot: list[bool],
        last_row: bool = False,
        hot_rows: bool = False,
        bad_slot: int | None = None,
    ) -> None:
        """Start a list; compute what it should do. FILL and BACK ignore `hot`."""
        config, tables, dut, rng = self.config, self.tables, self.dut, self.bench.rng
        self.adds = direction == ADD
        direction = SCATTER if self.adds else direction
        gpus = int(rng.integers(1, config.gpus + 1))
        slots = [int(slot) for slot in rng.choice(tables.slots, len(rows))]
        if direction >= FILL:
            hot = [True] * len(rows)
        hot_served = 0
        used = config.max_tables // 2 + 1
        dense = SIZE // 2 + 64 * int(self.bench.rng.integers(64))
        stride = tables.stride(used)
        self.result, self.expected = tables.content.copy(), tables.content.copy()
        self.written, self.wanted = np.zeros(SIZE, bool), np.zeros(SIZE, bool)
        self.write_bursts = 0
        self.bursts.clear()
        self._burst = None
        self.places, self.count = [], 0
        for g, (table, row) in enumerate(rows):
            skipped = hot[g] and direction < FILL and not hot_rows
            bad = row >= tables.rows[table % config.max_tables] or table >= used
            if skipped or bad or bad_slot == g:
                continue
            home = tables.home(table, row)
            buffer = slice(dense + g * stride, dense + g * stride + tables.row_bytes[table])
            in_slot = [tables.slot(gpu, slots[g], table) for gpu in range(gpus)]
            if direction == GATHER and hot[g]:
                copies = [(in_slot[hot_served % gpus], buffer)]
                hot_served += 1
            else:
                copies = {
                    GATHER: [(home, buffer)],
                    SCATTER: [(buffer, home)],
                    FILL: [(home, place) for place in in_slot],
                    BACK: [(in_slot[0], home)],
                }[direction]
            for source, dest in copies:
                row = tables.content[source]
                self.expected[dest] = add_f32(self.expected[dest], row) if self.adds else row
                self.wanted[dest] = True
            self.places += copies
            self.count += 1
        entries = [
            {"row": row, "table": table, "hot": int(is_hot), "slot": slot, "valid": 1, "last": 0}
            for (table, row), is_hot, slot in zip(rows, hot, slots, strict=True)
        ]
        if bad_slot is not None:
            entries[bad_slot]["bad"] = 1
        if last_row:
            entries[-1]["last"] = 1
        else:
            entries.append({"valid": 0, "last": 1})
        self.entries.send_all(entries)
        dut.direction.value = direction
        dut.hot_rows.value = int(hot_rows)
        dut.add.value = int(self.adds)
        dut.gpu_count.value = gpus
        dut.num_tables.value = used
        dut.table_limit.value = used
        dut.rows.value = tables.origin + dense
        dut.start.value = 1
        await self.bench.cycles()
        dut.start.value = 0

    async def finish(self) -> None:
        """Wait for the end of the list and compare all memory."""
        dut = self.dut
        await self.bench.until(lambda: int(dut.done.value) == 1, "done")
        await self.bench.until(lambda: not self._answers, "answers to all writes")
        assert not int(dut.fault.value)
        assert int(dut.count.value) == self.count
        assert self._burst is None and not self._coming and self.data.idle
        assert np.array_equal(self.written, self.wanted)
        assert np.array_equal(self.result, self.expected)
        assert sum(beats for _, beats in self.bursts) == self.read_beats()

    def read_beats(self) -> int:
        """Beats that are read: those of the sources, and with ADD those of the homes."""
        return self.beats(0) + (self.beats(1) if self.adds else 0)

    def beats(self, side: int) -> int:
        """Beats that all rows touch in the source (0) or destination (1)."""
        width = self.config.data_bytes
        return sum((p[side].stop - 1) // width - p[side].start // width + 1 for p in self.places)

    def used_rows(self, count: int) -> list[tuple[int, int]]:
        return self.tables.draw(self.bench.rng, count, self.config.max_tables // 2 + 1)


@cocotb.test
@cocotb.parametrize(direction=[GATHER, SCATTER, FILL, BACK], pause=[0.0, 0.2, 0.6])
async def moves_rows(dut, direction: int, pause: float) -> None:
    mover = Mover(dut, pause=pause, latency=int(pause * 50) + 1)
    rng = mover.bench.rng
    await mover.start(RowTables(mover.config, rng))
    for trial, hot in enumerate((0.0, 0.3, 1.0, 0.2)):
        count = (30, 40, 5, 1)[trial]
        rows = mover.used_rows(count)
        await mover.begin(direction, rows, list(rng.random(count) < hot), trial % 2 == 1)
        await mover.finish()


@cocotb.test(skip=not config().scatter_add)
@cocotb.parametrize(pause=[0.0, 0.2, 0.6])
async def adds_rows(dut, pause: float) -> None:
    """SCATTER with ADD, each row a few times: every sum must see those before it."""
    mover = Mover(dut, pause=pause, latency=int(pause * 100) + 1)
    rng = mover.bench.rng
    await mover.start(RowTables(mover.config, rng))
    for trial, hot in enumerate((0.0, 0.3, 0.1)):
        some = mover.used_rows(12)
        rows = [some[i] for i in rng.integers(0, (1, 12, 6)[trial], 40)]
        await mover.begin(ADD, rows, list(rng.random(40) < hot), trial % 2 == 1)
        await mover.finish()


@cocotb.test(skip=not config().scatter_add)
@cocotb.parametrize(row_bytes=[4, 64, 256], aligned=[True, False])
async def adding_line_rate(dut, row_bytes: int, aligned: bool) -> None:
    """One read beat a cycle while the rows are different ones."""
    mover = Mover(dut, latency=20)
    await mover.start(RowTables(mover.config, mover.bench.rng, [row_bytes], aligned=aligned))
    rows = list(dict.fromkeys(mover.used_rows(150)))
    await mover.begin(ADD, rows, [False] * len(rows))
    await mover.finish()
    span = mover.output.times[-1] - mover.output.times[0] + 1
    # Of each row two copies go through the aligner, both as they lie at home.
    assert span <= 1.02 * 2 * mover.beats(1) + 2, f"{span} cycles, {mover.beats(1)} beats"


@cocotb.test
@cocotb.parametrize(pause=[0.0, 0.4])
async def hot_rows_from_the_gpus(dut, pause: float) -> None:
    """GATHER_HOT: hot rows come from one GPU after the other, the others from their homes."""
    mover = Mover(dut, pause=pause, latency=int(pause * 50) + 1)
    rng = mover.bench.rng
    await mover.start(RowTables(mover.config, rng))
    for trial, hot in enumerate((0.5, 1.0, 0.1)):
        rows = mover.used_rows(40)
        await mover.begin(GATHER, rows, list(rng.random(40) < hot), trial % 2 == 1, hot_rows=True)
        await mover.finish()


@cocotb.test
async def short_rows_and_equal_rows(dut) -> None:
    """Rows of a word or two, many of them in one beat; a row that comes twice keeps the order."""
    mover = Mover(dut, pause=0.1)
    await mover.start(RowTables(mover.config, mover.bench.rng, [4, 8, 12, 4]))
    for direction in (GATHER, SCATTER):
        rows = mover.used_rows(60)
        rows = [rows[i // 2] if i % 3 == 0 else rows[i] for i in range(60)]
        await mover.begin(direction, rows, [False] * 60)
        await mover.finish()


@cocotb.test
async def longest_rows(dut) -> None:
    mover = Mover(dut)
    longest = mover.config.max_row_bytes
    await mover.start(RowTables(mover.config, mover.bench.rng, [longest, 4, longest - 4]))
    for direction in (GATHER, SCATTER):
        await mover.begin(direction, mover.used_rows(20), [False] * 20)
        await mover.finish()


@cocotb.test
@cocotb.parametrize(direction=[GATHER, SCATTER])
async def empty_list(dut, direction: int) -> None:
    mover = Mover(dut)
    await mover.start(RowTables(mover.config, mover.bench.rng))
    await mover.begin(direction, [], [])
    await mover.finish()
    assert not mover.bursts


@cocotb.test
@cocotb.parametrize(
    row_bytes=[64, 256], aligned=[True, False], direction=[GATHER, SCATTER, FILL, BACK]
)
async def line_rate(dut, row_bytes: int, aligned: bool, direction: int) -> None:
    """One beat a cycle, no bubble between rows; dense bursts as long as they may be."""
    mover = Mover(dut, latency=3)
    await mover.start(RowTables(mover.config, mover.bench.rng, [row_bytes], aligned=aligned))
    count = 100
    await mover.begin(direction, mover.used_rows(count), [False] * count)
    await mover.finish()
    span = mover.output.times[-1] - mover.output.times[0] + 1
    fewest = max(mover.beats(0), mover.beats(1))
    if mover.config.narrow and direction >= FILL:
        # Two addresses, one bit of the row length and of the slot a cycle.
        serial = row_words_bits(mover.config) + mover.config.slot_bits + 10
        fewest = max(fewest, serial * count)
    assert span <= fewest + 2, f"{span} cycles for {fewest} beats"
    assert len(mover.output.times) == mover.beats(1)
    if direction == GATHER:
        beats = mover.beats(1)
        pages = (beats * mover.config.data_bytes) // PAGE + 2
        assert mover.write_bursts <= beats // burst_limit(mover.config) + pages


@cocotb.test
@cocotb.parametrize(direction=[GATHER, SCATTER, FILL, BACK], kind=["row", "table", "far", "slot"])
async def bad_index(dut, direction: int, kind: str) -> None:
    """All before the bad entry may be written, nothing else is; the mover takes no more."""
    mover = Mover(dut, pause=0.2)
    used = mover.config.max_tables // 2 + 1
    await mover.start(RowTables(mover.config, mover.bench.rng))
    rows = mover.used_rows(30)
    table, _ = rows[17]
    bad = {
        "row": (table, mover.tables.rows[table]),
        "table": (used, 0),
        "far": (0xFFFF_FFFF if direction >= FILL else 0x7FFF_FFFF, 0xFFFF_FFFF),
        "slot": rows[17],
    }[kind]
    await mover.begin(
        direction,
        [*rows[:17], bad, *rows[18:]],
        [i == 3 for i in range(30)],
        bad_slot=17 if kind == "slot" else None,
    )
    await mover.bench.until(lambda: int(dut.fault.value) == 1, "fault")
    taken = mover.entries.sent
    await mover.bench.cycles(100)
    assert int(dut.fault_code.value) == Status.INDEX_RANGE.value
    assert int(dut.fault_info.value) == (bad[0] << 32) + bad[1]
    assert not int(dut.done.value)
    assert mover.entries.sent == taken
    before = np.zeros(SIZE, bool)
    copies = len(mover.places) // max(1, mover.count)  # of a row
    for _, dest in mover.places[: copies * (17 if direction >= FILL else 16)]:
        before[dest] = True
    assert not (mover.written & ~before).any()


@cocotb.test
@cocotb.parametrize(direction=[GATHER, SCATTER], bad_entry=[False, True])
async def failed_read(dut, direction: int, bad_entry: bool) -> None:
    """A failed burst is reported even if a bad entry follows; what was written is right."""
    mover = Mover(dut, pause=0.2, latency=30)
    await mover.start(RowTables(mover.config, mover.bench.rng, [64, 40]))
    rows = list(dict.fromkeys(mover.used_rows(40)))
    if bad_entry:
        rows[-1] = (0, mover.tables.rows[0])
    mover.fail_burst = 12
    await mover.begin(direction, rows, [False] * len(rows))
    await mover.bench.until(lambda: int(dut.fault.value) == 1, "fault")
    written = mover.written.sum()
    await mover.bench.cycles(20)
    assert int(dut.fault_code.value) == Status.BUS_READ.value
    assert int(dut.fault_info.value) == mover.failed_addr
    assert not int(dut.done.value)
    # What the register slices hold; there are two more around the sums of bags.
    held = 4 + 4 * mover.config.pool
    assert mover.written.sum() - written <= held * mover.config.data_bytes
    assert np.array_equal(mover.result[mover.written], mover.expected[mover.written])
    await mover.bench.reset()
    mover.entries.clear()
    mover.data.clear()
    mover.fail_burst = None
    await mover.bench.cycles()
    assert not int(dut.fault.value)
    await mover.begin(direction, mover.used_rows(10), [False] * 10)
    await mover.finish()


@cocotb.test
async def reset_in_mid_traffic(dut) -> None:
    mover = Mover(dut, pause=0.3, latency=20)
    await mover.start(RowTables(mover.config, mover.bench.rng))
    for wait in (40, 77, 133):
        await mover.begin(GATHER, mover.used_rows(50), [False] * 50)
        await mover.bench.cycles(wait)
        await mover.bench.reset()
        mover.entries.clear()
        mover.data.clear()
        await mover.bench.sampled()
        assert not int(dut.request__valid.value) and not int(dut.output__valid.value)
        await mover.bench.cycles()
        await mover.begin(SCATTER, mover.used_rows(10), [False] * 10)
        await mover.finish()
