"""Reads the weights of the rows that POOL sums."""

from __future__ import annotations

from amaranth import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.bag_closer import weight_pick
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.interfaces import read_beat, read_request
from hotline.rtl.linear_reader import LinearReader
from hotline.rtl.row_reader import rows_in_flight
from hotline.rtl.stream_register import StreamRegister

__all__ = ["WeightReader"]


class WeightReader(wiring.Component):
    """Reads the whole region of weights, and hands out those that are picked.

    A weight, or a beat passed over, a cycle. Back-pressure stops it; as many weights can wait as
    rows can be in flight. Reset: nothing to do.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    start : In
        Pulse: begin. Only when `done`.
    addr : In
        Of the weights, bytes, 64-byte aligned; stable, like the next, until `done`.
    count : In
        Weights in the region.
    picks : In
        Ascending, to the one with `last`, which picks nothing.
    request, data : Out, In
        Port of the read engine.
    weights : Out
        binary32, in the order of the picks.
    done : Out
        Level: the whole region has been read without a fault.
    fault : Out
        Level, until reset: a read of this port has failed.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "addr": In(config.addr_width),
                "count": In(31),
                "picks": In(stream.Signature(weight_pick())),
                "request": Out(stream.Signature(read_request(config))),
                "data": In(stream.Signature(read_beat(config))),
                "weights": Out(stream.Signature(unsigned(32))),
                "done": Out(1, init=1),
                "fault": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        shift = log2(config.data_words)
        m.submodules.reader = reader = LinearReader(config)
        m.submodules.beats = beats = StreamRegister(read_beat(config))
        m.submodules.waiting = waiting = BlockFIFO(unsigned(32), 2 * rows_in_flight(config))
        begin = Signal()
        m.d.sync += begin.eq(self.start)
        m.d.comb += [
            reader.start.eq(begin),
            reader.addr.eq(self.addr),
            reader.bytes.eq(self.count << 2),
        ]
        wiring.connect(m, reader.request, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.data), beats.input)
        wiring.connect(m, waiting.output, wiring.flipped(self.weights))

        # Beats before `place` have been passed; the last of them is number `in_all` - 1.
        place, upcoming, in_all = (Signal(32 - shift, reset_less=True) for _ in range(3))
        # Out of distributed RAM, since much is to be found out about it.
        m.submodules.next_pick = next_register = StreamRegister(weight_pick())
        wiring.connect(m, wiring.flipped(self.picks), next_register.input)
        beat, next_pick = beats.output, next_register.output
        pick, picked = Signal(weight_pick(), reset_less=True), Signal()
        fits, good, gives, passes, ends = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.sync += in_all.eq((self.count + (config.data_words - 1)) >> shift)
        m.d.comb += [
            good.eq(beat.valid & ~beat.payload.fault & ~self.done),
            gives.eq(good & picked & fits),
            passes.eq(good & picked & ~fits),
            ends.eq(picked & pick.last & (place == in_all)),
            waiting.input.valid.eq(gives),
            waiting.input.payload.eq(
                beat.payload.data.word_select(pick.number[:shift], 32)
                if shift
                else beat.payload.data
            ),
            beat.ready.eq(passes),
            next_pick.ready.eq(~picked | (gives & waiting.input.ready)),
        ]
        with m.If(beat.valid & beat.payload.fault & ~self.done):
            m.d.sync += self.fault.eq(1)
        # Whether the pick is in the beat at hand is found a cycle ahead.
        with m.If(next_pick.ready):
            m.d.sync += [
                picked.eq(next_pick.valid),
                pick.eq(next_pick.payload),
                fits.eq(~next_pick.payload.last & (next_pick.payload.number >> shift == place)),
            ]
        with m.Elif(passes):
            m.d.sync += fits.eq(~pick.last & (pick.number >> shift == upcoming))
        with m.If(passes):
            m.d.sync += [place.eq(upcoming), upcoming.eq(upcoming + 1)]
        with m.If(self.start):
            m.d.sync += [place.eq(0), upcoming.eq(1), self.done.eq(0)]
        with m.Elif(ends):
            m.d.sync += [picked.eq(0), self.done.eq(1)]
        return m
