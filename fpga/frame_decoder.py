"""Frames out of a byte stream."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.frame_buffer import BASE_WORDS, BUFFER_WORDS, FRAME
from hotline.gen.serial_link import ESCAPE, ESCAPE_FLIP, FLAG

__all__ = ["FrameDecoder"]


class FrameDecoder(wiring.Component):
    """Finds frames, takes the escapes out, and says which frames are right.

    One byte a cycle, without latency; never stalls. A frame is right if it stands between two
    flags, its CRC is, and it consists of whole words, from a header to the longest payload. All
    others are forgotten; the flag that ends one begins the next. Reset: waits for a flag.

    Members
    -------
    input : In(stream)
        Bytes from the line; always ready.
    listen : In(1)
        While low nothing is taken, and a frame that has begun is forgotten.
    data, valid : Out(8), Out(1)
        A byte of the frame, its CRC included, for the buffer and for the CRC.
    place : Out
        Where in the buffer that byte goes; else the end of the frame so far, and that stays after
        `done`.
    restart : Out(1)
        The CRC begins again.
    match : In(1)
        The CRC over all bytes of the frame, its own CRC included, is the residue.
    done : Out(1)
        Pulse: the frame in the buffer is right.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "input": In(stream.Signature(8)),
                "listen": In(1),
                "data": Out(8),
                "valid": Out(1),
                "place": Out(range(4 * BUFFER_WORDS + 1), init=4 * FRAME),
                "restart": Out(1),
                "match": In(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        byte = self.input.payload
        inside, escaped = Signal(), Signal()
        flag, escape, full = Signal(), Signal(), Signal()
        m.d.comb += [
            full.eq(self.place[-1]),
            self.input.ready.eq(1),
            flag.eq(self.input.valid & (byte == FLAG)),
            escape.eq(byte == ESCAPE),
            self.data.eq(Mux(escaped, byte ^ ESCAPE_FLIP, byte)),
            self.restart.eq(flag & self.listen),
            self.valid.eq(self.listen & inside & self.input.valid & ~flag & ~escape & ~full),
            # An escape before the flag is how a sender breaks a frame off (RFC 1662, 4.3).
            self.done.eq(
                self.listen
                & inside
                & flag
                & ~escaped
                & self.match
                & (self.place >= 4 * BASE_WORDS)
                & (self.place[:2] == 0)
            ),
        ]
        with m.If(self.input.valid):
            m.d.sync += escaped.eq(escape)
        with m.If(self.valid):
            m.d.sync += self.place.eq(self.place + 1)
        with m.If(~self.listen | self.done):
            m.d.sync += inside.eq(0)
        with m.Elif(flag):
            m.d.sync += [inside.eq(1), self.place.eq(4 * FRAME)]
        with m.Elif(self.input.valid & ~escape & full):
            m.d.sync += inside.eq(0)
        return m
