"""Packs a ragged flow of words into dense bus beats."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.interfaces import list_beat
from hotline.rtl.small_fifo import SmallFIFO

__all__ = ["WordPacker", "word_segment"]


def word_segment(inputs: int, word_bits: int) -> data.StructLayout:
    """Words `first` .. `first + count - 1` of up to `inputs`, to be appended to a list.

    `last` closes the list after them; `count` may be 0 then.
    """
    return data.StructLayout(
        {
            "word": data.ArrayLayout(unsigned(word_bits), inputs),
            "first": range(inputs),
            "count": range(inputs + 1),
            "last": 1,
        }
    )


class WordPacker(wiring.Component):
    """Appends 0 to `inputs` words a cycle to a list and hands it out in full beats.

    Words go into a block, as large as the wider of the input and a beat; a full block leaves as
    one or several beats.

    Latency: two cycles from the word that fills a beat to the beat, three if it is `buffered` and
    a block has several beats.
    Throughput: `inputs` words or one beat a cycle, whichever is less; closing a list costs one
    cycle. Back-pressure: nothing is lost; with `buffered`, `input.ready` does not depend on
    `output.ready` in the same cycle. Reset: the list is empty.

    Parameters
    ----------
    config : Config
    inputs : int
        Words a cycle, a power of two.
    word_bits : int
        Size of a word, 32 or 64.
    buffered : bool
        A small FIFO at the output. Without it the unit is smaller and its `ready` path longer.

    Members
    -------
    input : In(stream of word_segment)
        An item with count = 0 and without `last` is allowed and does nothing.
    output : Out(stream of list_beat)

    Raises
    ------
    ValueError
        `inputs` is not a power of two, or `word_bits` is neither 32 nor 64.
    """

    def __init__(
        self, config: Config, *, inputs: int, word_bits: int = 32, buffered: bool = True
    ) -> None:
        if inputs < 1 or inputs & (inputs - 1):
            raise ValueError(f"inputs must be a power of two, not {inputs}")
        if word_bits not in (32, 64):
            raise ValueError(f"word_bits must be 32 or 64, not {word_bits}")
        self.config, self._inputs, self._word_bits = config, inputs, word_bits
        self._buffered = buffered
        super().__init__(
            {
                "input": In(stream.Signature(word_segment(inputs, word_bits))),
                "output": Out(stream.Signature(list_beat(config))),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        inputs, bits = self._inputs, self._word_bits
        units = bits // 32
        size = max(inputs, self.config.data_width // bits)  # words of a block

        # ---- stage 1: where does each word go? -------------------------------------------------
        segment = self.input.payload
        fill = Signal(range(size))
        total = Signal(range(2 * size))
        m.d.comb += total.eq(fill + segment.count)

        held = Signal()
        word = Signal(data.ArrayLayout(unsigned(bits), inputs), reset_less=True)
        shift = Signal(range(inputs))
        here, beyond = Signal(size), Signal(size)  # written in this block, in the next one
        fills, last = Signal(), Signal()
        rest = Signal(range(size))
        consumed = Signal()
        m.d.comb += self.input.ready.eq(~held | consumed)
        with m.If(consumed):
            m.d.sync += held.eq(0)
        with m.If(self.input.valid & self.input.ready):
            m.d.sync += [
                held.eq(1),
                word.eq(segment.word),
                shift.eq(segment.first - fill),
                here.eq(Cat((fill <= place) & (total > place) for place in range(size))),
                beyond.eq(Cat(total > place + size for place in range(size))),
                fills.eq(total[log2(size)]),
                rest.eq(total),
                last.eq(segment.last),
                fill.eq(Mux(segment.last, 0, total)),
            ]

        # ---- stage 2: rotate, collect a block --------------------------------------------------
        rotated = [word[lane] for lane in range(inputs)]
        for level in range(log2(inputs)):
            rotated = [
                Mux(shift[level], rotated[(lane + (1 << level)) % inputs], rotated[lane])
                for lane in range(inputs)
            ]
        block = Signal(size * bits)
        if size == 1:  # nothing ever waits: a word is a block
            m.d.comb += block.eq(rotated[0])
        closing = Signal()  # the block that this segment filled is out, its rest still to go
        emit, final, free, go = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            emit.eq(held & (fills | last)),
            final.eq(last & (closing | ~fills)),
            go.eq(held & (~emit | free)),
            consumed.eq(go & (final | ~last)),
        ]
        with m.If(go):
            m.d.sync += closing.eq(last & ~final)
        if size > 1:
            collected = Signal(data.ArrayLayout(unsigned(bits), size), reset_less=True)
            for place in range(size):
                source = rotated[place % inputs]
                m.d.comb += block.word_select(place, bits).eq(
                    Mux(here[place], source, collected[place])
                )
                with m.If(go & (here[place] | beyond[place])):
                    m.d.sync += collected[place].eq(source)

        # ---- stage 3: hand the block out in beats ----------------------------------------------
        self._beats(m, block, emit & go, Mux(final, rest, size) * units, final, free)
        return m

    def _beats(self, m: Module, block, load, load_words, load_final, free) -> None:
        """Registers a block and sends it, lowest words first; `free`: another may be loaded."""
        width, words = self.config.data_width, self.config.data_words
        if self._buffered and len(block) == width:
            # A block is a beat, and the FIFO register enough.
            m.submodules.buffer = buffer = SmallFIFO(list_beat(self.config))
            wiring.connect(m, buffer.output, wiring.flipped(self.output))
            m.d.comb += [
                free.eq(buffer.input.ready),
                buffer.input.valid.eq(load),
                buffer.input.payload.data.eq(block),
                buffer.input.payload.strobe.eq(Cat(load_words > word for word in range(words))),
                buffer.input.payload.last.eq(load_final),
            ]
            return
        valid, final = Signal(), Signal()
        content = Signal(len(block), reset_less=True)
        left = Signal(range(len(block) // 32 + 1))
        beat, done = Signal(list_beat(self.config)), Signal()
        ready = Signal()
        m.d.comb += [
            beat.data.eq(content[:width]),
            beat.strobe.eq(Cat(left > word for word in range(words))),
            beat.last.eq(final & (left < words)),
            done.eq(valid & ready & Mux(final, left < words, left <= words)),
            free.eq(~valid | done),
        ]
        with m.If(load):
            m.d.sync += [
                valid.eq(1),
                content.eq(block),
                left.eq(load_words),
                final.eq(load_final),
            ]
        with m.Elif(done):
            m.d.sync += valid.eq(0)
        if len(block) > width:
            with m.Elif(valid & ready):
                m.d.sync += [content.eq(content >> width), left.eq(left - words)]
        if self._buffered:
            m.submodules.buffer = buffer = SmallFIFO(list_beat(self.config))
            m.d.comb += [
                buffer.input.valid.eq(valid),
                buffer.input.payload.eq(beat),
                ready.eq(buffer.input.ready),
                self.output.valid.eq(buffer.output.valid),
                self.output.payload.eq(buffer.output.payload),
                buffer.output.ready.eq(self.output.ready),
            ]
        else:
            m.d.comb += [
                self.output.valid.eq(valid),
                self.output.payload.eq(beat),
                ready.eq(self.output.ready),
            ]
