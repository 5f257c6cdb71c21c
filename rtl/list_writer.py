"""List writer: a contiguous region, beat by beat, as write bursts."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.burst import aligned_beats, beat_bits
from hotline.rtl.interfaces import bus_address, list_beat, write_beat

__all__ = ["ListWriter"]


class ListWriter(wiring.Component):
    """Writes the beats of a list from `base` on, cut into bursts.

    Contract: one beat per cycle. One beat is held back, because only its successor tells whether
    it ends the region; so a beat comes out one cycle after the next one has been offered.
    Back-pressure on `output` stalls `input` in the same cycle. Bursts end at multiples of the
    largest power of two that `max_burst_beats` and 4 KiB allow, and with the region. After the
    beat with `last` has been taken and written out, the next `start` may come. Reset forgets the
    beat held back.

    Parameters
    ----------
    config : Config

    Members
    -------
    start : In
        Latches `base`, which must be bus-aligned.
    base : In
    input : In stream of list_beat
    output : Out stream of write_beat
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "base": In(bus_address(config)),
                "input": In(stream.Signature(list_beat(config))),
                "output": Out(stream.Signature(write_beat(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        low, offset_bits = beat_bits(config), log2(aligned_beats(config))
        upper_bits = bus_address(config).width - low
        # Beats, as an address: of the beat held back, and of the burst's first one; these differ
        # only below the multiple at which bursts end.
        first = Signal(offset_bits, reset_less=True)
        place = Signal(upper_bits, reset_less=True)
        held, held_last = Signal(), Signal()
        beat = Signal(list_beat(config), reset_less=True)
        # An end marker with strobe 0 is no beat of its own, it ends the one before.
        marker, send = Signal(), Signal()
        ends_burst = Signal()
        m.d.comb += [
            marker.eq(self.input.payload.last & ~self.input.payload.strobe.any()),
            ends_burst.eq(place[:offset_bits].all() if offset_bits else 1),
            self.output.valid.eq(held & (held_last | self.input.valid)),
            self.output.payload.data.eq(beat.data),
            self.output.payload.strobe.eq(beat.strobe),
            self.output.payload.addr.eq(Cat(Const(0, low), first, place[offset_bits:])),
            self.output.payload.last.eq(ends_burst | held_last | marker),
            send.eq(self.output.valid & self.output.ready),
            self.input.ready.eq(~held | (self.output.ready & ~held_last)),
        ]
        with m.If(send):
            m.d.sync += [held.eq(0), place.eq(place + 1)]
            with m.If(ends_burst):
                m.d.sync += first.eq(0)
        with m.If(self.input.valid & self.input.ready & ~marker):
            m.d.sync += [
                held.eq(1),
                held_last.eq(self.input.payload.last),
                beat.eq(self.input.payload),
            ]
        with m.If(self.start):
            m.d.sync += [place.eq(self.base[low:]), first.eq(self.base[low:])]
        return m
