"""Where what lies in the buffer of the serial bridge."""

from __future__ import annotations

from hotline.gen.serial_link import BLOCK_BYTES, CRC_BYTES, HEADER_BYTES, MAX_WORDS

__all__ = ["BASE_WORDS", "BUFFER_WORDS", "FRAME", "SCRATCH"]

#: Words of the buffer.
BUFFER_WORDS = 256
#: Number of words from the beginning of the buffer to the end of a frame without payload. As a
#: power of two, so that the length of a payload can be read off the end of its frame.
BASE_WORDS = BUFFER_WORDS - MAX_WORDS
#: First word of a frame.
FRAME = BASE_WORDS - (HEADER_BYTES + CRC_BYTES) // 4
#: Words that take a block while it is summed up.
SCRATCH = range(BLOCK_BYTES // 4)

assert BASE_WORDS & (BASE_WORDS - 1) == 0 and SCRATCH.stop <= FRAME
