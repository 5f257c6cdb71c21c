"""cocotb side of test_gather_dma.py."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from harness.axi_memory import AxiMemory, AxiTiming, ErrorRange
from harness.bench import Bench, config
from harness.layouts import pack
from harness.streams import StreamSink, StreamSource
from row_tables import SIZE, RowTables

from hotline.rtl.burst import burst_limit
from hotline.rtl.gather_dma import row_beat, row_number
from hotline.rtl.interfaces import Status, table_write, windows
from hotline.rtl.read_engine import read_buffer_beats


class Gather:
    """The gather DMA, a memory, and the rows that come out."""

    def __init__(self, dut: Any, timing: AxiTiming, pause: float = 0.0, **shape: Any) -> None:
        self.dut, self.config = dut, config()
        self.bench = Bench(dut)
        self.tables = RowTables(self.config, self.bench.rng, **shape)
        self.registers = StreamSource(self.bench, "table_write", table_write(self.config))
        self.rows = StreamSource(self.bench, "rows", row_number(self.config), pause=pause)
        self.output = StreamSink(self.bench, "output", row_beat(self.config), pause=pause)
        self.memory = AxiMemory(
            self.bench,
            "axi__",
            [(self.tables.origin, self.tables.content)],
            timing=timing,
            max_burst_beats=self.config.max_burst_beats,
            max_reads=self.config.read_outstanding,
        )
        dut.restart.value = 0
        dut.num_tables.value = self.config.max_tables
        self.allow(self.tables.origin, self.tables.origin + SIZE - 1)

    def allow(self, first: int, last: int) -> None:
        """Let window 0 be ``first..last``, and close the others."""
        closed = {"lo": 1, "hi": 0}
        self.dut.windows.value = pack(
            windows(self.config), [{"lo": first, "hi": last}, closed, closed, closed]
        )

    async def start(self) -> None:
        await self.bench.start()
        self.registers.send_all(self.tables.writes())
        await self.registers.drained()

    def draw(self, count: int) -> list[tuple[int, int]]:
        return self.tables.draw(self.bench.rng, count, self.config.max_tables)

    def send(self, rows: list[tuple[int, int]]) -> None:
        self.rows.send_all({"row": row, "table": table} for table, row in rows)

    def expected(self, rows: list[tuple[int, int]]) -> list[dict[str, int]]:
        """The beats of the rows; `data` only where `strobe` is set."""
        width, beats = self.config.data_bytes, []
        for table, row in rows:
            content = self.tables.content[self.tables.home(table, row)].tobytes()
            for at in range(0, len(content), width):
                part = content[at : at + width]
                beats.append(
                    {
                        "data": int.from_bytes(part, "little"),
                        "strobe": (1 << len(part) // 4) - 1,
                        "last": int(at + width >= len(content)),
                    }
                )
        return beats

    @staticmethod
    def masked(beats: list[dict[str, int]]) -> list[dict[str, int]]:
        """Beats without what lies outside `strobe`."""
        return [b | {"data": b["data"] & ((1 << 32 * b["strobe"].bit_length()) - 1)} for b in beats]

    async def check(self, rows: list[tuple[int, int]], queued: Any = ()) -> None:
        """Fetch `rows`, behind those that are `queued` already."""
        self.send(rows)
        wanted = self.expected([*queued, *rows])
        assert self.masked(await self.output.receive(len(wanted))) == wanted
        await self.bench.cycles(20)
        assert not self.output.items and not int(self.dut.fault.value)

    async def failed(self) -> None:
        """Wait until the failed DMA has drained the bus."""
        await self.bench.until(lambda: int(self.dut.drained.value) == 1, "drained")
        assert self.memory.idle
        count = len(self.memory.reads)
        await self.bench.cycles(50)
        assert len(self.memory.reads) == count and int(self.dut.drained.value)

    async def restart(self) -> None:
        self.dut.restart.value = 1
        await self.bench.cycles()
        self.dut.restart.value = 0


@cocotb.test
@cocotb.parametrize(timing=["plain", "rough"], pause=[0.0, 0.4])
async def fetches_rows(dut, timing: str, pause: float) -> None:
    how = AxiTiming.rough() if timing == "rough" else AxiTiming(30)
    gather = Gather(dut, how, pause)
    await gather.start()
    for count in (60, 1, 30):
        await gather.check(gather.draw(count))


@cocotb.test
@cocotb.parametrize(kind=["row", "table", "bus", "window"])
async def faults(dut, kind: str) -> None:
    """The fault of the first row that fails; all rows before it came out, none behind it."""
    gather = Gather(dut, AxiTiming.rough(), 0.2)
    await gather.start()
    tables, width = gather.tables, gather.config.data_bytes
    for _ in range(3):
        rows = [row for row in gather.draw(40) if row[0] != 0]
        good = len(rows) // 2
        table, row = 0, tables.rows[0] // 2
        if kind == "row":
            row = tables.rows[0] + int(gather.bench.rng.integers(1000))
        rows.insert(good, (table, row))
        place = tables.home(table, row)
        lowest = min(tables.home(t, r).start for t, r in rows if t)
        start = tables.origin + place.start // width * width
        if kind == "table":
            dut.num_tables.value = 1
            rows = [(0, 0)] * 5 + rows[:1]
            good = 5
        elif kind == "bus":
            at = tables.origin + place.start
            gather.memory.errors[:] = [ErrorRange(at, at)]
        elif kind == "window":
            gather.allow(tables.origin + lowest // width * width, tables.origin + SIZE - 1)
        before = gather.rows.sent
        gather.send(rows)
        await gather.failed()
        if kind in ("row", "table"):
            assert int(dut.fault_code.value) == Status.INDEX_RANGE.value
            assert int(dut.fault_info.value) == (rows[good][0] << 32) + rows[good][1]
        else:
            status = Status.BUS_READ if kind == "bus" else Status.ADDR_WINDOW
            assert int(dut.fault_code.value) == status.value
            assert int(dut.fault_info.value) == start
        wanted = gather.expected(rows[:good])
        seen = gather.masked(list(gather.output.items))
        assert seen == wanted[: len(seen)]
        assert not gather.memory.outside
        dut.num_tables.value = gather.config.max_tables
        gather.memory.errors.clear()
        gather.allow(tables.origin, tables.origin + SIZE - 1)
        gather.output.items.clear()
        left = rows[gather.rows.sent - before :]
        await gather.restart()
        await gather.check(gather.draw(10), left)


@cocotb.test
@cocotb.parametrize(aligned=[True, False])
async def line_rate(dut, aligned: bool) -> None:
    """64-byte rows, 200 cycles latency: the bound is the bus or the reads in flight."""
    gather = Gather(dut, AxiTiming(), row_bytes=[64], aligned=aligned)
    await gather.start()
    count = 400
    rows = gather.draw(count)
    gather.send(rows)
    wanted = gather.expected(rows)
    seen = await gather.output.receive(len(wanted))
    assert gather.masked(seen) == wanted
    width = gather.config.data_bytes
    places = [gather.tables.home(*row) for row in rows]
    beats = [(p.stop - 1) // width - p.start // width + 1 for p in places]
    assert gather.memory.read_beats == sum(beats)
    begin = gather.output.times[len(wanted) // 4]
    cycles = gather.output.times[-1] - begin
    share = 0.75 * sum(beats) / cycles
    burst = min(np.mean(beats), burst_limit(gather.config))
    flying = gather.config.read_outstanding * burst
    round_trip = 200 + burst
    if read_buffer_beats(gather.config) <= flying:
        # The buffer holds no more than what is in flight: room comes back only when a burst has
        # gone through the engine (8 cycles) and has been read out.
        round_trip += 8 + burst
    bound = min(1.0, flying / round_trip)
    dut._log.info("%.3f beats a cycle, bound %.3f, %.3f rows a cycle", share, bound, 300 / cycles)
    assert share > 0.93 * bound


@cocotb.test
async def reset_in_mid_traffic(dut) -> None:
    gather = Gather(dut, AxiTiming(20), 0.2)
    await gather.start()
    for wait in (50, 71):
        gather.send(gather.draw(40))
        await gather.bench.cycles(wait)
        await gather.bench.reset()
        gather.rows.clear()
        gather.output.items.clear()
        await gather.bench.cycles()
        await gather.check(gather.draw(20))
