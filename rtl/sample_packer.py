"""Packs the groups of the key stream: dense, and never more than one sample in a group."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.interfaces import key_group

__all__ = ["SamplePacker"]


class SamplePacker(wiring.Component):
    """Re-cuts groups at sample ends, and joins those of short bags.

    A sample of k keys leaves as floor(k / lanes) full groups and a rest; the one with `end_a`
    may be empty. A group that ends a sample and begins the next takes two cycles, a rest
    another one. Latency one cycle. An error group drops what is held. With one lane there is
    nothing to pack. `clear` and reset make it empty.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    clear : In(1)
        Drops everything; takes no group meanwhile.
    input : In(stream of key_group)
    output : Out(stream of key_group)
        `split` = `count`, `end_b` = 0.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        group = key_group(config)
        super().__init__(
            {
                "clear": In(1),
                "input": In(stream.Signature(group)),
                "output": Out(stream.Signature(group)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        lanes = config.lanes
        if lanes == 1:
            m.d.comb += [
                self.output.payload.eq(self.input.payload),
                self.output.valid.eq(self.input.valid & ~self.clear),
                self.input.ready.eq(self.output.ready & ~self.clear),
            ]
            return m

        group, meta = self.input.payload, self.input.payload.meta
        out = self.output.payload
        held = Signal(data.ArrayLayout(config.key_bits, lanes))
        fill = Signal(range(lanes))
        second = Signal()  # at sample B of the group
        rest = Signal()  # what is held ends a sample
        rest_last = Signal()

        number = Signal(range(lanes + 1))
        offset = Signal(range(lanes + 1))
        turn = Signal(range(lanes))
        total = Signal(range(2 * lanes))
        more, end, last, whole = Signal(), Signal(), Signal(), Signal()
        free, act, done = Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.output.valid | self.output.ready),
            number.eq(Mux(second, meta.count - meta.split, meta.split)),
            offset.eq(Mux(second, meta.split, 0)),
            turn.eq(offset - fill),
            total.eq(fill + number),
            more.eq(~second & meta.end_a & ((meta.count != meta.split) | meta.end_b)),
            end.eq(Mux(second, meta.end_b, meta.end_a)),
            last.eq(meta.last & ~more),
            whole.eq(total >= lanes),
            act.eq(self.input.valid & free & ~rest & ~self.clear),
            done.eq(~more),
            self.input.ready.eq(free & ~rest & ~self.clear & done),
        ]
        turned = [group.key[i] for i in range(lanes)]
        for bit in range(len(turn)):
            turned = [
                Mux(turn[bit], turned[(i + (1 << bit)) % lanes], turned[i]) for i in range(lanes)
            ]

        with m.If(free):
            m.d.sync += self.output.valid.eq(0)
        with m.If(rest & free):
            m.d.sync += [
                rest.eq(0),
                fill.eq(0),
                self.output.valid.eq(1),
                out.key.eq(held),
                out.meta.eq(0),
                out.meta.count.eq(fill),
                out.meta.split.eq(fill),
                out.meta.end_a.eq(1),
                out.meta.last.eq(rest_last),
            ]
        with m.If(act):
            count = Mux(meta.error, 0, Mux(whole, lanes, total))
            spill = (total[: len(fill)] != 0) & whole & (end | last)
            m.d.sync += [
                second.eq(more),
                self.output.valid.eq(whole | end | last),
                out.meta.eq(0),
                out.meta.count.eq(count),
                out.meta.split.eq(count),
                out.meta.end_a.eq(end & ~spill),
                out.meta.last.eq(last & ~spill),
                out.meta.error.eq(meta.error),
                fill.eq(Mux((end | last) & ~spill, 0, total)),
                rest.eq(spill),
                rest_last.eq(last),
            ]
            for i in range(lanes):
                new = Mux(i < fill, held[i], turned[i])
                m.d.sync += [out.key[i].eq(new), held[i].eq(Mux(whole, turned[i], new))]
        with m.If(self.clear):
            m.d.sync += [
                self.output.valid.eq(0),
                fill.eq(0),
                second.eq(0),
                rest.eq(0),
            ]
        return m
