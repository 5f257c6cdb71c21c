"""Word-granular realignment of rows, from their place in the source to that in the destination."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.interfaces import read_beat

__all__ = [
    "Aligner",
    "aligned_beat",
    "longest_row_beats",
    "offset_bits",
    "row_beats_bits",
    "row_shape",
]


def offset_bits(config: Config) -> int:
    """Bits of a word's position within a beat; at least 1."""
    return max(1, log2(config.data_words))


def longest_row_beats(config: Config) -> int:
    """Beats that a row touches at most, however it lies."""
    return -(-(config.max_row_bytes // 4 - 1) // config.data_words) + 1


def row_beats_bits(config: Config) -> int:
    """Bits of that number."""
    return longest_row_beats(config).bit_length()


def row_shape(config: Config) -> data.StructLayout:
    """How a row lies in source and destination.

    `source`, `dest`: position of the row's first word within its first beat; one of them is 0.
    `final`: position of the last word within the last destination beat. `beats`: source beats, at
    least 1. `tail`: there is a destination beat to come when the last source beat is in, that is:
    with `early` the destination has a beat more than the source, else it has as many. Without
    `move` there is no data, only the end of the list (`last`) or a bad entry (`fault`).
    """
    return data.StructLayout(
        {
            "source": offset_bits(config),
            "dest": offset_bits(config),
            "final": offset_bits(config),
            "beats": row_beats_bits(config),
            "tail": 1,
            "move": 1,
            "last": 1,
            "fault": 1,
        }
    )


def aligned_beat(config: Config) -> data.StructLayout:
    """A destination beat, `strobe` by word; `first` and `last` beat of a row.

    `end`: no beat, but the end of the list.
    """
    return data.StructLayout(
        {"data": config.data_width, "strobe": config.data_words, "first": 1, "last": 1, "end": 1}
    )


def _rotate(value: Value, words: Value) -> Value:
    """`value` with its 32-bit words moved up by `words` places, around the end."""
    for level in range(len(words)):
        value = Mux(words[level], value.rotate_left(32 << level), value)
    return value


class Aligner(wiring.Component):
    """Shifts rows from source to destination offset, one beat a cycle.

    A row takes as many cycles as it has beats in source or destination, whichever are more, and
    rows follow each other without a bubble. Latency one cycle (32-bit bus: none). Back-pressure
    stops everything. Reset empties it. After a fault no data come out until reset.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    early : In
        `source` is 0 in all shapes, else `dest` is. Stable while there are rows inside.
    shapes : In
        One for each row, in order; may come long before the data.
    beats : In
        Source beats of the rows, and no others.
    output : Out
        Destination beats.
    read_fault, index_fault : Out
        Levels: a beat with `fault`, or a shape with `fault`, was reached. Only one rises.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "early": In(1),
                "shapes": In(stream.Signature(row_shape(config))),
                "beats": In(stream.Signature(read_beat(config))),
                "output": Out(stream.Signature(aligned_beat(config))),
                "read_fault": Out(1),
                "index_fault": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        shape = Signal(row_shape(self.config))
        left = Signal.like(shape.beats)
        valid, done = Signal(), Signal()
        fresh = Signal(init=1)
        final = Signal()  # the next beat taken is the last of its row
        faulted, take = Signal(), Signal()
        row, marker = Signal(), Signal()  # there is a shape with data, or without
        m.d.comb += [
            self.shapes.ready.eq(~valid | done),
            faulted.eq(self.read_fault | self.index_fault),
            self.beats.ready.eq(take),
        ]
        with m.If(self.shapes.ready):
            m.d.sync += [
                valid.eq(self.shapes.valid),
                row.eq(self.shapes.valid & self.shapes.payload.move),
                marker.eq(self.shapes.valid & ~self.shapes.payload.move),
                shape.eq(self.shapes.payload),
                left.eq(self.shapes.payload.beats),
                final.eq(self.shapes.payload.beats == 1),
            ]
        with m.Elif(take):
            m.d.sync += [left.eq(left - 1), final.eq(left == 2)]
        with m.If(take):
            m.d.sync += fresh.eq(final)
        # Nothing comes after a fault.
        with m.If(take & self.beats.payload.fault):
            m.d.sync += [self.read_fault.eq(1), row.eq(0), marker.eq(0)]
        with m.If(marker & shape.fault & done):
            m.d.sync += [self.index_fault.eq(1), row.eq(0), marker.eq(0)]

        if self.config.data_words == 1:
            self._pass(m, shape, row, marker, fresh, final, take, done)
        else:
            self._shift(m, shape, row, marker, fresh, final, take, done, faulted)
        return m

    def _pass(
        self,
        m: Module,
        shape: data.View,
        row: Signal,
        marker: Signal,
        fresh: Signal,
        final: Signal,
        take: Signal,
        done: Signal,
    ) -> None:
        """A beat is a word: there is nothing to shift, and no register is needed."""
        out, beats = self.output, self.beats
        m.d.comb += [
            # The end marker has no data; it must not show what happens to wait behind it.
            out.payload.data.eq(Mux(shape.move, beats.payload.data, 0)),
            out.payload.strobe.eq(1),
            out.payload.first.eq(fresh),
            out.payload.last.eq(final),
            out.payload.end.eq(~shape.move),
            out.valid.eq(
                (row & beats.valid & ~beats.payload.fault) | (marker & shape.last & ~shape.fault)
            ),
            take.eq(row & beats.valid & (out.ready | beats.payload.fault)),
            done.eq((take & final) | (marker & (out.ready | shape.fault))),
        ]

    def _shift(
        self,
        m: Module,
        shape: data.View,
        row: Signal,
        marker: Signal,
        fresh: Signal,
        final: Signal,
        take: Signal,
        done: Signal,
        faulted: Signal,
    ) -> None:
        """The rotated beat supplies the words from `cut` on, the one before it those below.

        With `early` each beat taken gives a beat, and a tail comes extra. Else the first beat
        taken gives nothing: the tail of the row before leaves in that cycle.
        """
        words = self.config.data_words
        out, beats = self.output, self.beats
        advance = Signal()
        tail, tail_first = Signal(), Signal()
        alone = Signal()  # tail & early, from a register: no beat is taken with such a tail
        tail_shape = Signal.like(shape)
        second, own, end = Signal(), Signal(), Signal()
        filled, ends = Signal(), Signal()
        m.d.comb += [
            advance.eq(~filled | out.ready),
            out.valid.eq(filled),
            take.eq(advance & row & beats.valid & ~alone),
            own.eq(take & (self.early | ~fresh)),
            end.eq(marker & shape.last & ~shape.fault & ~tail),
            done.eq((take & final) | (advance & marker & ~tail)),
        ]

        # ---- first stage: rotate what comes in, decide what leaves ----------------------------
        first, last = Signal(), Signal()
        leaving = Mux(tail, tail_shape.as_value(), shape.as_value())
        view = data.View(row_shape(self.config), leaving)
        cut = Signal(range(words + 1))
        m.d.comb += [
            first.eq(Mux(tail, tail_first, Mux(self.early, fresh, second))),
            last.eq(tail | (final & ~shape.tail)),
            cut.eq(Mux(self.early, view.dest, words - view.source)),
        ]
        took = Signal()
        is_first, is_last = Signal(), Signal()
        before = Signal(self.config.data_width, reset_less=True)
        rotated = Signal(self.config.data_width, reset_less=True)
        from_before, strobe = Signal(words), Signal(words)
        # `source` is what `early` rows lie at 0 of, and the others at 0 of `dest`.
        turn = Signal(offset_bits(self.config))
        m.d.comb += turn.eq(shape.dest - shape.source)
        with m.If(advance):
            m.d.sync += [
                took.eq(take),
                filled.eq(end | ((tail | own) & ~(take & beats.payload.fault) & ~faulted)),
                ends.eq(end),
                is_first.eq(first),
                is_last.eq(last),
                rotated.eq(_rotate(beats.payload.data, turn)),
                tail.eq(take & final & shape.tail),
                alone.eq(take & final & shape.tail & self.early),
                tail_first.eq(fresh & ~self.early),
                tail_shape.eq(shape),
            ]
            for word in range(words):
                m.d.sync += [
                    from_before[word].eq(word < cut),
                    strobe[word].eq(
                        (~first | (view.dest <= word)) & (~last | (word <= view.final))
                    ),
                ]
        with m.If(take):
            m.d.sync += second.eq(fresh)

        # ---- second stage: merge --------------------------------------------------------------
        merged = [
            Mux(from_before[word], before.word_select(word, 32), rotated.word_select(word, 32))
            for word in range(words)
        ]
        with m.If(advance & took):
            m.d.sync += before.eq(rotated)
        m.d.comb += [
            out.payload.data.eq(Cat(*merged)),
            out.payload.strobe.eq(strobe),
            out.payload.first.eq(is_first),
            out.payload.last.eq(is_last),
            out.payload.end.eq(ends),
        ]
