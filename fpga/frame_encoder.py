"""Frames into a byte stream, and sums over what is in the buffer."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.frame_buffer import BUFFER_WORDS, FRAME, SCRATCH
from hotline.gen.config import log2
from hotline.gen.serial_link import (
    CRC_BYTES,
    ESCAPE,
    ESCAPE_FLIP,
    FLAG,
    HEADER_BYTES,
)

__all__ = ["FrameEncoder"]


class FrameEncoder(wiring.Component):
    """Sends a frame from the buffer, or only feeds words of it to the CRC.

    One byte a cycle, two more cycles for each word, and one for each escape. Back-pressure on
    `output` stops it. Reset: idle, a frame that was being sent is broken off.

    Parameters
    ----------
    sum_words : int
        Words from SCRATCH on that `sum` is for, a power of two.

    Members
    -------
    send : In(1)
        Pulse while not `busy`: send the words from FRAME to `end` - 1, and their CRC.
    end, bare : In
        Stable until `done`. `bare`: the header alone, whatever `end` is.
    sum, close : In(1)
        `sum` is a pulse while not `busy`: feed the words from SCRATCH on to the CRC. With `close`,
        which is stable until `done`, then give out the CRC.
    check, lane : Out(1), Out(2)
        `data` is the complement of byte `lane` of the CRC that `close` asked for.
    busy, done : Out(1)
        `done` is a pulse at the end.
    fetch, address, word : Out(1), Out, In(32)
        Read port of the buffer: `word` is the one at `address` from the cycle after `fetch` on,
        and stays until the next `fetch`.
    restart, data, valid : Out(1), Out(8), Out(1)
        For the CRC. It must be at its beginning before `sum`; `send` sees to that itself.
    crc : In(32)
        Its value.
    output : Out(stream)
        Bytes for the line.
    """

    def __init__(self, sum_words: int) -> None:
        self.sum_words = sum_words
        super().__init__(
            {
                "send": In(1),
                "end": In(range(BUFFER_WORDS)),
                "bare": In(1),
                "sum": In(1),
                "close": In(1),
                "check": Out(1),
                "lane": Out(range(CRC_BYTES)),
                "busy": Out(1),
                "done": Out(1),
                "fetch": Out(1),
                "address": Out(range(BUFFER_WORDS)),
                "word": In(32),
                "restart": Out(1),
                "data": Out(8),
                "valid": Out(1),
                "crc": In(32),
                "output": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        output, address = self.output, self.address
        # A register of its own, because block RAM is slow to answer.
        byte = Signal(8)
        needed, escaped, go, last = Signal(), Signal(), Signal(), Signal()
        quiet, finished, mark, closing = Signal(), Signal(), Signal(), Signal()
        # One ahead of the byte.
        lane = Signal(range(CRC_BYTES))
        source = Mux(closing, self.crc[:8], self.word.word_select(lane, 8))
        m.d.comb += [
            self.busy.eq(1),
            needed.eq((byte == FLAG) | (byte == ESCAPE)),
            output.payload.eq(byte ^ Mux(escaped, ESCAPE_FLIP, 0)),
            go.eq(quiet | (output.ready & (escaped | ~needed))),
            last.eq(lane == 0),
            self.lane.eq(lane - 1),
            # A CRC register that is fed with its own low byte just moves on to the next one.
            self.data.eq(byte ^ closing.replicate(8)),
            # The address is one ahead of the word.
            finished.eq(
                Mux(quiet, address[log2(self.sum_words)], address == self.end)
                | (self.bare & (address[:2] == (FRAME + HEADER_BYTES // 4) % 4))
            ),
        ]
        with m.If(mark | (needed & ~escaped)):
            m.d.comb += output.payload.eq(Mux(mark, FLAG, ESCAPE))
        with m.FSM(name="encoder"):
            with m.State("IDLE"):
                m.d.comb += self.busy.eq(0)
                m.d.sync += [
                    quiet.eq(self.sum),
                    closing.eq(0),
                    address.eq(Mux(self.sum, SCRATCH[0], FRAME)),
                ]
                with m.If(self.sum):
                    m.next = "FETCH"
                with m.Elif(self.send):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [output.valid.eq(1), mark.eq(1), self.restart.eq(1)]
                with m.If(output.ready):
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.comb += self.fetch.eq(1)
                m.d.sync += address.eq(address + 1)
                m.next = "LOAD"
            with m.State("LOAD"):
                m.d.sync += [byte.eq(source), lane.eq(lane + 1)]
                m.next = "BYTE"
            with m.State("BYTE"):
                m.d.comb += [
                    output.valid.eq(~quiet),
                    self.valid.eq(go),
                    self.check.eq(quiet & closing),
                ]
                with m.If(~quiet & output.ready):
                    m.d.sync += escaped.eq(needed & ~escaped)
                with m.If(go & last):
                    m.next = "FETCH"
                    with m.If(closing):
                        m.next = "END"
                    with m.Elif(finished):
                        m.d.sync += closing.eq(1)
                        m.next = "LOAD"
                        with m.If(quiet & ~self.close):
                            m.next = "END"
                with m.Elif(go & closing):
                    # Not before the CRC has moved on.
                    m.next = "LOAD"
                with m.Elif(go):
                    m.d.sync += [byte.eq(source), lane.eq(lane + 1)]
            with m.State("END"):
                m.d.comb += [output.valid.eq(~quiet), mark.eq(1)]
                with m.If(quiet | output.ready):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
        return m
