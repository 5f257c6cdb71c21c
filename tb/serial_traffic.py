"""Requests and rubbish for the serial bridge, from a generator of random numbers."""

from __future__ import annotations

import copy

import numpy as np

from hotline.gen.serial_link import (
    BLOCK_BYTES,
    FLAG,
    MAX_WORDS,
    LinkCommand,
)
from hotline.host.serial_frames import FrameReader, Request, encode_frame

__all__ = ["bad_request", "good_request", "rubbish"]

_REGISTER_BYTES = 0x1000


def good_request(
    rng: np.random.Generator, number: int, base: int, size: int, wait: bool = False
) -> Request:
    """A request that makes sense; memory is `size` bytes from `base` on, and it may go beyond."""
    commands = [command for command in LinkCommand if wait or command != LinkCommand.WAIT]
    command = LinkCommand(rng.choice(commands))
    count = int(rng.integers(1, MAX_WORDS + 1) if rng.random() < 0.3 else rng.integers(1, 12))
    words = 0
    log2_block = 0
    address = base + int(rng.integers(-40, size + 40)) // 4 * 4
    if command in (LinkCommand.READ_REGISTER, LinkCommand.WRITE_REGISTER):
        address, count = int(rng.integers(_REGISTER_BYTES)) // 4 * 4, 1
        words = int(command == LinkCommand.WRITE_REGISTER)
    elif command == LinkCommand.WRITE:
        words = count
    elif command in (LinkCommand.FILL, LinkCommand.DIGEST):
        log2_block = int(rng.integers(8)) if rng.random() < 0.1 else int(rng.integers(2))
        count = min(count, max(1, size // (BLOCK_BYTES << log2_block)))
        address = address // BLOCK_BYTES * BLOCK_BYTES
        words = int(command == LinkCommand.FILL)
    elif command == LinkCommand.WAIT:
        count = 1
    # Bytes that need an escape are more frequent than they would be.
    payload = rng.choice([rng.integers(256), 0x7D, 0x7E, 0], 4 * words).astype(np.uint8)
    payload ^= rng.integers(0, 256, 4 * words, np.uint8) * (rng.random(4 * words) < 0.7)
    return Request(number, command, count, address, payload.tobytes(), log2_block)


def bad_request(rng: np.random.Generator, number: int, base: int) -> bytes:
    """Content of a frame that is right as a frame, but asks for what is not allowed."""
    good = bytearray(good_request(rng, number, base, 256).pack())
    kind = rng.integers(5)
    if kind == 0:
        good[1] = int(rng.integers(256))
    elif kind == 1:
        good[2:4] = int(rng.choice([0, MAX_WORDS + 1, 255, 256, 0x101, 0xFFFF])).to_bytes(
            2, "little"
        )
    elif kind == 2:
        good += bytes(rng.integers(0, 256, 4 * int(rng.integers(1, 4)), np.uint8))
        del good[8 + 4 * MAX_WORDS :]
    elif kind == 3:
        del good[8:]
    else:
        good[4 + int(rng.integers(4))] ^= 1 << int(rng.integers(8))
    return bytes(good)


def rubbish(
    rng: np.random.Generator, count: int, base: int, size: int
) -> tuple[bytes, dict[str, int]]:
    """`count` frames, none of them right, and how many there are of each kind.

    Each was made from a request that writes, so that one which is taken for right would show.
    """
    text, reader = b"", FrameReader()
    kinds = dict.fromkeys(("random", "damaged", "truncated", "shifted"), 0)
    made = 0
    while made < count:
        kind = str(rng.choice(list(kinds)))
        if kind == "random":
            piece = bytes(rng.integers(0, 256, int(rng.integers(1, 60)), np.uint8))
            piece = bytes([FLAG]) * int(rng.integers(2)) + piece + bytes([FLAG])
        else:
            piece = _spoilt(rng, kind, base, size)
        trial = copy.copy(reader)
        # Without its last flag a frame is right as soon as the next one begins.
        if trial.feed(piece) or copy.copy(trial).feed(bytes([FLAG])):
            continue
        text, reader = text + piece, trial
        kinds[kind] += 1
        made += 1
    return text, kinds


def _spoilt(rng: np.random.Generator, kind: str, base: int, size: int) -> bytes:
    """A frame that writes, damaged."""
    command = rng.choice([LinkCommand.WRITE, LinkCommand.WRITE_REGISTER, LinkCommand.FILL])
    words = int(rng.integers(1, 9)) if command == LinkCommand.WRITE else 1
    address = int(rng.integers(size)) // 64 * 64 + base
    if command == LinkCommand.WRITE_REGISTER:
        address = int(rng.integers(0x800)) // 4 * 4
    payload = bytes(rng.integers(0, 256, 4 * words, np.uint8))
    number = int(rng.integers(256))
    request = Request(number, LinkCommand(command), words, address, payload)
    frame = bytearray(encode_frame(request.pack()))
    place = int(rng.integers(len(frame)))
    if kind == "truncated":
        return bytes(frame[: 1 + place] if rng.random() < 0.7 else frame[place:])
    if kind == "damaged":
        for _ in range(int(rng.integers(1, 5))):
            frame[int(rng.integers(len(frame)))] ^= 1 << int(rng.integers(8))
    elif rng.random() < 0.5:
        del frame[place : place + int(rng.integers(1, 4))]
    else:
        frame[place:place] = bytes(rng.integers(0, 256, int(rng.integers(1, 4)), np.uint8))
    return bytes(frame)
