"""Sums of rows by bag, weighted, in fp32 (SPLIT with POOL)."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.aligner import aligned_beat
from hotline.rtl.bag_sums import BagSums, bag_product, bag_queues, delayed_pulse, queue_beats
from hotline.rtl.delay_line import DelayLine
from hotline.rtl.fp_format import BINARY32
from hotline.rtl.fp_multiplier import FloatMultiplier
from hotline.rtl.register_slice import register_slice
from hotline.rtl.row_address import row_words_bits
from hotline.rtl.row_writer import row_place

__all__ = ["RowPool", "pool_place"]

_ONE = 0x3F800000


def pool_place(config: Config) -> data.StructLayout:
    """A row on its way to a bag, or not: where it goes as in `row_place`.

    `words`: its length, at least 1. `zero`: there is no row, and zeros are added. `close`: the bag
    ends. `end`: no row, but the end of the list.
    """
    return data.StructLayout(
        {
            **row_place(config).members,
            "words": row_words_bits(config),
            "zero": 1,
            "close": 1,
            "end": 1,
        }
    )


class RowPool(wiring.Component):
    """Adds the rows of each bag, times their weights, in list order.

    An fp32 sum takes some cycles, and the next row of the bag needs it. So the bags go to several
    queues in turn; of these a row each is added at a time (:class:`~hotline.rtl.bag_sums.BagSums`).
    A sum comes out when its bag is complete, whatever bag that is. One beat a cycle, if the row has
    as many beats as the sum has cycles, or if there are as many bags with rows waiting. When the
    length of the rows changes, the queues run empty first.

    Without `pool` rows and places pass, and nothing is delayed. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    pool : In
        Stable while rows pass, like the next.
    weighted : In
        Each row, but not zeros, takes a weight; else it is 1.
    weights : In
        binary32.
    places, beats : In
        With `pool`: a place for each row, for zeros, and for the end of the list; and the beats of
        the rows, the first word in its first place, with the end of the list. Else as `RowWriter`
        takes them.
    sum_places, sums : Out
        For `RowWriter`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.queues = bag_queues(config)
        super().__init__(
            {
                "pool": In(1),
                "weighted": In(1),
                "weights": In(stream.Signature(unsigned(32))),
                "places": In(stream.Signature(pool_place(config))),
                "beats": In(stream.Signature(aligned_beat(config))),
                "sum_places": Out(stream.Signature(row_place(config))),
                "sums": Out(stream.Signature(aligned_beat(config))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        row_beats = -(-config.max_row_bytes // config.data_bytes)
        self._length = Signal(range(row_beats + 1))  # beats of every row inside
        m.submodules.bags = bags = BagSums(config)
        admitted, full = self._occupancy(m, bags.issued)
        inside, empty = Signal(range(2 * self.queues * queue_beats(config))), Signal(init=1)
        entered, left = Signal(), Signal(2)
        m.d.sync += [inside.eq(inside + entered - left), empty.eq(~entered & (inside == left))]

        ending = Signal()
        beat, valid = self._admit(m, admitted, full, entered, empty, ending)
        self._multiply(m, beat, valid, bags)
        popped = Signal()
        m.d.comb += [left.eq(bags.kept + popped), bags.length.eq(self._length)]

        out, places = self.sums, self.sum_places
        waiting, starts = bags.sums, bags.places
        with m.If(self.pool):
            m.d.comb += [
                out.valid.eq(waiting.valid | ending),
                out.payload.eq(waiting.payload),
                out.payload.end.eq(ending),
                waiting.ready.eq(out.ready & ~ending),
                popped.eq(waiting.valid & waiting.ready),
                places.valid.eq(starts.valid),
                places.payload.start.eq(starts.payload.start),
                starts.ready.eq(places.ready),
            ]
        with m.Else():
            m.d.comb += [
                out.valid.eq(self.beats.valid),
                out.payload.eq(self.beats.payload),
                self.beats.ready.eq(out.ready),
                places.valid.eq(self.places.valid),
                places.payload.start.eq(self.places.payload.start),
                places.payload.joins.eq(self.places.payload.joins),
                self.places.ready.eq(places.ready),
            ]
        return m

    def _occupancy(self, m: Module, issued: Signal) -> tuple[Signal, Signal]:
        """(one-hot queue of the beat that is admitted, queues that may take no more)."""
        admitted, full = Signal(self.queues), Signal(self.queues)
        depth = queue_beats(self.config)
        for queue in range(self.queues):
            held = Signal(range(depth + 1), name=f"held_{queue}")
            m.d.sync += [
                held.eq(held + admitted[queue] - issued[queue]),
                # Two registers know two cycles late: there is still room then.
                full[queue].eq(held >= depth - 3),
            ]
        return admitted, full

    def _admit(
        self,
        m: Module,
        admitted: Signal,
        full: Signal,
        entered: Signal,
        empty: Signal,
        ending: Signal,
    ) -> tuple[data.View, Signal]:
        """Rows, and zeros, one beat after the other, each with its weight."""
        config = self.config
        shift = log2(config.data_words)
        place, beats = self.places.payload, self.beats
        m.submodules.weight = weight = register_slice(config, unsigned(32))
        wiring.connect(m, wiring.flipped(self.weights), weight.input)
        now = Signal(pool_place(config), reset_less=True)
        length, left = Signal.like(self._length), Signal.like(self._length)
        valid, fits, fresh = Signal(), Signal(), Signal(init=1)
        live, needs_weight = Signal(), Signal()
        queue = Signal(self.queues, init=1)
        take, finishes, sized = Signal(), Signal(), Signal.like(self._length)
        loads, turns, blocked = Signal(), Signal(), Signal()
        after = queue.rotate_left(1)
        m.d.comb += [
            sized.eq((place.words + (config.data_words - 1)) >> shift),
            take.eq(
                live & ~blocked & (now.zero | beats.valid) & (weight.output.valid | ~needs_weight)
            ),
            loads.eq(self.pool & (~valid | (take & finishes) | ending & self.sums.ready)),
            turns.eq(take & finishes & now.close),
            entered.eq(take),
            admitted.eq(Mux(take, queue, 0)),
            # All is out but the end of the list.
            ending.eq(valid & now.end & empty & beats.valid & beats.payload.end),
            weight.output.ready.eq(take & finishes & needs_weight),
        ]
        m.d.sync += blocked.eq((full & Mux(turns, after, queue)).any())
        with m.If(self.pool):
            m.d.comb += [
                self.places.ready.eq(loads),
                beats.ready.eq((take & ~now.zero) | (ending & self.sums.ready)),
            ]
        with m.If(loads):
            m.d.sync += [
                valid.eq(self.places.valid),
                now.eq(place),
                length.eq(sized),
                left.eq(sized),
                finishes.eq(sized == 1),
                fits.eq(place.end | (sized == self._length)),
                live.eq(self.places.valid & ~place.end & (sized == self._length)),
                needs_weight.eq(self.weighted & ~place.zero),
            ]
        with m.Elif(take):
            m.d.sync += [left.eq(left - 1), finishes.eq(left == 2)]
        with m.If(valid & ~fits & empty):
            m.d.sync += [self._length.eq(length), fits.eq(1), live.eq(1)]
        with m.If(take & finishes):
            m.d.sync += fresh.eq(now.close)
        with m.If(turns):
            m.d.sync += queue.eq(after)

        # Zeros are a product too. The strobe of their last beat, as the aligner gives it for rows.
        final = Signal(config.data_words)
        rest = now.words[:shift]
        m.d.comb += final.eq(Cat((rest == 0) | (rest > n) for n in range(config.data_words)))
        made = Signal(
            data.StructLayout({"product": bag_product(config), "weight": 32, "queue": self.queues}),
            reset_less=True,
        )
        made_valid = Signal()
        m.d.sync += [
            made_valid.eq(take),
            made.product.data.eq(Mux(now.zero, 0, beats.payload.data)),
            made.product.strobe.eq(Mux(finishes, final, ~0)),
            made.product.start.eq(now.start),
            made.product.fresh.eq(fresh),
            made.product.close.eq(now.close),
            made.weight.eq(Mux(needs_weight, weight.output.payload, _ONE)),
            made.queue.eq(queue),
        ]
        return made, made_valid

    def _multiply(self, m: Module, beat: data.View, valid: Signal, bags: BagSums) -> None:
        """Products into the queues."""
        config = self.config
        units = [FloatMultiplier(BINARY32) for _ in range(config.data_words)]
        for word, unit in enumerate(units):
            m.submodules[f"multiplier_{word}"] = unit
            m.d.comb += [
                unit.enable.eq(1),
                unit.a.eq(beat.product.data.word_select(word, 32)),
                unit.b.eq(beat.weight),
            ]
        latency = units[0].latency
        members = bag_product(config).members
        carried = data.StructLayout(
            {n: s for n, s in members.items() if n != "data"} | {"queue": self.queues}
        )
        m.submodules.carried = line = DelayLine(carried, latency)
        late = delayed_pulse(m, "product", valid, latency)
        m.d.comb += [
            line.enable.eq(1),
            line.input.queue.eq(beat.queue),
            bags.product.data.eq(Cat(unit.product for unit in units)),
            bags.write.eq(Mux(late, line.output.queue, 0)),
        ]
        for name in members:
            if name != "data":
                m.d.comb += [
                    line.input[name].eq(beat.product[name]),
                    bags.product[name].eq(line.output[name]),
                ]
