"""Codec of the serial link: what was encoded comes out, whatever happens on the way does not."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hotline.gen.serial_link import (
    COMMANDS,
    CRC_BYTES,
    ESCAPE,
    FLAG,
    HEADER_BYTES,
    MAX_BLOCK_LOG2,
    MAX_WORDS,
    LinkCommand,
    LinkStatus,
)
from hotline.host.serial_frames import FrameReader, Reply, Request, encode_frame

BYTES = st.sampled_from([FLAG, ESCAPE, FLAG ^ 0x20, ESCAPE ^ 0x20, 0]) | st.integers(0, 255)
PAYLOADS = st.lists(BYTES, max_size=4 * MAX_WORDS).map(
    lambda items: bytes(items[: len(items) // 4 * 4])
)
REQUESTS = st.builds(
    Request,
    st.integers(0, 255),
    st.sampled_from(LinkCommand),
    st.integers(1, MAX_WORDS),
    st.integers(0, (1 << 32) - 1),
    PAYLOADS,
    st.integers(0, MAX_BLOCK_LOG2),
)
REPLIES = st.builds(
    Reply,
    st.integers(0, 255),
    st.sampled_from(LinkStatus),
    st.integers(0, (1 << 16) - 1),
    st.integers(0, (1 << 32) - 1),
    PAYLOADS,
)


@given(REQUESTS | REPLIES)
def test_round_trip(message: Request | Reply) -> None:
    text = encode_frame(message.pack())
    assert text[0] == text[-1] == FLAG and FLAG not in text[1:-1]
    (content,) = FrameReader().feed(text)
    assert type(message).unpack(content) == message
    other = Reply if isinstance(message, Request) else Request
    assert other.unpack(content) is None


@given(st.lists(REQUESTS, max_size=4), st.integers(1, 50), st.booleans())
def test_pieces(requests: list[Request], size: int, shared: bool) -> None:
    """However the bytes come in; with one flag between two frames or with two."""
    frames = [encode_frame(request.pack()) for request in requests]
    text = b"".join(frame[shared and number > 0 :] for number, frame in enumerate(frames))
    reader, found = FrameReader(), []
    for start in range(0, len(text), size):
        found += reader.feed(text[start : start + size])
    assert [Request.unpack(content) for content in found] == requests and not reader.dropped


@settings(max_examples=300)
@given(REQUESTS, st.data())
def test_damage_is_seen(request: Request, data: st.DataObject) -> None:
    """Up to three wrong bits, which CRC-32 sees for sure, unless they make or unmake a flag."""
    text = bytearray(encode_frame(request.pack()))
    places = st.integers(8, 8 * len(text) - 9)
    for bit in data.draw(st.sets(places, min_size=1, max_size=3)):
        text[bit // 8] ^= 1 << bit % 8
    found = FrameReader().feed(bytes(text))
    assert request.pack() not in found
    # A flag or an escape that appears or goes changes more bits than three: by chance 1 in 2**32.
    assert not found


@given(REQUESTS, st.integers(0, 2000))
def test_a_frame_that_breaks_off(request: Request, cut: int) -> None:
    """The next frame is found; the broken one only if nothing but its last flag is missing."""
    text = encode_frame(request.pack())
    whole = encode_frame(Reply(1, LinkStatus.OK).pack())
    reader = FrameReader()
    found = reader.feed(text[:cut] + whole)
    assert found[-1] == Reply(1, LinkStatus.OK).pack()
    assert len(found) == 1 + (cut >= len(text) - 1)


@given(st.binary(max_size=4000))
@example(bytes([FLAG]) + bytes(3000) + bytes([FLAG]))
@example(bytes([FLAG, ESCAPE]) * 9)
def test_rubbish(data: bytes) -> None:
    reader = FrameReader()
    assert not reader.feed(data)
    whole = encode_frame(Reply(1, LinkStatus.OK).pack())
    assert len(reader.feed(whole)) == 1
    assert len(reader._rest) == 0


def test_lengths() -> None:
    """Whole words, from a header to the longest payload; the CRC alone does not make a frame."""
    for size in (0, 4, HEADER_BYTES - 4, HEADER_BYTES + 1, HEADER_BYTES + 4 * MAX_WORDS + 4):
        reader = FrameReader()
        assert not reader.feed(encode_frame(bytes(size)))
        assert reader.dropped == 1
    for size in (HEADER_BYTES, HEADER_BYTES + 4 * MAX_WORDS):
        assert FrameReader().feed(encode_frame(bytes(size))) == [bytes(size)]


def test_the_check_sequence() -> None:
    """The standard's check value, and its place in the frame."""
    assert zlib.crc32(b"123456789") == 0xCBF43926
    content = b"\x01\x01\x01\x00\x10\x00\x00\x00"
    assert encode_frame(content)[1:-1] == content + zlib.crc32(content).to_bytes(4, "little")
    assert len(encode_frame(content)) == 2 + len(content) + CRC_BYTES


def test_every_command_is_described() -> None:
    assert set(COMMANDS) == set(LinkCommand)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 0}, f"count must be from 1 to {MAX_WORDS}, not 0"),
        ({"count": MAX_WORDS + 1}, f"count must be from 1 to {MAX_WORDS}, not {MAX_WORDS + 1}"),
        ({"payload": b"123"}, f"whole words, at most {MAX_WORDS}, not 3 bytes"),
        ({"payload": bytes(4 * MAX_WORDS + 4)}, f"at most {MAX_WORDS}, not 900 bytes"),
        ({"size": 8}, "size must be from 0 to 7, not 8"),
    ],
)
def test_requests_that_are_not_possible(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Request(1, LinkCommand.READ, **fields).pack()
