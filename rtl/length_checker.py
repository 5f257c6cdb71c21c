"""The bag lengths of a command, checked, as one stream of tokens: from memory or from the shape."""

from __future__ import annotations

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.interfaces import read_beat

__all__ = ["KeyMode", "LengthChecker", "length_token"]

#: Bits of a bag length in memory, and of a number of samples.
LENGTH_BITS = 16
COUNT_BITS = 32


class KeyMode(enum.Enum, shape=1):
    """What the stream of a command consists of."""

    SAMPLES = 0  #: u32 rows, in bags or one-hot
    KEY_LIST = 1  #: u64 (table << 32) + row


def length_token(config: Config) -> data.StructLayout:
    """A run of words that belong together.

    A bag; one-hot with several lanes: a whole sample, or with `pair` two of them, if both fit
    the lanes; KEY_LIST: half an entry, `half` marks the first one. `end` ends a sample, `last` the
    command. `bad` marks all tokens of a sample from the one on with which the sample violates a
    limit (`length` then means nothing); with `end` it is final. `short`: this last token leaves
    the total below `num_keys`. `fault`: the beat with this length was not read; final.
    """
    return data.StructLayout(
        {
            "length": range(config.max_sample_keys + 1),
            "end": 1,
            "last": 1,
            "pair": 1,
            "half": 1,
            "bad": 1,
            "short": 1,
            "fault": 1,
        }
    )


class LengthChecker(wiring.Component):
    """Tokens of a command, in order, with the verdict of spec section 7 on the lengths.

    Latency two cycles after a length arrives, one token a cycle. A command without lengths in
    memory reads none. It stops behind the token that is final, and takes no more beats from the
    cycle on in which that leaves.
    Reset makes it idle.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    start : In(1)
        Begins a command; the next six members are stable from here on.
    mode : In(KeyMode)
    one_hot : In(1)
    aligned : In(1)
        No token has `pair`.
    count : In(32)
        Samples or keys; 0 yields one empty token with `last`.
    num_tables : In(range(max_tables + 1))
    num_keys : In(31)
    data : In(stream of read_beat)
        The u16 lengths; only for SAMPLES without `one_hot`.
    tokens : Out(stream of length_token)
    info : Out(32)
        Error info of LENGTHS, from the final `bad` or `short` token on.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "mode": In(KeyMode),
                "one_hot": In(1),
                "aligned": In(1),
                "count": In(COUNT_BITS),
                "num_tables": In(range(config.max_tables + 1)),
                "num_keys": In(31),
                "data": In(stream.Signature(read_beat(config))),
                "tokens": Out(stream.Signature(length_token(config))),
                "info": Out(COUNT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        whole = config.lanes > 1  # one-hot: a token a sample
        key_list = self.mode == KeyMode.KEY_LIST
        bags = ~key_list & ~self.one_hot
        sample_bits = LENGTH_BITS + len(range(config.max_tables + 1))

        # -- source of lengths --------------------------------------------------------------
        # What decides on the end is registered, since it enables all the counters.
        run = Signal()
        left = Signal(COUNT_BITS)
        left_one, final = Signal(), Signal()  # left == 1; the samples of this token are the last
        bag = Signal(max(2, len(range(config.max_tables + 1))))  # bags to go in the sample
        end = Signal()
        pairs, pair = Signal(), Signal()
        per_beat = config.data_width // LENGTH_BITS
        place = Signal(range(per_beat))
        accept, stop, ready_a, last = Signal(), Signal(), Signal(), Signal()
        length = Signal(LENGTH_BITS)
        word = self.data.payload.data.word_select(place, LENGTH_BITS)
        only = self.one_hot & ~key_list if whole else Const(0)
        limit = Mux(key_list, 2, self.num_tables)
        m.d.comb += [
            pair.eq(pairs & ~left_one),
            last.eq(end & final),
            accept.eq(run & ready_a & (~bags | self.data.valid)),
            self.data.ready.eq(
                run & ready_a & bags & ((place == per_beat - 1) | last | self.data.payload.fault)
            ),
            length.eq(Mux(bags, word, Mux(only, self.num_tables << pair, 1))),
        ]

        # -- running sums -------------------------------------------------------------------
        valid_a, ready_b = Signal(), Signal()
        token_a = Signal(length_token(config))
        total = Signal(COUNT_BITS)
        sample = Signal(sample_bits)
        m.d.comb += ready_a.eq(~valid_a | ready_b)
        with m.If(ready_a):
            m.d.sync += valid_a.eq(accept)
        with m.If(accept):
            m.d.sync += [
                token_a.length.eq(length),
                token_a.end.eq(end),
                token_a.last.eq(last),
                token_a.pair.eq(pair),
                token_a.half.eq(key_list & ~end),
                token_a.fault.eq(bags & self.data.payload.fault),
                total.eq(total + length),
                sample.eq(Mux(token_a.end, 0, sample) + length),
                bag.eq(Mux(end, limit, bag - 1)),
                end.eq(only | Mux(end, limit == 1, bag == 2)),
                place.eq(place + 1),
            ]
            with m.If(end):
                m.d.sync += [
                    left.eq(left - Mux(pair, 2, 1)),
                    left_one.eq(left == Mux(pair, 3, 2)),
                    final.eq(Mux(pair, (left == 3) | (left == 4), left == 2)),
                ]
            with m.If(last | (bags & self.data.payload.fault)):
                m.d.sync += run.eq(0)

        # -- verdict ------------------------------------------------------------------------
        # The comparisons end in registers, since the verdict stops everything.
        long, over, differs, bad, short = (Signal() for _ in range(5))
        valid_b, token_b = Signal(), Signal(length_token(config))
        checked = token_b.end & token_b.last & ~key_list
        m.d.comb += [
            ready_b.eq(~valid_b | self.tokens.ready),
            bad.eq(~key_list & (long | over)),
            short.eq(checked & ~bad & differs),
            stop.eq(valid_b & ready_b & ((bad & token_b.end) | short | token_b.fault)),
            self.tokens.valid.eq(valid_b),
            self.tokens.payload.eq(token_b),
            self.tokens.payload.bad.eq(bad),
            self.tokens.payload.short.eq(short),
        ]
        too_long = sample > config.max_sample_keys
        with m.If(ready_b):
            m.d.sync += [
                valid_b.eq(valid_a & ~stop),
                token_b.eq(token_a),
                long.eq(too_long),
                over.eq(total > self.num_keys),
                differs.eq(total != self.num_keys),
            ]
        with m.If(valid_a & ready_b & ~stop):
            m.d.sync += self.info.eq(Mux(too_long, sample, total))  # stays when it stops
        with m.If(stop):
            m.d.sync += [run.eq(0), valid_a.eq(0)]
        two = only & ~self.aligned & (self.num_tables <= config.lanes // 2)
        with m.If(self.start):
            m.d.sync += [
                run.eq(self.count != 0),
                left.eq(self.count),
                left_one.eq(self.count == 1),
                final.eq((self.count == 1) | (two & (self.count == 2))),
                pairs.eq(two),
                bag.eq(limit),
                end.eq(only | (limit == 1)),
                place.eq(0),
                total.eq(0),
                sample.eq(0),
                valid_a.eq(self.count == 0),
                token_a.eq(0),
                token_a.last.eq(self.count == 0),
                token_a.end.eq(self.count != 0),  # the next length begins a sample
            ]
        return m
