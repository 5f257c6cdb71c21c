"""cocotb side of test_row_mover.py."""

from __future__ import annotations

import cocotb
import numpy as np
from harness.bench import config
from row_mover_rig import ADD, BACK, FILL, GATHER, PAGE, SCATTER, Mover
from row_tables import SIZE, RowTables

from hotline.rtl.burst import burst_limit
from hotline.rtl.interfaces import Status
from hotline.rtl.row_address import row_words_bits


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
