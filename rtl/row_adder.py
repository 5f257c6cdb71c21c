"""Adds rows word by word in fp32 (SCATTER with ADD)."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.aligner import aligned_beat, longest_row_beats
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.fp_adder import FloatAdder
from hotline.rtl.fp_format import BINARY32
from hotline.rtl.small_fifo import SmallFIFO

__all__ = ["RowAdder"]

#: Sums that may wait or be on their way; a distributed RAM has 16 entries anyway.
_SUMS = 16


class RowAdder(wiring.Component):
    """Passes rows on, or adds each second one to the one before it.

    With `add` rows come in pairs of equal length: first the one with the strobe of the sum, then
    the other. One beat of input a cycle; latency that of the adder and 4. Without it, nothing is
    delayed. Back-pressure holds the beat. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    add : In(1)
        Stable while rows pass.
    input, output : In, Out
        Beats of rows, then perhaps the end of the list.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "add": In(1),
                "input": In(stream.Signature(aligned_beat(config))),
                "output": Out(stream.Signature(aligned_beat(config))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        layout = aligned_beat(self.config)
        # The first rows wait for the second ones, of which a few beats wait for the adders: so a
        # row of one beat can follow another without a bubble.
        depth = max(2, 1 << ceil_log2(longest_row_beats(self.config)))
        m.submodules.first = first = BlockFIFO(layout, depth)
        m.submodules.second = second = SmallFIFO(layout, 4)
        beat = self.input.payload
        is_second = Signal()
        with m.If(self.input.valid & self.input.ready & self.add & beat.last & ~beat.end):
            m.d.sync += is_second.eq(~is_second)
        # The end of the list goes the way of the second rows.
        late = is_second | beat.end
        m.d.comb += [
            first.input.payload.eq(beat),
            second.input.payload.eq(beat),
            first.input.valid.eq(self.input.valid & self.add & ~late),
            second.input.valid.eq(self.input.valid & self.add & late),
        ]

        # The sums wait in a FIFO that has room for all on their way: so nothing stops the adders.
        m.submodules.sums = sums = SmallFIFO(layout, _SUMS)
        credits = Signal(range(_SUMS + 1), init=_SUMS)
        take, end = Signal(), Signal()
        m.d.comb += [
            end.eq(second.output.payload.end),
            take.eq(second.output.valid & (first.output.valid | end) & (credits != 0)),
            first.output.ready.eq(take & ~end),
            second.output.ready.eq(take),
        ]
        m.d.sync += credits.eq(credits - take + (sums.output.valid & sums.output.ready))

        # The reads of both memories end in these registers.
        valid, about = Signal(), Signal(layout, reset_less=True)
        addend = Signal(self.config.data_width, reset_less=True)
        m.d.sync += [
            valid.eq(take),
            about.eq(first.output.payload),
            about.end.eq(end),
            addend.eq(second.output.payload.data),
        ]
        adders = [FloatAdder(BINARY32) for _ in range(self.config.data_words)]
        for word, adder in enumerate(adders):
            m.submodules[f"adder_{word}"] = adder
            m.d.comb += [
                adder.enable.eq(1),
                adder.a.eq(about.data.word_select(word, 32)),
                adder.b.eq(addend.word_select(word, 32)),
            ]
        for stage in range(adders[0].latency):
            # What the adders do not carry themselves; the data of these copies are not used.
            later_valid = Signal(name=f"valid_{stage}")
            later = Signal(layout, name=f"about_{stage}", reset_less=True)
            m.d.sync += [later_valid.eq(valid), later.eq(about)]
            valid, about = later_valid, later
        m.d.comb += [
            sums.input.valid.eq(valid),
            sums.input.payload.eq(about),
            sums.input.payload.data.eq(Cat(adder.sum for adder in adders)),
        ]

        out = self.output
        with m.If(self.add):
            m.d.comb += [
                out.valid.eq(sums.output.valid),
                out.payload.eq(sums.output.payload),
                sums.output.ready.eq(out.ready),
                self.input.ready.eq(Mux(late, second.input.ready, first.input.ready)),
            ]
        with m.Else():
            m.d.comb += [
                out.valid.eq(self.input.valid),
                out.payload.eq(beat),
                self.input.ready.eq(out.ready),
            ]
        return m
