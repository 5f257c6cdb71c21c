"""Cuts the runs of words of a command into groups of lanes, before any word has arrived."""

from __future__ import annotations

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.length_checker import KeyMode, length_token

__all__ = ["GroupCutter", "cut"]


def cut(config: Config) -> data.StructLayout:
    """Shape of a group: how many words, and which tables and samples they belong to.

    `count`, `split`, `end_a`, `end_b`, `last` as in `group_meta`. Lane i < split is of table
    `table_a` (one-hot: + i); above it of table `table_b` + i, modulo 2**table_bits. `half`: the
    first word of a KEY_LIST entry. `short`: at the end of this sample the total of the lengths
    turns out wrong, so the error group follows. `error`: no words; the lengths are wrong, or
    with `bus` were not read.
    """
    lanes = range(config.lanes + 1)
    return data.StructLayout(
        {
            "count": lanes,
            "split": lanes,
            "end_a": 1,
            "end_b": 1,
            "last": 1,
            "half": 1,
            "short": 1,
            "error": 1,
            "bus": 1,
            "table_a": config.table_bits,
            "table_b": config.table_bits,
        }
    )


class GroupCutter(wiring.Component):
    """One group a cycle: `lanes` words of one-hot samples, else what one token has.

    One-hot with num_tables >= lanes, unless `aligned`: every group but the last has `lanes`
    words, and goes on into the next sample. Otherwise a group ends with its token. Latency two
    cycles. Empty bags take a cycle and yield no group, unless they end a sample. Reset makes it
    idle.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    start : In(1)
        Begins a command; the next four members are stable from here on.
    mode : In(KeyMode)
    one_hot : In(1)
    aligned : In(1)
        No group has words of two samples.
    num_tables : In(range(max_tables + 1))
    tokens : In(stream of length_token)
    cuts : Out(stream of cut)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "mode": In(KeyMode),
                "one_hot": In(1),
                "aligned": In(1),
                "num_tables": In(range(config.max_tables + 1)),
                "tokens": In(stream.Signature(length_token(config))),
                "cuts": Out(stream.Signature(cut(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        lanes = config.lanes
        token = self.tokens.payload

        # The shape of a one-hot command, registered: it is stable long before the first group.
        whole = self.one_hot & (self.mode == KeyMode.SAMPLES) if lanes > 1 else Const(0)
        runs = Signal()  # a token has all tables of a sample
        spans = Signal()
        excess = Signal(signed_bits(config))
        m.d.sync += [
            runs.eq(whole),
            spans.eq(whole & ~self.aligned & (self.num_tables >= lanes)),
            excess.eq(self.num_tables - lanes),
        ]

        valid = Signal()
        now = Signal(length_token(config))
        table = Signal(config.table_bits)
        free = Signal()
        cross, emit, done, load = (Signal(name=name) for name in ("cross", "emit", "done", "load"))
        # What `now` makes of it, in registers, since much hangs on them: it ends in this group,
        # and that is open for the next sample; it yields no group; it is an error.
        full, opens, skip, wrong = (
            Signal(name=name) for name in ("full", "opens", "skip", "wrong")
        )

        def measure(of: data.View, length: Value, less: int = 0) -> list:
            """The registers, for the token `of` with ``length - less`` words to go."""
            empty = (length == less) & ~of.last
            return [
                now.length.eq(length - less),
                full.eq(length <= lanes + less),
                opens.eq(spans & (length < lanes + less) & ~of.last),
                skip.eq(~of.fault & ~of.end & (of.bad | empty)),
                wrong.eq(of.fault | (of.bad & of.end)),
            ]

        out = self.cuts.payload
        m.d.comb += [
            free.eq(~self.cuts.valid | self.cuts.ready),
            cross.eq(opens & ~token.bad),
            emit.eq(valid & free & ~skip & (~cross | self.tokens.valid | wrong)),
            done.eq((valid & skip) | (emit & (full | wrong))),
            load.eq(~valid | done),
            self.tokens.ready.eq(load),
        ]

        rest_next = Signal.like(now.length)  # of the sample that a group goes on into
        m.d.comb += rest_next.eq(now.length + excess)
        with m.If(load):
            m.d.sync += [valid.eq(self.tokens.valid), now.eq(token), *measure(token, token.length)]
            with m.If(valid & cross & ~wrong):
                m.d.sync += measure(token, rest_next)
        with m.If(emit & ~full & ~wrong):
            m.d.sync += measure(now, now.length, lanes)
        with m.If(emit & full & now.short & ~wrong):
            # Behind the last group comes the verdict on the total.
            m.d.sync += [valid.eq(1), now.bad.eq(1), now.end.eq(1), now.fault.eq(0)]
            m.d.sync += [wrong.eq(1), skip.eq(0), opens.eq(0)]

        step = Mux(runs, Mux(full, -excess, lanes), done)
        with m.If(done & now.end & ~spans):
            m.d.sync += table.eq(0)
        with m.Elif(done | (emit & runs)):
            m.d.sync += table.eq(table + step)

        with m.If(free):
            m.d.sync += self.cuts.valid.eq(emit)
        with m.If(emit):
            ends = full & now.end & ~wrong
            rest = now.length[: len(out.count)]
            m.d.sync += [
                out.count.eq(Mux(wrong, 0, Mux(full & ~cross, rest, lanes))),
                out.split.eq(Mux(wrong, 0, Mux(full, Mux(now.pair, rest >> 1, rest), lanes))),
                out.end_a.eq(ends),
                out.end_b.eq(ends & now.pair),
                out.last.eq(wrong | (full & now.last & ~now.short)),
                out.half.eq(now.half),
                out.short.eq(full & now.short),
                out.error.eq(wrong),
                out.bus.eq(now.fault),
                out.table_a.eq(table),
                out.table_b.eq(-Mux(now.pair, rest >> 1, rest)),
            ]
        with m.If(self.start):
            m.d.sync += table.eq(0)
        return m


def signed_bits(config: Config) -> int:
    """Bits of num_tables - lanes in two's complement, wide enough for a sample's length too."""
    return max(config.max_sample_keys, config.max_tables, config.lanes).bit_length() + 1
