"""The memory of a board, kept the same as arrays of the host.

The driver gives arrays to a device, which works on them in place. A board has memory of its own,
so what the host has changed goes there before the device starts, and what the device has changed
comes back when it has ended something. What has changed is found without moving it: on the host by
comparison with an image of the board's memory, on the board by sums over blocks (DIGEST). So every
byte that the device may have written is looked at, also where no array lies.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator

import numpy as np

from hotline.gen.serial_link import BLOCK_BYTES, MAX_BLOCK_LOG2, MAX_WORDS, LinkCommand, LinkStatus
from hotline.golden.memory import Memory
from hotline.host.serial_frames import Reply
from hotline.host.serial_link import LinkError, SerialLink

__all__ = ["BoardMemory"]

#: log2 of the blocks that are summed up, in units of 64 bytes; within those that differ the next.
_LEVELS = (MAX_BLOCK_LOG2, 3, 0)
#: Lines of 64 bytes in one request.
_MOST_LINES = 4 * MAX_WORDS // BLOCK_BYTES
#: So many equal lines are worth a FILL of their own.
_FILL_LINES = 2


class BoardMemory:
    """Keeps a board's memory and the regions of a memory image the same.

    Host and device must not write to the same line of 64 bytes between two calls.

    Parameters
    ----------
    link : SerialLink
        To the board.
    memory : Memory
        The host's arrays; regions may come and go.
    size : int
        Bytes of the board's memory, which begins at address 0.
    bytes_per_second : float
        How fast the board sums up.
    """

    def __init__(
        self, link: SerialLink, memory: Memory, size: int, bytes_per_second: float
    ) -> None:
        self._link, self._memory, self._size = link, memory, size
        self._speed = bytes_per_second
        #: What the board's memory holds, from address 0 on, as far as it is used.
        self._image = np.zeros(0, np.uint8)

    def push(self) -> None:
        """Send to the board what the host has changed.

        Raises
        ------
        LinkError
            A region lies outside the board's memory, or the board does not answer.
        """
        used = max((base + data.size for base, data in self._memory.regions), default=0)
        used = -(-used // BLOCK_BYTES) * BLOCK_BYTES
        if used > self._size:
            raise LinkError(
                f"the host's arrays take addresses up to {used:#x}, the board's memory has only "
                f"{self._size:#x} bytes"
            )
        known = self._image.size
        if used > known:
            self._image = np.concatenate([self._image, np.zeros(used - known, np.uint8)])
        changed = np.zeros(self._image.size // BLOCK_BYTES, bool)
        for base, data in self._memory.regions:
            part = self._image[base : base + data.size]
            places = np.flatnonzero(part != data) + base
            part[:] = data
            changed[places // BLOCK_BYTES] = True
        # What lies beyond was never looked at: what is right there need not be sent.
        changed[known // BLOCK_BYTES :] = False
        lines = [*np.flatnonzero(changed), *self._differing(known, used)]
        for first, count in _runs(lines):
            self._write(first, count)

    def pull(self) -> None:
        """Fetch from the board what the device has changed.

        Raises
        ------
        LinkError
            The device has written where no region is, or the board does not answer.
        """
        for first, count in _runs(self._differing(0, self._image.size)):
            for start in range(first, first + count, _MOST_LINES):
                self._read(start, min(_MOST_LINES, first + count - start))

    # ---- inside -------------------------------------------------------------------------------

    def _differing(self, first: int, end: int) -> list[int]:
        """Numbers of the lines, from byte `first` to `end`, that differ from the image."""
        spans = [(first, end)] if first < end else []
        for size in _LEVELS:
            spans = [piece for span in spans for piece in self._narrow(*span, size)]
        return [
            line
            for start, stop in spans
            for line in range(start // BLOCK_BYTES, stop // BLOCK_BYTES)
        ]

    def _narrow(self, first: int, end: int, size: int) -> list[tuple[int, int]]:
        """Parts of a span that hold all differences: blocks of 2**size lines, and the rest."""
        block = BLOCK_BYTES << size
        # Blocks end at multiples of their size; the first one may begin later.
        ends = range(first // block * block + block, end + 1, block)
        found: list[tuple[int, int]] = []
        start = first
        for done in range(0, len(ends), MAX_WORDS):
            part = ends[done : done + MAX_WORDS]
            seconds = (part[-1] - start) / self._speed
            reply = self._ask(LinkCommand.DIGEST, len(part), start, b"", size, seconds)
            for stop, theirs in zip(part, np.frombuffer(reply.payload, "<u4"), strict=True):
                if zlib.crc32(self._image[start:stop].data) != theirs:
                    if found and found[-1][1] == start:
                        found[-1] = found[-1][0], stop
                    else:
                        found.append((start, stop))
                start = stop
        if start < end:
            found.append((start, end))
        return found

    def _write(self, first: int, count: int) -> None:
        """Send lines of the image; where a word repeats, just how often."""
        words = self._image[first * BLOCK_BYTES : (first + count) * BLOCK_BYTES].view("<u4")
        lines = words.reshape(count, -1)
        flat = (lines == lines[:, :1]).all(axis=1)
        # A new piece begins where flat lines begin or end, or their word changes.
        cuts = np.flatnonzero(
            (flat[1:] != flat[:-1]) | (flat[1:] & (lines[1:, 0] != lines[:-1, 0]))
        )
        bounds = [0, *(cuts + 1).tolist(), count]
        start = 0
        for begin, end in itertools.pairwise(bounds):
            if flat[begin] and end - begin >= _FILL_LINES:
                self._send(first, lines, start, begin)
                self._fill(first + begin, end - begin, lines[begin, :1].tobytes())
                start = end
        self._send(first, lines, start, count)

    def _send(self, first: int, lines: np.ndarray, begin: int, end: int) -> None:
        for start in range(begin, end, _MOST_LINES):
            payload = lines[start : min(end, start + _MOST_LINES)].tobytes()
            address = (first + start) * BLOCK_BYTES
            self._ask(LinkCommand.WRITE, len(payload) // 4, address, payload)

    def _fill(self, line: int, count: int, word: bytes) -> None:
        while count:
            # The largest blocks that end where this run does, or before.
            size = next(
                size
                for size in range(MAX_BLOCK_LOG2, -1, -1)
                if line // (1 << size) * (1 << size) + (1 << size) <= line + count
            )
            start = line // (1 << size) << size
            blocks = min(MAX_WORDS, (line + count - start) >> size)
            done = start + (blocks << size) - line
            seconds = done * BLOCK_BYTES / self._speed
            self._ask(LinkCommand.FILL, blocks, line * BLOCK_BYTES, word, size, seconds)
            line, count = line + done, count - done

    def _read(self, line: int, count: int) -> None:
        first, size = line * BLOCK_BYTES, count * BLOCK_BYTES
        reply = self._ask(LinkCommand.READ, size // 4, first)
        now = np.frombuffer(reply.payload, np.uint8)
        ours = self._image[first : first + size]
        changed = now != ours
        ours[:] = now
        for base, data in self._memory.regions:
            begin, end = max(first, base), min(first + size, base + data.size)
            if begin < end:
                part = changed[begin - first : end - first]
                data[begin - base : end - base][part] = now[begin - first : end - first][part]
                part[:] = False
        if changed.any():
            place = first + int(np.flatnonzero(changed)[0])
            raise LinkError(
                f"the device wrote to {place:#x} in the board's memory, where no array of the "
                f"host is"
            )

    def _ask(
        self,
        command: LinkCommand,
        count: int,
        address: int,
        payload: bytes = b"",
        size: int = 0,
        seconds: float = 0.0,
    ) -> Reply:
        reply = self._link.ask(command, count, address, payload, size, seconds=seconds)
        if reply.status != LinkStatus.OK:
            raise LinkError(
                f"the board's memory answered {command.name} at {address:#x} with "
                f"{reply.status.name}: is it the right board?"
            )
        return reply


def _runs(lines: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First line and length of each run of consecutive lines; `lines` ascend."""
    first = length = 0
    for line in map(int, lines):
        if length and line == first + length:
            length += 1
            continue
        if length:
            yield first, length
        first, length = line, 1
    if length:
        yield first, length
