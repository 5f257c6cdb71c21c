"""cocotb side of test_harness.py."""

from __future__ import annotations

import cocotb
from harness.bench import Bench, config
from harness.streams import StreamMonitor, StreamSink, StreamSource
from test_harness import layout


def _items(bench: Bench, count: int) -> list[dict]:
    return [
        {
            "key": [int(key) for key in bench.rng.integers(0, 1 << 9, 3)],
            "level": int(bench.rng.integers(-4, 4)),
            "wide": int.from_bytes(bench.rng.bytes(16), "little"),
            "last": int(bench.rng.integers(0, 2)),
        }
        for _ in range(count)
    ]


@cocotb.test
@cocotb.parametrize(source=[0.0, 0.5], sink=[0.0, 0.5])
async def passes_everything(dut, source: float, sink: float) -> None:
    bench = Bench(dut)
    assert config().lanes == 2
    driver = StreamSource(bench, "i", layout(), pause=source)
    taker = StreamSink(bench, "o", layout(), pause=sink)
    seen = StreamMonitor(bench, "i", layout())
    await bench.start()
    items = _items(bench, 200)
    driver.send_all(items)
    assert await taker.receive(200) == items
    assert driver.idle and list(seen.items) == items
    if source == sink == 0.0:
        assert taker.times[-1] - taker.times[0] == 199, "one item a cycle"


@cocotb.test
async def reset_in_mid_traffic(dut) -> None:
    bench = Bench(dut)
    driver = StreamSource(bench, "i", layout())
    taker = StreamSink(bench, "o", layout(), pause=1.0)
    await bench.start()
    driver.send_all(_items(bench, 20))
    await bench.cycles(20)
    await bench.reset()
    driver.clear()
    await bench.sampled()
    assert not int(dut.o__valid.value)
    taker.pause = 0.0
    items = _items(bench, 5)
    driver.send_all(items)
    assert await taker.receive(5) == items


@cocotb.test
async def broken_on_purpose(dut) -> None:
    """Only run by the test that expects it to fail."""
    bench = Bench(dut)
    driver = StreamSource(bench, "i", layout())
    StreamMonitor(bench, "o", layout())
    await bench.start()
    dut.o__ready.value = 0
    driver.send_all(_items(bench, 3))
    await bench.cycles(30)
