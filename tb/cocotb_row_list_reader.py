"""cocotb side of test_row_list_reader.py."""

from __future__ import annotations

from typing import Any

import cocotb
from harness.bench import Bench, config
from harness.streams import StreamSink, StreamSource

from hotline.rtl.interfaces import read_beat, read_request, row_entry

ADDRESS = 0x1_0F40
END = {"valid": 0, "last": 1}


class Reader:
    """The row list reader in front of a list in memory."""

    def __init__(self, dut: Any, pause: float = 0.0) -> None:
        self.dut, self.config = dut, config()
        self.bench = Bench(dut)
        self.keys: list[int] = []
        self.records = False
        self.fail_beat: int | None = None
        self.data = StreamSource(self.bench, "data", read_beat(self.config), pause=pause)
        self.entries = StreamSink(self.bench, "entries", row_entry(self.config), pause=pause)
        StreamSink(
            self.bench, "request", read_request(self.config), pause=pause, callback=self._read
        )
        dut.start.value = 0
        dut.records.value = 0

    def _read(self, request: dict[str, int]) -> None:
        width = self.config.data_bytes
        content = b"".join(key.to_bytes(self.size, "little") for key in self.keys) + bytes(64)
        for i in range(request["beats"]):
            at = request["addr"] - ADDRESS + i * width
            self.data.send(
                {
                    "data": int.from_bytes(content[at : at + width], "little"),
                    "last": int(i == request["beats"] - 1),
                    "fault": int(self.fail_beat is not None and at // width >= self.fail_beat),
                }
            )

    @property
    def size(self) -> int:
        """Bytes of an entry."""
        return 16 if self.records else 8

    async def run(self, count: int) -> list[dict[str, int]]:
        """Read a random list; all entries up to the end marker."""
        rng = self.bench.rng
        self.keys = [int.from_bytes(rng.bytes(self.size), "little") for _ in range(count)]
        if self.records:  # half of the slots exist
            slots = self.config.slots
            self.keys = [key & ~0xFFFFFFFF | int(rng.integers(2 * slots)) for key in self.keys]
        self.dut.records.value = int(self.records)
        self.dut.addr.value = ADDRESS
        self.dut.count.value = count
        self.dut.start.value = 1
        await self.bench.cycles()
        self.dut.start.value = 0
        items = self.entries.items
        await self.bench.until(lambda: bool(items) and items[-1]["last"] == 1, "end marker")
        seen = [dict(item) for item in items]
        if not self.records:
            for item in seen:
                del item["slot"]
        items.clear()
        assert {name: seen[-1][name] for name in END} == END
        return seen[:-1]

    def expected(self) -> list[dict[str, int]]:
        """The entries of the list; of keys without the slot."""
        word, entries = 0xFFFFFFFF, []
        for key in self.keys:
            entry = {"valid": 1, "last": 0}
            if self.config.pool:
                entry |= {"close": 0, "zero": 0}
            if self.records:
                slot, table, row = key & word, key >> 32 & word, key >> 64 & word
                bad = int(slot >= self.config.slots)
                entry |= {"hot": 1, "bad": bad, "slot": slot % self.config.slots}
            else:
                table, row = key >> 32 & word >> 1, key & word
                entry |= {"hot": key >> 63, "bad": 0}
            entries.append(entry | {"row": row, "table": table})
        return entries


@cocotb.test
@cocotb.parametrize(pause=[0.0, 0.5])
async def lists(dut, pause: float) -> None:
    reader = Reader(dut, pause)
    await reader.bench.start()
    for number, count in enumerate((1, 1, 0, 0, 7, 7, 8, 8, 100, 9, 9, 100, 16, 16, 2, 3)):
        reader.records = number % 2 == 1
        begin = len(reader.entries.times)
        assert await reader.run(count) == reader.expected()
        assert reader.data.idle and not int(dut.fault.value)
        if pause == 0.0 and count == 100:
            times = reader.entries.times[begin:-1]
            cycles = times[-1] - times[0] + 1
            beats = max(1, reader.size // reader.config.data_bytes)  # of an entry
            assert cycles <= count * beats + 2


@cocotb.test
@cocotb.parametrize(beat=[0, 3], records=[False, True])
async def failed_beat(dut, beat: int, records: bool) -> None:
    """The entries before the beat, then the end marker; no beat is taken any more."""
    reader = Reader(dut, 0.2)
    await reader.bench.start()
    reader.fail_beat, reader.records = beat, records
    seen = await reader.run(64)
    good = beat * reader.config.data_bytes // reader.size
    assert seen == reader.expected()[:good]
    assert int(dut.fault.value)
    await reader.bench.cycles(50)
    assert beat <= reader.data.sent <= beat + 1  # the beat itself may go, none behind it
    await reader.bench.reset()
    reader.data.clear()
    reader.fail_beat = None
    await reader.bench.cycles()
    assert await reader.run(20) == reader.expected()
    assert not int(dut.fault.value)
