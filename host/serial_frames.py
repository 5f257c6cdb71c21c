"""Frames of the serial link, as bytes: what goes over the wire between host and board.

The format is that of :mod:`hotline.gen.serial_link`. Nothing here knows a port.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass

from hotline.gen.serial_link import (
    CRC_BYTES,
    ESCAPE,
    ESCAPE_FLIP,
    FLAG,
    HEADER_BYTES,
    MAX_BLOCK_LOG2,
    MAX_WORDS,
    REPLY,
    LinkCommand,
    LinkStatus,
)

__all__ = ["FrameReader", "Reply", "Request", "encode_frame"]

_HEADER = struct.Struct("<BBHI")
_CRC = struct.Struct("<I")
_FLAG, _ESCAPE = bytes([FLAG]), bytes([ESCAPE])
_SHORTEST = HEADER_BYTES + CRC_BYTES
_LONGEST = HEADER_BYTES + 4 * MAX_WORDS + CRC_BYTES
#: Escapes, of which only the last one means something, and the byte after them.
_ESCAPED = re.compile(_ESCAPE + b"+([^" + _ESCAPE + b"])", re.DOTALL)


def encode_frame(content: bytes) -> bytes:
    """Bytes for the wire: flag, `content` and its CRC-32 with escapes, flag."""
    text = content + _CRC.pack(zlib.crc32(content))
    for special in (_ESCAPE, _FLAG):
        text = text.replace(special, _ESCAPE + bytes([special[0] ^ ESCAPE_FLIP]))
    return _FLAG + text + _FLAG


class FrameReader:
    """Finds the frames in what comes from the wire, however it is cut into pieces.

    Members
    -------
    dropped : int
        Frames that were not right: broken off, damaged, or of no possible length.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._started = False
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The contents, without CRC, of the frames that `data` completes."""
        *ended, rest = (self._rest + data).split(_FLAG)
        if not self._started:
            # What came before the first flag belongs to no frame.
            self._started = bool(ended)
            ended = ended[1:]
        # More than every byte escaped cannot become a frame any more.
        self._rest = rest[: 2 * _LONGEST + 1] if self._started else b""
        found = []
        for text in ended:
            content = _decode(text)
            if content is not None:
                found.append(content)
            elif text:
                self.dropped += 1
        return found


def _decode(text: bytes) -> bytes | None:
    """The content of what stood between two flags; None if it is not a frame."""
    if text.endswith(_ESCAPE):
        return None
    plain = _ESCAPED.sub(lambda match: bytes([match[1][0] ^ ESCAPE_FLIP]), text)
    if not _SHORTEST <= len(plain) <= _LONGEST or len(plain) % 4:
        return None
    content, crc = plain[:-CRC_BYTES], plain[-CRC_BYTES:]
    return content if _CRC.pack(zlib.crc32(content)) == crc else None


@dataclass(frozen=True)
class Request:
    """What the host asks for.

    Parameters
    ----------
    number : int
        Sequence number, 0..255.
    command : LinkCommand
    count : int
        See :data:`hotline.gen.serial_link.COMMANDS`; 1..MAX_WORDS.
    address : int
        Byte address, 32 bits.
    payload : bytes
        Whole words.
    size : int
        FILL and DIGEST: log2 of the units of 64 bytes in a block.
    """

    number: int
    command: LinkCommand
    count: int = 1
    address: int = 0
    payload: bytes = b""
    size: int = 0

    def pack(self) -> bytes:
        """Content of the frame.

        Raises
        ------
        ValueError
            Payload, count or size are not possible.
        """
        if not 1 <= self.count <= MAX_WORDS:
            raise ValueError(f"count must be from 1 to {MAX_WORDS}, not {self.count}")
        if len(self.payload) % 4 or len(self.payload) > 4 * MAX_WORDS:
            raise ValueError(
                f"a payload must be whole words, at most {MAX_WORDS}, not {len(self.payload)} bytes"
            )
        if not 0 <= self.size <= MAX_BLOCK_LOG2:
            raise ValueError(f"size must be from 0 to {MAX_BLOCK_LOG2}, not {self.size}")
        code = self.command | self.size << 4
        return _HEADER.pack(self.number, code, self.count, self.address) + self.payload

    @classmethod
    def unpack(cls, content: bytes) -> Request | None:
        """The request in a frame; None if it is a reply or names no command."""
        number, code, count, address = _HEADER.unpack_from(content)
        if code & REPLY or code & 0xF not in set(LinkCommand):
            return None
        command, size = LinkCommand(code & 0xF), code >> 4
        return cls(number, command, count, address, content[HEADER_BYTES:], size)


@dataclass(frozen=True)
class Reply:
    """What the board answers.

    Parameters
    ----------
    number, count, address : int
        Those of the request.
    status : LinkStatus
    payload : bytes
        Whole words; none unless the status is OK.
    """

    number: int
    status: LinkStatus
    count: int = 1
    address: int = 0
    payload: bytes = b""

    def pack(self) -> bytes:
        """Content of the frame."""
        code = self.status | REPLY
        return _HEADER.pack(self.number, code, self.count, self.address) + self.payload

    @classmethod
    def unpack(cls, content: bytes) -> Reply | None:
        """The reply in a frame; None if it is none."""
        number, code, count, address = _HEADER.unpack_from(content)
        if not code & REPLY or code & ~REPLY not in set(LinkStatus):
            return None
        status = LinkStatus(code & ~REPLY)
        return cls(number, status, count, address, content[HEADER_BYTES:])
