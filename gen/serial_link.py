"""The serial link between host and board as data: framing, commands, status codes, limits.

Bridge (`hotline.fpga.serial_bridge`), host (`hotline.host.serial_frames`) and documents take it
from here. Framing and check sequence are those of PPP in HDLC-like framing (RFC 1662): a frame
stands between two flags, a flag inside it is escaped, and its last four bytes are the CRC-32 of
all before them. So a receiver that has lost its place finds it again at the next flag.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "BLOCK_BYTES",
    "COMMANDS",
    "CRC_BYTES",
    "ESCAPE",
    "ESCAPE_FLIP",
    "FLAG",
    "HEADER_BYTES",
    "MAX_BLOCK_LOG2",
    "MAX_WORDS",
    "REPLY",
    "WAIT_CYCLES",
    "LinkCommand",
    "LinkCommandInfo",
    "LinkStatus",
]

#: Begins and ends a frame.
FLAG = 0x7E
#: The byte after it was a FLAG or an ESCAPE, and has been XORed with ESCAPE_FLIP.
ESCAPE = 0x7D
ESCAPE_FLIP = 0x20

#: Sequence number, command, count (u16), address (u32), little-endian.
HEADER_BYTES = 8
CRC_BYTES = 4

#: FILL and DIGEST work on blocks of 2**n times this, n from 0 to MAX_BLOCK_LOG2. A block ends at a
#: multiple of its size, so the first one may be shorter.
BLOCK_BYTES = 64
MAX_BLOCK_LOG2 = 7

#: Words of payload in one frame; no `count` is greater. Beside them the bridge has room for header,
#: CRC and one block, in a buffer of 256 words.
MAX_WORDS = 224

#: Set in the second byte of a reply; the bits below are the status.
REPLY = 0x80

#: WAIT waits for `count` times so many cycles of the core clock.
WAIT_CYCLES = 4096


class LinkCommand(IntEnum):
    """Low four bits of the second byte of a request."""

    READ_REGISTER = 1
    WRITE_REGISTER = 2
    READ = 3
    WRITE = 4
    FILL = 5
    DIGEST = 6
    WAIT = 7


class LinkStatus(IntEnum):
    """Low seven bits of the second byte of a reply."""

    OK = 0
    BAD_COMMAND = 1
    BAD_LENGTH = 2
    BAD_ADDRESS = 3
    SLAVE_ERROR = 4
    DECODE_ERROR = 5
    NO_INTERRUPT = 6


@dataclass(frozen=True)
class LinkCommandInfo:
    """What a command is made of.

    Parameters
    ----------
    counts : str
        What the field `count` counts; empty if it must be 1.
    request, reply : str
        Words of payload, in terms of `count`; the reply's if the status is OK.
    address : int
        What the address must be a multiple of; 0 if it is ignored.
    writes : bool
        Whether it changes something, and so must not be carried out twice.
    does : str
        For the documents.
    """

    counts: str
    request: str
    reply: str
    address: int
    writes: bool
    does: str


COMMANDS: dict[LinkCommand, LinkCommandInfo] = {
    LinkCommand.READ_REGISTER: LinkCommandInfo("", "0", "1", 4, False, "reads a register"),
    LinkCommand.WRITE_REGISTER: LinkCommandInfo("", "1", "0", 4, True, "writes a register"),
    LinkCommand.READ: LinkCommandInfo("words", "0", "count", 4, False, "reads memory"),
    LinkCommand.WRITE: LinkCommandInfo("words", "count", "0", 4, True, "writes memory"),
    LinkCommand.FILL: LinkCommandInfo(
        "blocks", "1", "0", BLOCK_BYTES, True, "writes the word to all words of the blocks"
    ),
    LinkCommand.DIGEST: LinkCommandInfo(
        "blocks", "0", "count", BLOCK_BYTES, False, "returns the CRC-32 of each block"
    ),
    LinkCommand.WAIT: LinkCommandInfo(
        f"{WAIT_CYCLES} cycles",
        "0",
        "0",
        0,
        False,
        "waits for the interrupt: OK once it is high, else NO_INTERRUPT",
    ),
}
