"""Linear reader: a contiguous region as read bursts."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.burst import aligned_beats, beat_bits, room_in_burst
from hotline.rtl.interfaces import BURST_BITS, bus_address, read_request
from hotline.rtl.stream_stage import StreamStage

__all__ = ["LinearReader"]

#: The longest region of any command, in bytes.
_LONGEST = 1 << 35


class LinearReader(wiring.Component):
    """Requests all beats of a region, in order.

    Contract: one request per cycle, the first one two cycles after `start`. Bursts end at
    multiples of the largest power of two that `max_burst_beats` and 4 KiB allow, and with the
    region. `done` falls in the cycle after `start` and rises when the last request has been handed
    over; for 0 bytes there is no request. `start` is allowed only while `done`. Reset: done.

    Parameters
    ----------
    config : Config
    longest : int
        The most bytes that a region has.

    Members
    -------
    start : In
        Latches `addr` and `bytes`.
    addr : In
        Bus-aligned byte address.
    bytes : In
        Length, rounded up to the bus; 0 to `longest`.
    request : Out stream of read_request
    done : Out
        Everything has been handed over. Low from the cycle after `start`.
    """

    def __init__(self, config: Config, longest: int = _LONGEST) -> None:
        self._config = config
        self._length_bits = longest.bit_length()
        super().__init__(
            {
                "start": In(1),
                "addr": In(bus_address(config)),
                "bytes": In(self._length_bits),
                "request": Out(stream.Signature(read_request(config))),
                "done": Out(1, init=1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        low, limit = beat_bits(config), aligned_beats(config)
        offset_bits = log2(limit)
        place = Signal(bus_address(config).width - low, reset_less=True)
        # Whole beats, and maybe a part of one, kept apart to save an adder over the whole length.
        left = Signal(self._length_bits - low, reset_less=True)
        part = Signal()
        room, beats = Signal(BURST_BITS), Signal(BURST_BITS)
        final, running = Signal(), Signal()
        m.submodules.exit = leaving = StreamStage(read_request(config))
        wiring.connect(m, leaving.output, wiring.flipped(self.request))
        request = leaving.input
        m.d.comb += [
            room.eq(room_in_burst(config, place)),
            final.eq((left < room) | ((left == room) & ~part)),
            beats.eq(Mux(final, left[:BURST_BITS] + part, room)),
            request.valid.eq(running & ((left != 0) | part)),
            request.payload.addr.eq(Cat(Const(0, low), place)),
            request.payload.beats.eq(beats),
        ]
        with m.If(request.ready):
            with m.If(running):
                # After the first burst the place is a multiple of the limit: no wide adder.
                m.d.sync += [
                    place.eq(Cat(Const(0, offset_bits), place[offset_bits:] + 1)),
                    left.eq(left - room),
                    running.eq(~final),
                ]
            with m.Else():
                m.d.sync += self.done.eq(1)
        with m.If(self.start):
            m.d.sync += [
                place.eq(self.addr[low:]),
                left.eq(self.bytes[low:]),
                part.eq(self.bytes[:low].any()),
                running.eq(1),
                self.done.eq(0),
            ]
        return m
