"""The row mover between two simple engines, for its cocotb bench."""

from __future__ import annotations

from collections import deque
from typing import Any

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
