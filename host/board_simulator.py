"""A board in simulation, behind a pseudo-terminal instead of a serial port."""

from __future__ import annotations

import ctypes
import os
import select
import threading
import tty
from pathlib import Path
from typing import Any, Self

from hotline.fpga.boards import Board
from hotline.gen.config import Config
from hotline.host.cache import cache_folder
from hotline.host.verilated_build import kept_verilog, shared_library

__all__ = ["MAX_DIVISOR", "BoardSimulator", "PseudoTerminal"]

#: Cycles for each bit; more would only make the simulation slow.
MIN_DIVISOR, MAX_DIVISOR = 4, 16

_SOURCE = Path(__file__).parent / "cpp" / "board.cpp"
_ROOM = 1 << 16
#: Cycles until the line is looked at again.
_STEP = 20_000
#: Time stands still after so many cycles without a byte: the host is not waiting.
_PATIENCE = 4_000_000
_IDLE_SECONDS = 0.2
_MAKE_FLAGS = ("OPT_FAST=-O2", "OPT_SLOW=-O0", "OPT_GLOBAL=-O2")


def _arguments(top: str) -> list[str]:
    return [
        "--top-module", top, "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-timing",
        "--no-assert", "--no-trace", "-Wno-fatal", "-Wno-lint", "-Wno-style",
        "--output-split", "20000", "-CFLAGS", "-fPIC -std=c++17", "-LDFLAGS", "-shared",
        str(_SOURCE), "board.v",
    ]  # fmt: skip


def _library(config: Config, board: Board, divisor: int, cache: str | Path | None) -> Path:
    import hotline.fpga
    import hotline.gen
    import hotline.rtl
    from hotline.fpga.simulated_board import SIMULATED_TOP, simulated_verilog

    text = kept_verilog(
        "board",
        [config.canonical_json(), repr(board), str(divisor)],
        [hotline.gen, hotline.rtl, hotline.fpga],
        lambda: simulated_verilog(config, board, divisor),
        cache,
    )
    arguments = _arguments(SIMULATED_TOP)
    return shared_library("board", text, arguments, [_SOURCE], _MAKE_FLAGS, cache_folder(cache))


class BoardSimulator:
    """The Verilated board top: characters in, characters out.

    Parameters
    ----------
    config : Config
        Of the accelerator.
    board : Board
    divisor : int
        Cycles for each bit on the serial line, 4 to 16.
    cache : path, optional
        Folder of the builds; default: :func:`~hotline.host.cache.cache_folder`.

    Raises
    ------
    RuntimeError
        The tools are missing or the build fails.
    ValueError
        The divisor is out of range, or the configuration does not go with the board.
    """

    def __init__(
        self,
        config: Config,
        board: Board,
        divisor: int = MIN_DIVISOR,
        cache: str | Path | None = None,
    ) -> None:
        if not MIN_DIVISOR <= divisor <= MAX_DIVISOR:
            raise ValueError(
                f"a bit must last from {MIN_DIVISOR} to {MAX_DIVISOR} cycles, not {divisor}"
            )
        self._handle: Any = None
        self._library: Any = ctypes.CDLL(str(_library(config, board, divisor, cache)))
        self._library.board_create.restype = ctypes.c_void_p
        self._library.board_failure.restype = ctypes.c_char_p
        for name in ("take", "cycles"):
            getattr(self._library, f"board_{name}").restype = ctypes.c_uint64
        self._handle = ctypes.c_void_p(self._library.board_create(ctypes.c_uint32(divisor)))
        self._out = ctypes.create_string_buffer(_ROOM)

    def run(self, data: bytes, cycles: int) -> bytes:
        """Send `data` to the board, let time pass, and return what has come from it.

        Time passes until all is sent, and then for the rest of `cycles`, or until the board has
        answered and is silent again.

        Raises
        ------
        RuntimeError
            The board did what it must not.
        """
        self._library.board_run(
            self._handle, data, ctypes.c_uint64(len(data)), ctypes.c_uint64(cycles)
        )
        failure = self._library.board_failure(self._handle)
        if failure:
            raise RuntimeError(f"the simulated board fails, {failure.decode()}")
        size = self._library.board_take(self._handle, self._out, ctypes.c_uint64(_ROOM))
        return self._out.raw[:size]

    @property
    def cycles(self) -> int:
        """Clock cycles since the beginning."""
        return int(self._library.board_cycles(self._handle))

    def close(self) -> None:
        """Free the simulation."""
        if self._handle is not None:
            self._library.board_destroy(self._handle)
            self._handle = None


class PseudoTerminal:
    """Joins a simulator to a pseudo-terminal, in a thread of its own, until :meth:`close`.

    What a program writes to :attr:`path` arrives at the board bit by bit, and the other way
    round. Where nothing comes for long the simulation stands still.

    Parameters
    ----------
    simulator : BoardSimulator
        Used by the thread alone, until :meth:`close`.

    Members
    -------
    path : str
        Name to open as a serial port.
    failure : Exception or None
        Why the thread has ended by itself.
    """

    def __init__(self, simulator: BoardSimulator) -> None:
        self._simulator = simulator
        # The slave stays open here: else the master fails between two programs that use it.
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self.failure: Exception | None = None
        self._open = True
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def join(self, seconds: float | None = None) -> None:
        """Wait until the thread has ended, or for some time.

        Raises
        ------
        Exception
            What has ended it.
        """
        self._thread.join(seconds)
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """End the thread, and take the pseudo-terminal away."""
        self._stop.set()
        self._thread.join()
        self._hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        try:
            quiet = _PATIENCE
            while not self._stop.is_set():
                wait = _IDLE_SECONDS if quiet >= _PATIENCE else 0.0
                ready, _, _ = select.select([self._master], [], [], wait)
                data = os.read(self._master, _ROOM) if ready else b""
                if not data and quiet >= _PATIENCE:
                    continue
                answer = self._simulator.run(data, _STEP)
                quiet = 0 if data or answer else quiet + _STEP
                if answer:
                    _write(self._master, answer)
        except Exception as error:  # the thread's owner must learn of whatever it was
            self.failure = error
            # And so must the program that waits for an answer.
            self._hang_up()

    def _hang_up(self) -> None:
        if self._open:
            self._open = False
            os.close(self._master)
            os.close(self._slave)


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
