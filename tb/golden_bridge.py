"""Golden model of the serial bridge: bytes in, bytes out, over any registers and memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from hotline.gen.serial_link import (
    BLOCK_BYTES,
    HEADER_BYTES,
    MAX_WORDS,
    REPLY,
    LinkCommand,
    LinkStatus,
)
from hotline.golden.memory import Memory
from hotline.host.serial_frames import FrameReader, Request, encode_frame

__all__ = ["GoldenBridge", "RegisterPeer"]

_REGISTERS = (LinkCommand.READ_REGISTER, LinkCommand.WRITE_REGISTER)
_BLOCKS = (LinkCommand.FILL, LinkCommand.DIGEST)
_WRITES = (LinkCommand.WRITE_REGISTER, LinkCommand.WRITE, LinkCommand.FILL)
_STATUS = {
    0: LinkStatus.OK,
    1: LinkStatus.OK,
    2: LinkStatus.SLAVE_ERROR,
    3: LinkStatus.DECODE_ERROR,
}


class RegisterPeer(Protocol):
    """Whoever has registers: a back-end of the driver, for example."""

    def read_register(self, offset: int) -> tuple[int, int]: ...

    def write_register(self, offset: int, value: int) -> int: ...


@dataclass
class GoldenBridge:
    """What the bridge does with the frames that it receives.

    Parameters
    ----------
    registers : RegisterPeer
    memory : Memory
        Error ranges answer SLVERR, what is not mapped DECERR.
    line_bytes : int
        What the bridge reads and writes at a time.
    wait : callable
        Whether the interrupt comes within so many units of time.
    """

    registers: RegisterPeer
    memory: Memory
    line_bytes: int = BLOCK_BYTES
    wait: Callable[[int], bool] = lambda units: False
    reader: FrameReader = field(default_factory=FrameReader)
    _last: tuple[int, LinkStatus] | None = None

    def feed(self, data: bytes) -> bytes:
        """Replies to the frames that `data` completes."""
        return b"".join(encode_frame(self.answer(frame)) for frame in self.reader.feed(data))

    def answer(self, content: bytes) -> bytes:
        """Content of the reply to a frame's content."""
        number = content[0]
        request = Request.unpack(content)
        status, payload = self._check(request), b""
        if request is not None and status == LinkStatus.OK:
            writes = request.command in _WRITES
            if writes and self._last is not None and self._last[0] == number:
                status = self._last[1]
            else:
                status, payload = self._execute(request)
        self._last = number, status
        if status != LinkStatus.OK:
            payload = b""
        return bytes([number, status | REPLY]) + content[2:HEADER_BYTES] + payload

    def _check(self, request: Request | None) -> LinkStatus:
        if request is None or (request.size and request.command not in _BLOCKS):
            return LinkStatus.BAD_COMMAND
        command, words = request.command, len(request.payload) // 4
        needed = {LinkCommand.WRITE: request.count}.get(command, int(command in _WRITES))
        if not 1 <= request.count <= MAX_WORDS or words != needed:
            return LinkStatus.BAD_LENGTH
        if command in _REGISTERS and request.count != 1:
            return LinkStatus.BAD_LENGTH
        step = BLOCK_BYTES if command in _BLOCKS else 4
        beyond = command in _REGISTERS and request.address >> 12
        if command != LinkCommand.WAIT and (request.address % step or beyond):
            return LinkStatus.BAD_ADDRESS
        return LinkStatus.OK

    def _execute(self, request: Request) -> tuple[LinkStatus, bytes]:
        command, address, count = request.command, request.address, request.count
        if command == LinkCommand.READ_REGISTER:
            value, response = self.registers.read_register(address)
            return _STATUS[response], value.to_bytes(4, "little")
        if command == LinkCommand.WRITE_REGISTER:
            value = int.from_bytes(request.payload, "little")
            return _STATUS[self.registers.write_register(address, value)], b""
        if command == LinkCommand.WAIT:
            return (LinkStatus.OK if self.wait(count) else LinkStatus.NO_INTERRUPT), b""
        if command == LinkCommand.READ:
            return self._read(address, 4 * count)
        if command == LinkCommand.WRITE:
            return self._write(address, request.payload), b""
        block = BLOCK_BYTES << request.size
        # The first block ends, as all others, at a multiple of its size.
        ends = [address // block * block + (number + 1) * block for number in range(count)]
        if command == LinkCommand.FILL:
            return self._write(address, request.payload * ((ends[-1] - address) // 4)), b""
        sums = b""
        for end in ends:
            status, data = self._read(address, end - address)
            if status != LinkStatus.OK:
                return status, b""
            sums += zlib.crc32(data).to_bytes(4, "little")
            address = end
        return LinkStatus.OK, sums

    def _lines(self, address: int, size: int) -> range:
        first = address // self.line_bytes * self.line_bytes
        return range(first, address + size, self.line_bytes)

    def _line_status(self, line: int, write: bool) -> LinkStatus:
        if line >= 1 << 32:
            return LinkStatus.DECODE_ERROR
        if self.memory.fails(line, line + self.line_bytes - 1, write):
            return LinkStatus.SLAVE_ERROR
        if not self.memory.covers(line, self.line_bytes):
            return LinkStatus.DECODE_ERROR
        return LinkStatus.OK

    def _read(self, address: int, size: int) -> tuple[LinkStatus, bytes]:
        for line in self._lines(address, size):
            if (status := self._line_status(line, False)) != LinkStatus.OK:
                return status, b""
        return LinkStatus.OK, self.memory.read(address, size).tobytes()

    def _write(self, address: int, data: bytes) -> LinkStatus:
        for line in self._lines(address, len(data)):
            if (status := self._line_status(line, True)) != LinkStatus.OK:
                return status
            begin, end = max(line, address), min(line + self.line_bytes, address + len(data))
            self.memory.write(begin, data[begin - address : end - address])
        return LinkStatus.OK
