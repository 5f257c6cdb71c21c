"""Reads the weights of the rows that POOL sums."""

from __future__ import annotations

from amaranth import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.bag_lister import weight_pick
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.interfaces import read_beat, read_request
from hotline.rtl.linear_reader import LinearReader
from hotline.rtl.register_slice import register_slice
from hotline.rtl.row_reader import rows_in_flight

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
        m.submodules.beats = beats = register_slice(config, read_beat(config))
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

        # Beats before `place` have been passed; the last of them is number `beats_in_all` - 1.
        place, in_all = Signal(32 - shift), Signal(32 - shift)
        pick, beat = self.picks, beats.output
        here, passes, ended = Signal(), Signal(), Signal()
        fits, good = Signal(), Signal()
        m.d.sync += in_all.eq((self.count + (config.data_words - 1)) >> shift)
        m.d.comb += [
            fits.eq((pick.payload.number >> shift) == place),
            good.eq(beat.valid & ~beat.payload.fault & ~self.done),
            here.eq(pick.valid & ~pick.payload.last & fits),
            ended.eq(pick.valid & pick.payload.last),
            passes.eq(good & pick.valid & (pick.payload.last | ~fits)),
            waiting.input.valid.eq(good & here),
            waiting.input.payload.eq(
                beat.payload.data.word_select(pick.payload.number[:shift], 32)
                if shift
                else beat.payload.data
            ),
            beat.ready.eq(passes),
            pick.ready.eq((good & here & waiting.input.ready) | (ended & (place == in_all))),
        ]
        with m.If(beat.valid & beat.payload.fault & ~self.done):
            m.d.sync += self.fault.eq(1)
        with m.If(passes):
            m.d.sync += place.eq(place + 1)
        with m.If(self.start):
            m.d.sync += [place.eq(0), self.done.eq(0)]
        with m.Elif(ended & pick.ready):
            m.d.sync += self.done.eq(1)
        return m
