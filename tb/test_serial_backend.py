"""Back-end `serial` on a golden board: the driver, lines that lose bytes, and messages."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from serial_board import GoldenBoard

from hotline.fpga.boards import BOARDS, board
from hotline.gen import cli
from hotline.gen.cli_options import board_preset
from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.gen.serial_link import LinkCommand, LinkStatus
from hotline.golden.memory import Memory
from hotline.host.backends import BACKENDS, GoldenBackend
from hotline.host.board_fit import fit_batch, fit_rows
from hotline.host.click_log import ClickLog
from hotline.host.datasets import fold_rows
from hotline.host.device import Device
from hotline.host.errors import IndexRangeError
from hotline.host.job import JobError, JobOptions, run_job
from hotline.host.serial_backend import SerialBackend
from hotline.host.serial_frames import Reply
from hotline.host.serial_link import LinkError, SerialLink
from hotline.host.serial_memory import BoardMemory

TINY = preset("tiny")
SMALL = preset("ecp5").replace(sets=64, dedup_entries=64)
OPTIONS = JobOptions(batch=32, row_bytes=16)


def _log(tables: int = 3, rows: int = 40, samples: int = 160) -> ClickLog:
    rng = np.random.default_rng(2)
    indices = (rng.random((samples, tables)) ** 3 * rows).astype(np.uint32).ravel()
    return ClickLog(
        "clicks", tuple("abcdefgh"[:tables]), (rows,) * tables, indices, None,
        np.zeros(samples, np.float32), np.zeros((samples, 0)),
    )  # fmt: skip


def _backend(config: Config, port: GoldenBoard, name: str) -> SerialBackend:
    return SerialBackend(config, port=port, board=name, timeout=0.02)


@pytest.mark.parametrize("fault", [0.0, 0.1])
@pytest.mark.parametrize(("config", "name"), [(TINY, "icebreaker"), (SMALL, "ulx3s-85f")])
def test_the_job(config: Config, name: str, fault: float, seed: int) -> None:
    """All memory after every command, over a perfect line and over one that loses frames."""
    size = board(name).ram_bytes if name == "icebreaker" else 1 << 20
    port = GoldenBoard(config, name, seed, fault=fault, size=size)
    backend = _backend(config, port, name)
    plain = GoldenBackend(config, backend.addresses)
    result = run_job(config, _log(), OPTIONS, backend, plain)
    assert result["mismatched_bytes"] == 0 and result["rows_gathered"] > 40
    statistics = backend.statistics
    if fault:
        # As far as the host is concerned; a doubled frame needs no second try.
        assert port.faults > 30 and 10 < statistics.repeated < 2 * port.faults
        assert statistics.bytes_received > 0
    else:
        assert statistics.repeated == 0
    # What a driver on a perfect line writes, each once: no repeat was carried out twice.
    other = GoldenBoard(config, name, seed, size=size)
    run_job(
        config,
        _log(),
        OPTIONS,
        _backend(config, other, name),
        GoldenBackend(config, plain.addresses),
    )
    assert port.writes == other.writes
    backend.close()
    assert not port.open


def test_errors_of_commands_come_through(seed: int) -> None:
    port = GoldenBoard(TINY, "icebreaker", seed)
    with Device(_backend(TINY, port, "icebreaker")) as device:
        device.use_tables(np.zeros((2, 16, 4), np.float32))
        with pytest.raises(IndexRangeError, match="row 16 of table 1 does not exist"):
            device.learn(np.array([[1, 16]], np.int32))
        assert device.learn(np.array([[1, 15]], np.int32)).words[4] == 2
        with pytest.raises(ValueError, match=r"do not fit into \d+ bytes, where \d+ bytes"):
            device.allocate(1 << 20)


def test_commands_in_flight(seed: int) -> None:
    """Several at once, more than the ring holds, and a ring that is set up anew after a failure."""
    port = GoldenBoard(TINY, "icebreaker", seed)
    device = Device(_backend(TINY, port, "icebreaker"), ring_log2=2)
    tables = np.random.default_rng(seed).random((2, 16, 4)).astype(np.float32)
    device.use_tables(tables)
    rows = [device.allocate(64) for _ in range(6)]
    keys = device.allocate(64)
    keys.data[:8] = np.array([(1 << 32) + 5], np.uint64).view(np.uint8)
    from hotline.host import commands

    futures = [device.submit(commands.gather(1, 2, keys.address, space)) for space in rows]
    for future, space in zip(futures, rows, strict=True):
        future.result()
        assert (space.data[:16].view(np.float32) == tables[1, 5]).all()


# ---- memory --------------------------------------------------------------------------------------


class _Linked:
    """A board memory over a golden board without a device that does anything."""

    def __init__(self, seed: int, size: int = 1 << 17) -> None:
        self.port = GoldenBoard(TINY, "icebreaker", seed, size=size)
        self.link = SerialLink(self.port, "here", 1_000_000, timeout=0.02)
        self.host = Memory()
        self.memory = BoardMemory(self.link, self.host, size, 1e6)

    def sent(self) -> int:
        before = self.link.statistics.bytes_sent
        self.link.statistics.bytes_sent = 0
        return before


def test_memory_is_kept_the_same(seed: int) -> None:
    """Random changes on both sides, in regions of odd sizes."""
    rng = np.random.default_rng(seed)
    linked = _Linked(seed)
    host, there = linked.host, linked.port.memory
    for base, size in ((4096, 10_000), (0x5000, 77), (0x9000, 30_000), (0x8000, 64)):
        host.add_region(base, rng.integers(0, 4, size, np.uint8) * (rng.random(size) < 0.3))
    for step in range(40):
        if step == 20:
            host.allocate(0x11000, 5000)
        linked.memory.push()
        for base, data in host.regions:
            assert np.array_equal(there[base : base + data.size], data)
        for base, data in host.regions:
            if rng.random() < 0.5:
                start = int(rng.integers(data.size))
                part = slice(base + start, base + min(data.size, start + int(rng.integers(3000))))
                there[part] = rng.integers(0, 256, len(there[part]), np.uint8)
        linked.memory.pull()
        for base, data in host.regions:
            assert np.array_equal(there[base : base + data.size], data)
            if rng.random() < 0.5:
                start = int(rng.integers(data.size))
                data[start : start + 500] = rng.integers(0, 256, len(data[start : start + 500]))


def test_only_what_has_changed_is_sent(seed: int) -> None:
    linked = _Linked(seed)
    data = linked.host.allocate(4096, 65_536)
    linked.memory.push()
    # Zeros take a few FILLs.
    assert linked.sent() < 1000
    data[:] = np.random.default_rng(seed).integers(0, 256, data.size, np.uint8)
    linked.memory.push()
    assert 65_536 < linked.sent() < 1.1 * 65_536
    linked.memory.push()
    assert linked.sent() == 0
    data[1000] ^= 1
    linked.memory.push()
    assert linked.sent() < 100
    linked.port.memory[4096 + 40_000] ^= 1
    linked.memory.pull()
    assert data[40_000] == linked.port.memory[4096 + 40_000]
    assert linked.sent() < 300
    # A host that comes back finds there what it has, and sends nothing but questions.
    again = BoardMemory(linked.link, linked.host, 1 << 17, 1e6)
    again.push()
    assert linked.sent() < 500


def test_both_sides_may_change_bytes_of_one_line(seed: int) -> None:
    linked = _Linked(seed)
    data = linked.host.allocate(4096, 64)
    linked.memory.push()
    data[3], linked.port.memory[4096 + 5] = 1, 2
    linked.memory.pull()
    assert (data[3], data[5]) == (1, 2)


def test_a_write_outside_the_arrays_is_seen(seed: int) -> None:
    linked = _Linked(seed)
    linked.host.allocate(4096, 100)
    linked.host.allocate(0x4000, 100)
    linked.memory.push()
    linked.port.memory[0x2345] ^= 1
    with pytest.raises(LinkError, match="wrote to 0x2345 in the board's memory, where no array"):
        linked.memory.pull()


def test_memory_that_is_not_there(seed: int) -> None:
    linked = _Linked(seed)
    linked.host.allocate(1 << 17, 64)
    with pytest.raises(LinkError, match="addresses up to 0x20040, the board's memory has only 0x2"):
        linked.memory.push()
    small = BoardMemory(linked.link, linked.host, 1 << 20, 1e6)
    with pytest.raises(LinkError, match=r"answered DIGEST at 0x\w+ with DECODE_ERROR: is it the r"):
        small.push()


# ---- messages ------------------------------------------------------------------------------------


class _Silent:
    """A port with nothing behind it, or something that says always the same."""

    def __init__(self, says: bytes = b"") -> None:
        self.says, self.written = says, 0

    def read(self, size: int) -> bytes:
        return self.says

    def write(self, data: bytes) -> None:
        self.written += 1

    def close(self) -> None:
        pass


@pytest.mark.parametrize("says", [b"", b"login: ", b"\x7e"])
def test_no_answer(says: bytes) -> None:
    port = _Silent(says)
    with pytest.raises(LinkError, match="no answer from the board on this port to 5 requests: is"):
        SerialBackend(TINY, port=port, board="icebreaker", timeout=0.01)
    assert port.written == 5


def test_an_echo_is_no_answer(seed: int) -> None:
    class Echo(GoldenBoard):
        def write(self, data: bytes) -> int:
            self._out += data
            return len(data)

    with pytest.raises(LinkError, match="no answer from the board"):
        _backend(TINY, Echo(TINY, "icebreaker", seed), "icebreaker")


def test_another_board(seed: int) -> None:
    with pytest.raises(LinkError, match=r"the board holds preset ecp5 \(CONFIG_HASH 0x\w+\), not"):
        _backend(TINY, GoldenBoard(preset("ecp5"), "icebreaker", seed), "icebreaker")
    with pytest.raises(LinkError, match="the board holds another configuration .* load its bitst"):
        _backend(TINY, GoldenBoard(SMALL, "icebreaker", seed), "icebreaker")
    port = GoldenBoard(TINY, "icebreaker", seed)
    port.device.registers.put("ID", 7)
    with pytest.raises(LinkError, match="not a Hotline device: ID is 0x7, not 0x4c544f48"):
        _backend(TINY, port, "icebreaker")
    assert not port.open
    with pytest.raises(ValueError, match="board must be one of ulx3s-85f, .*, not 'nexys'"):
        _backend(TINY, port, "nexys")


def test_another_bridge() -> None:
    class Refusing(_Silent):
        def write(self, data: bytes) -> None:
            from hotline.host.serial_frames import FrameReader, Request, encode_frame

            (content,) = FrameReader().feed(data)
            request = Request.unpack(content)
            status = LinkStatus.BAD_COMMAND
            reply = Reply(request.number, status, request.count, request.address)
            self.says = encode_frame(reply.pack())

    with pytest.raises(
        LinkError, match="refused READ_REGISTER at 0x0 with BAD_COMMAND: its bridge"
    ):
        SerialBackend(TINY, port=Refusing(), board="icebreaker", timeout=0.01)


def test_a_port_that_fails() -> None:
    class Unplugged(_Silent):
        def write(self, data: bytes) -> None:
            raise OSError(5, "Input/output error")

    with pytest.raises(LinkError, match="the serial port this port failed: .* Input/output error"):
        SerialBackend(TINY, port=Unplugged(), board="icebreaker", timeout=0.01)


def test_ports_that_are_not_there(tmp_path: Path) -> None:
    pytest.importorskip("serial", reason="pyserial is not installed")
    name = str(tmp_path / "ttyUSB7")
    with pytest.raises(LinkError, match=r"the serial port '.*7' at 1000000 baud \(No such file"):
        BACKENDS["serial"](TINY, port=name, board="icebreaker")


def _fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["hotline", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What a user gets wrong ends in one sentence, and leaves nothing behind."""
    run = ("run", "--output", str(tmp_path / "out"), "--data", "synthetic:K", "--samples", "100")
    serial = ("--backend", "serial")
    assert "needs --port, the serial port of the board, and --board, one of ulx3s-85f" in _fails(
        capsys, *run, *serial, "--port", "/dev/nothing"
    )
    assert "board must be one of ulx3s-85f" in _fails(
        capsys, *run, *serial, "--port", "/dev/nothing", "--board", "nexys"
    )
    assert "--port, --board and --baud need --backend serial" in _fails(
        capsys, *run, "--port", "/dev/nothing"
    )
    assert "--backend must be one of verilator, serial, not 'fpga'" in _fails(
        capsys, *run, "--backend", "fpga"
    )
    options = (*run, *serial, "--port", str(tmp_path / "tty"), "--board", "ulx3s-85f")
    assert "--waves is for the simulated RTL" in _fails(capsys, *options, "--waves", "a.vcd")
    pytest.importorskip("serial", reason="pyserial is not installed")
    assert "cannot open the serial port" in _fails(capsys, *options)
    assert "a bit must last from 4 to 16 cycles, not 17" in _fails(
        capsys, "board-sim", "--board", "ulx3s-85f", "--cycles-per-bit", "17"
    )
    assert not (tmp_path / "out").exists()


