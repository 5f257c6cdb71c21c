"""The simulated board through a pseudo-terminal: the same bytes as on the wire."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.build import SIM_FOLDER
from serial_traffic import rubbish

from hotline.fpga.boards import BOARDS, board
from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.gen.register_map import IDENTITY
from hotline.gen.serial_link import LinkCommand
from hotline.host.board_simulator import MAX_DIVISOR, BoardSimulator, PseudoTerminal
from hotline.host.device import Device
from hotline.host.job import JobOptions
from hotline.host.run import BoardOptions, run
from hotline.host.serial_frames import FrameReader, Reply, Request, encode_frame
from hotline.host.serial_link import LinkError

pytest.importorskip("serial", reason="pyserial is not installed")

CACHE = SIM_FOLDER / "library"
#: The accelerator of preset ecp5, but small: the board around it is the same.
SMALL = preset("ecp5").replace(
    sets=64, lanes=1, max_sample_keys=32, max_tables=26, max_row_bytes=64, dedup_entries=16,
    learn_group=4, pool=False, scatter_add=False, gpus=1, perf_counters=False, id_width=1,
    read_outstanding=4, write_outstanding=2,
)  # fmt: skip


def _simulator(name: str, config: Config, divisor: int = 4) -> BoardSimulator:
    return BoardSimulator(config, board(name), divisor, CACHE)


@pytest.fixture
def ulx3s() -> Iterator[BoardSimulator]:
    simulator = _simulator("ulx3s-85f", SMALL)
    yield simulator
    simulator.close()


def _run(name: str, config: Config, simulator: BoardSimulator, folder: Path) -> dict:
    """`hotline run` with few rows, through a pseudo-terminal."""
    with PseudoTerminal(simulator) as terminal:
        wrong = run(
            config, "small", "synthetic:K", 32, JobOptions(batch=16, row_bytes=16), folder, None,
            rows=16, board=BoardOptions(terminal.path, name, choose_batch=False),
        )  # fmt: skip
    result = json.loads((folder / "result.json").read_text())
    assert wrong == result["mismatched_bytes"] == 0
    assert result["board"]["repeated"] == 0
    return result


def test_run_on_the_simulated_ulx3s(ulx3s: BoardSimulator, tmp_path: Path) -> None:
    """`hotline run` through the pseudo-terminal: the golden bytes, from the SDRAM."""
    result = _run("ulx3s-85f", SMALL, ulx3s, tmp_path)
    assert result["rows_gathered"] > 30
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of", "divisor"),
    [
        ("ulx3s-85f", "ecp5", 4),
        ("ecpix5-85f", "ecp5", 5),
        ("ulx3s-12f", "tiny", 4),
        ("icebreaker", "tiny", MAX_DIVISOR),
    ],
)
def test_run_on_every_simulated_board(name: str, of: str, divisor: int, tmp_path: Path) -> None:
    """The presets that are built for the boards."""
    config = preset(of)
    simulator = _simulator(name, config, divisor)
    if config.max_tables >= 26:
        _run(name, config, simulator, tmp_path)
    else:
        with PseudoTerminal(simulator) as terminal:
            device = Device.open("serial", config, port=terminal.path, board=name)
            _learn_and_gather(device)
    simulator.close()


def _learn_and_gather(device: Device) -> None:
    rng = np.random.default_rng(4)
    tables = rng.random((3, 20, 4)).astype(np.float32)
    device.use_tables(tables)
    clicks = (rng.random((24, 3)) ** 3 * 20).astype(np.int32)
    device.learn(clicks[:12])
    device.commit()
    rows = device.allocate(24 * 3 * 16)
    split = device.split(clicks, rows=rows)
    assert len(split.popular) and len(split.keys)
    for number, key in enumerate(split.keys.tolist()):
        row = rows.data[16 * number : 16 * number + 16].view(np.float32)
        assert (row == tables[key >> 32, key & 0xFFFFFFFF]).all()


def test_slow_line_and_wrong_frames(ulx3s: BoardSimulator, seed: int) -> None:
    """Behind the whole top: rubbish, and then a request that is answered."""
    rng = np.random.default_rng(seed)
    reader = FrameReader()
    for number in range(10):
        text, _ = rubbish(rng, 10, 0, 1 << 16)
        assert ulx3s.run(text, 20_000) == b""
        request = Request(number, LinkCommand.READ_REGISTER, 1, 0)
        answer = ulx3s.run(b"\x7e" + encode_frame(request.pack()), 100_000)
        reply = Reply.unpack(reader.feed(answer)[0])
        assert reply is not None and reply.number == number
        assert int.from_bytes(reply.payload, "little") == IDENTITY


def test_a_second_user_and_another_preset(ulx3s: BoardSimulator) -> None:
    """One after the other works; both at once, or the wrong preset, end in a sentence."""
    with PseudoTerminal(ulx3s) as terminal:
        for _ in range(2):
            with Device.open("serial", SMALL, port=terminal.path, board="ulx3s-85f") as device:
                _learn_and_gather(device)
                with pytest.raises(LinkError, match="cannot open the serial port"):
                    Device.open("serial", SMALL, port=terminal.path, board="ulx3s-85f")
        with pytest.raises(LinkError, match="the board holds another configuration"):
            Device.open("serial", "ecp5", port=terminal.path, board="ulx3s-85f")


def test_time_stands_still(ulx3s: BoardSimulator) -> None:
    """An idle board takes no processor time."""
    with PseudoTerminal(ulx3s) as terminal:
        time.sleep(0.5)
        assert ulx3s.cycles < 1000
        assert terminal.failure is None


def test_a_simulation_that_fails_hangs_up(ulx3s: BoardSimulator) -> None:
    """Who waits for an answer learns at once; who has started it gets the reason."""
    with PseudoTerminal(ulx3s) as terminal:
        device = Device.open("serial", SMALL, port=terminal.path, board="ulx3s-85f")

        def fail(data: bytes, cycles: int) -> bytes:
            raise RuntimeError("the simulated board fails")

        ulx3s.run = fail
        with pytest.raises(LinkError, match=f"the serial port {terminal.path} failed"):
            device.read("ID")
        with pytest.raises(RuntimeError, match="the simulated board fails"):
            terminal.join(10)


def test_divisors() -> None:
    for divisor in (3, MAX_DIVISOR + 1):
        with pytest.raises(ValueError, match=f"must last from 4 to 16 cycles, not {divisor}"):
            _simulator("ulx3s-85f", SMALL, divisor)
    assert all(of.baud_divisor >= 4 for of in BOARDS.values())


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """`hotline board-sim` prints a path, serves it, and ends at Ctrl-C."""
    command = [sys.executable, "-m", "hotline.gen.cli", "board-sim", "--board", "icebreaker"]
    environment = os.environ | {"HOTLINE_CACHE": str(CACHE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        path = re.fullmatch(r"tiny on icebreaker: (/dev/\S+)\n", line)
        assert path is not None, line
        with Device.open("serial", "tiny", port=path[1], board="icebreaker") as device:
            _learn_and_gather(device)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 0
