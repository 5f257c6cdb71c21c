"""Reads the weights of the rows that POOL sums."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.bag_closer import weight_pick
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.interfaces import read_beat, read_request
from hotline.rtl.linear_reader import LinearReader
from hotline.rtl.row_reader import rows_in_flight
from hotline.rtl.stream_register import StreamRegister
from hotline.rtl.stream_stage import StreamStage

__all__ = ["WeightReader"]


def _place(config: Config) -> data.StructLayout:
    """Of a pick: beats to pass, whether that is none, and the word of the beat."""
    shift = log2(config.data_words)
    return data.StructLayout({"beats": 32 - shift, "here": 1, "word": shift, "last": 1})


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

        # How many beats to pass from the one of the pick before is found a cycle ahead, behind a
        # register, since picks come out of distributed RAM.
        m.submodules.next_pick = next_pick = StreamRegister(weight_pick())
        m.submodules.next_place = next_place = StreamStage(_place(config))
        wiring.connect(m, wiring.flipped(self.picks), next_pick.input)
        found, ahead, beat = next_pick.output, next_place.output, beats.output
        in_all, target, before = (Signal(32 - shift, reset_less=True) for _ in range(3))
        m.d.sync += in_all.eq((self.count + (config.data_words - 1)) >> shift)
        m.d.comb += [
            target.eq(Mux(found.payload.last, in_all, found.payload.number >> shift)),
            next_place.input.valid.eq(found.valid),
            next_place.input.payload.beats.eq(target - before),
            next_place.input.payload.here.eq(target == before),
            next_place.input.payload.word.eq(found.payload.number[:shift]),
            next_place.input.payload.last.eq(found.payload.last),
            found.ready.eq(next_place.input.ready),
        ]
        with m.If(found.valid & found.ready):
            m.d.sync += before.eq(target)

        # The last pick has all beats passed.
        place, picked = Signal(_place(config), reset_less=True), Signal()
        good, gives, passes, ends = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            good.eq(beat.valid & ~beat.payload.fault & ~self.done),
            gives.eq(good & picked & place.here & ~place.last),
            passes.eq(good & picked & ~place.here),
            ends.eq(picked & place.here & place.last),
            waiting.input.valid.eq(gives),
            waiting.input.payload.eq(
                beat.payload.data.word_select(place.word, 32) if shift else beat.payload.data
            ),
            beat.ready.eq(passes),
            ahead.ready.eq(~picked | (gives & waiting.input.ready)),
        ]
        with m.If(beat.valid & beat.payload.fault & ~self.done):
            m.d.sync += self.fault.eq(1)
        with m.If(ahead.ready):
            m.d.sync += [picked.eq(ahead.valid), place.eq(ahead.payload)]
        with m.Elif(passes):
            m.d.sync += [place.beats.eq(place.beats - 1), place.here.eq(place.beats == 1)]
        with m.If(self.start):
            m.d.sync += [before.eq(0), self.done.eq(0)]
        with m.Elif(ends):
            m.d.sync += [picked.eq(0), self.done.eq(1)]
        return m