# ---- what fits -----------------------------------------------------------------------------------


def test_what_fits() -> None:
    of = board("icebreaker")
    log = _log(8, 5000, 4096)
    options = fit_batch(TINY, log, JobOptions(batch=1024, row_bytes=64), of)
    assert options.batch == 32
    limit = fit_rows(TINY, log, options, of)
    assert 100 < limit < 250
    # It does fit, and one row more does not.
    port = GoldenBoard(TINY, "icebreaker", 1)
    backend = _backend(TINY, port, "icebreaker")
    folded = fold_rows(log[:128], limit)
    assert max(folded.table_rows) == limit
    result = run_job(TINY, folded, options, backend, GoldenBackend(TINY, backend.addresses))
    assert result["mismatched_bytes"] == 0
    backend = _backend(TINY, GoldenBoard(TINY, "icebreaker", 1), "icebreaker")
    more = fold_rows(log[:128], limit + 9)
    with pytest.raises(ValueError, match="do not fit into"):
        run_job(TINY, more, options, backend, GoldenBackend(TINY, backend.addresses))
    with pytest.raises(JobError, match=r"of 4096 samples take \d+ bytes, and board icebreaker has"):
        fit_rows(TINY, log, replace(options, batch=4096), of)
    assert fit_rows(TINY, _log(), OPTIONS, board("ulx3s-85f")) == 40


def test_sums_are_those_of_zlib(seed: int) -> None:
    linked = _Linked(seed)
    reply = linked.link.ask(LinkCommand.DIGEST, 2, 0x1040, size=1)
    there = linked.port.memory
    sums = [zlib.crc32(there[0x1040:0x1080]), zlib.crc32(there[0x1080:0x1100])]
    assert np.frombuffer(reply.payload, "<u4").tolist() == sums


def test_presets_of_the_boards() -> None:
    chosen = {name: board_preset(name) for name in BOARDS}
    assert chosen == {
        "ulx3s-85f": "ecp5", "ulx3s-12f": "tiny", "ecpix5-85f": "ecp5", "icebreaker": "tiny",
    }  # fmt: skip
