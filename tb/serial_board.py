"""A board without hardware: the golden device behind the golden bridge, as a serial port."""

from __future__ import annotations

import numpy as np
from golden_bridge import GoldenBridge

from hotline.fpga.boards import board
from hotline.gen.config import Config
from hotline.gen.serial_link import WAIT_CYCLES
from hotline.host.backends import GoldenBackend

__all__ = ["GoldenBoard"]


class GoldenBoard:
    """What a link needs of a port, with a board at the other end.

    Parameters
    ----------
    config : Config
    name : str
        Which board: its memory starts with random contents.
    seed : int
    fault : float
        Probability with which what is written, or what comes back, is lost or damaged.
    size : int, optional
        Bytes of memory, if not those of the board.
    """

    def __init__(
        self, config: Config, name: str, seed: int, *, fault: float = 0.0, size: int = 0
    ) -> None:
        self.device = GoldenBackend(config)
        self.rng = np.random.default_rng(seed)
        self.fault = fault
        self.memory = self.rng.integers(0, 256, size or board(name).ram_bytes, np.uint8)
        self.device.memory.add_region(0, self.memory)
        self.bridge = GoldenBridge(
            self, self.device.memory, wait=lambda units: self.device.wait_irq(units * WAIT_CYCLES)
        )
        self.writes: list[tuple[int, int]] = []
        self.faults = 0
        self.open = True
        self._out = b""

    # ---- registers, for the bridge ------------------------------------------------------------

    def read_register(self, offset: int) -> tuple[int, int]:
        return self.device.read_register(offset)

    def write_register(self, offset: int, value: int) -> int:
        self.writes.append((offset, value))
        return self.device.write_register(offset, value)

    # ---- port ---------------------------------------------------------------------------------

    @property
    def in_waiting(self) -> int:
        return len(self._out)

    def read(self, size: int) -> bytes:
        data, self._out = self._out[:size], self._out[size:]
        return data

    def write(self, data: bytes) -> int:
        # What came before, and was not read, is late: it comes now.
        self._out += self._line(self.bridge.feed(self._line(data)))
        return len(data)

    def close(self) -> None:
        self.open = False

    def _line(self, data: bytes) -> bytes:
        """What arrives of `data`."""
        if not data or self.rng.random() >= self.fault:
            return data
        self.faults += 1
        kind, place = int(self.rng.integers(4)), int(self.rng.integers(len(data)))
        if kind == 0:
            return b""
        if kind == 1:
            return data[:place]
        if kind == 2:
            return data + data
        return (
            data[:place] + bytes([data[place] ^ 1 << int(self.rng.integers(8))]) + data[place + 1 :]
        )
