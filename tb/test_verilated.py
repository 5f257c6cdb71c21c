"""The in-process back-end, with the stand-in for the top that copies a block."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import stand_in
from harness.build import SIM_FOLDER

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.gen.verilog import to_verilog
from hotline.host import verilated_build
from hotline.host.verilated import DECERR, BusTiming, ProtocolError, VerilatorBackend
from hotline.host.verilator_tool import compiles

SOURCE, TARGET = 0x1000_0000, 0x2000_0000
CACHE = SIM_FOLDER / "library"


def _backend(config: Config, fault: str = "", **options: object) -> VerilatorBackend:
    rng = np.random.default_rng(3)
    regions = [
        (SOURCE, rng.integers(0, 256, 1 << 16, dtype=np.uint8)),
        (TARGET, np.zeros(1 << 16, np.uint8)),
    ]
    text = to_verilog(stand_in.StandIn(config, fault), "hotline")
    memory = SimpleNamespace(regions=regions)
    return VerilatorBackend(config, memory, verilog=text, cache=CACHE, **options)


def _start(device: VerilatorBackend, bursts: int) -> None:
    for offset, value in (
        (stand_in.SOURCE, SOURCE),
        (stand_in.TARGET, TARGET),
        (stand_in.COUNT, bursts),
        (stand_in.CONTROL, 1),
    ):
        assert device.write_register(offset, value) == 0


def _compare(device: VerilatorBackend, bursts: int) -> None:
    source, target = (region[1] for region in device.memory.regions)
    count = bursts * stand_in.BEATS * device.config.data_bytes
    assert np.array_equal(source[:count], target[:count])
    assert not target[count:].any()


@pytest.mark.parametrize("name", ["tiny", "ecp5", "datacenter"])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_copies(name: str, seed: int | None) -> None:
    timing = BusTiming() if seed is None else BusTiming.rough(seed)
    with _backend(preset(name), timing=timing, random_state=seed is not None) as device:
        _start(device, 100)
        device.run(1_000_000, "irq")
        _compare(device, 100)
        assert device.read_register(stand_in.STATUS) == (0, 0)
        counts = device.statistics
        assert counts.read_bursts == 100
        assert counts.write_bursts == counts.write_beats == counts.read_beats == 400
        assert (counts.read_stalls > 0) == (counts.write_stalls > 0) == (seed is not None)
        assert device.bus_idle and not device.outside


def test_timing_is_that_of_the_specification() -> None:
    with _backend(preset("ecp5")) as device:
        _start(device, 1)
        cycles = device.run(10_000, "irq")
        # AR, 200 cycles to the first of four beats, one to register W, 20 to B, a few to the irq.
        assert 200 + 4 + 1 + 20 <= cycles + 2 <= 200 + 4 + 1 + 20 + 10


def test_bandwidth_limit() -> None:
    taken = []
    for timing in (BusTiming(20, 5), BusTiming(20, 5, read_bandwidth=0.25)):
        with _backend(preset("ecp5"), timing=timing) as device:
            _start(device, 200)
            taken.append(device.run(100_000, "irq"))
    assert taken[0] < 1100 and 3200 <= taken[1] < 3400


def test_registers_interrupt_and_idle() -> None:
    with _backend(preset("tiny")) as device:
        assert device.read_register(stand_in.ID) == (0x4C544F48, 0)
        assert device.read_register(0xFFC) == (0, 2)
        assert device.write_register(stand_in.ID, 1) == 2
        assert not device.irq
        _start(device, 4)
        assert device.run(10_000, "idle") > 200
        assert device.irq
        begin = device.cycle
        assert device.run(77) == 77 == device.cycle - begin
        device.clear_statistics()
        assert device.statistics.read_beats == 0
        device.reset()
        assert not device.irq and device.read_register(stand_in.COUNT) == (0, 0)


def test_errors_and_holes() -> None:
    with _backend(preset("ecp5")) as device:
        device.add_error(SOURCE + 40, SOURCE + 40, writes=False)
        _start(device, 4)
        device.run(10_000, "irq")
        assert device.read_register(stand_in.STATUS) == (2, 0)
        device.clear_errors()
        device.add_error(TARGET, TARGET, DECERR)
        device.memory.regions[1][1][:] = 0
        _start(device, 4)
        device.run(10_000, "irq")
        source, target = (region[1] for region in device.memory.regions)
        assert not target[:8].any() and np.array_equal(source[8:128], target[8:128])
        device.clear_errors()
        assert not device.outside
        device.memory.regions.pop()
        _start(device, 1)
        device.run(10_000, "irq")
        assert device.outside == [TARGET, TARGET + 8, TARGET + 16, TARGET + 24]


def test_a_region_ends_at_any_byte() -> None:
    """Bursts may read on to the next 64-byte boundary; nothing is written past the end."""
    with _backend(preset("ecp5")) as device:
        (_, source), (_, target) = device.memory.regions
        device.memory.regions[:] = [(SOURCE, source[:33]), (TARGET, target)]
        _start(device, 2)
        device.run(10_000, "irq")
        assert device.read_register(stand_in.STATUS) == (0, 0)
        assert np.array_equal(target[:33], source[:33]) and not device.outside
        _start(device, 3)
        device.run(10_000, "irq")
        assert device.read_register(stand_in.STATUS) == (2, 0)
        assert device.outside == [SOURCE + 64]
        device.memory.regions[:] = [(SOURCE, source), (TARGET, target[:33])]
        target[:] = 0
        _start(device, 2)
        device.run(10_000, "irq")
        assert device.read_register(stand_in.STATUS) == (2, 0)
        assert np.array_equal(target[:32], source[:32]) and not target[32:].any()
        assert device.outside[1:] == [TARGET + at for at in (32, 40, 48, 56)]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("unaligned", "AR at 0x10000004 with 4 beats: not aligned to the bus"),
        ("boundary", "crosses a 4 KiB boundary"),
        ("drop", "WVALID fell without a transfer"),
        ("last", "WLAST is wrong at beat 1 of 1"),
    ],
)
def test_notices_a_wrong_master(fault: str, message: str) -> None:
    with _backend(preset("ecp5"), fault, timing=BusTiming(5, 5, w_pause=0.5)) as device:
        _start(device, 4)
        with pytest.raises(ProtocolError, match=message):
            device.run(10_000, "irq")


def test_timeout() -> None:
    with _backend(preset("ecp5")) as device:
        with pytest.raises(TimeoutError, match="no irq within 100 cycles"):
            device.run(100, "irq")
        with pytest.raises(ValueError, match="until must be irq, idle, cycles or flag, not 'x'"):
            device.run(100, "x")


def test_outstanding_limits() -> None:
    most, taken = [], []
    for timing in (BusTiming(50, 5), BusTiming(50, 5, read_outstanding=3, write_outstanding=1)):
        with _backend(preset("ecp5"), timing=timing) as device:
            _start(device, 50)
            taken.append(device.run(100_000, "irq"))
            _compare(device, 50)
            most.append((device.statistics.most_reads, device.statistics.most_writes))
    assert most[0][0] > 3 and most[1] == (3, 1)
    # Three bursts of four beats in 50 cycles, and one write of a beat in about seven.
    assert taken[0] < 300 and taken[1] > 50 // 3 * 50


def test_runs_until_a_word_of_memory_changes() -> None:
    with _backend(preset("ecp5")) as device:
        _start(device, 100)
        target = device.memory.regions[1][1]
        device.run(10_000, "flag", TARGET + 4 * 32)
        assert target[: 4 * 32 + 4].any() and not target[-32:].any()
        assert not device.irq
        device.run(10_000, "irq")
        assert device.run(10, "flag", TARGET) == 0
        with pytest.raises(TimeoutError, match="no flag within 50 cycles"):
            device.run(50, "flag", TARGET + 4 * 32 * 100)
        with pytest.raises(ValueError, match="lie in a region of the memory, which 0x7 does not"):
            device.run(10, "flag", 7)


def _signals(file: Path) -> str:
    return file.read_bytes().decode("latin-1")


def test_waves(tmp_path: Path) -> None:
    file = tmp_path / "dump.vcd"
    with _backend(preset("tiny"), waves=file) as device:
        device.run(20)
        device.stop_waves()
        size = file.stat().st_size
        device.run(20)
        assert file.stat().st_size == size
        device.start_waves(tmp_path / "part.vcd")
        device.run(20)
        with pytest.raises(ValueError, match="must end in .vcd, as the option waves does"):
            device.start_waves(tmp_path / "part.fst")
    assert "m_axi_araddr" in _signals(file) and "m_axi_araddr" in _signals(device.waves)


def test_fst_waves(tmp_path: Path) -> None:
    file = tmp_path / "dump.fst"
    if not compiles("#include <zlib.h>\n#include <lz4.h>\n"):
        pytest.skip("the headers zlib.h and lz4.h, which FST needs, are not installed")
    with _backend(preset("tiny"), waves=file) as device:
        device.run(200)
    # Block type 0 (header) of 329 bytes begins every FST file.
    assert file.read_bytes()[:9] == b"\0" + (329).to_bytes(8, "big")


def test_fst_falls_back_to_vcd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verilated_build, "compiles", lambda source: False)
    with pytest.warns(UserWarning, match="FST waves need the headers zlib.h and lz4.h"):
        device = _backend(preset("tiny"), waves=tmp_path / "dump.fst")
    with device:
        device.run(20)
    assert device.waves == tmp_path / "dump.vcd" and device.waves.stat().st_size > 100
    with pytest.raises(ValueError, match="must end in .vcd or .fst, not 'x.txt'"):
        _backend(preset("tiny"), waves=tmp_path / "x.txt")
    with _backend(preset("tiny")) as silent, pytest.raises(ValueError, match="the option waves"):
        silent.start_waves(tmp_path / "dump.vcd")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"read_latency": 0}, "read_latency must be at least 1 and ascending, not 0..0"),
        ({"w_pause": 1.0}, "w_pause must be at least 0 and below 1"),
        ({"read_outstanding": 0}, "read_outstanding must be at least 1, or None, not 0"),
        ({"read_bandwidth": 0}, "read_bandwidth must be above 0 and at most 1"),
    ],
)
def test_impossible_timing(values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BusTiming(**values)
