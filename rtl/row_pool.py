"""Sums of rows by bag, weighted, in fp32 (SPLIT with POOL)."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2, log2
from hotline.rtl.aligner import aligned_beat
from hotline.rtl.delay_line import DelayLine
from hotline.rtl.fp_adder import FloatAdder
from hotline.rtl.fp_format import BINARY32
from hotline.rtl.fp_multiplier import FloatMultiplier
from hotline.rtl.hot_update import one_hot_first
from hotline.rtl.row_address import row_words_bits
from hotline.rtl.row_bursts import beat_address_bits
from hotline.rtl.row_writer import row_place
from hotline.rtl.small_fifo import SmallFIFO

__all__ = ["RowPool", "pool_place"]

#: Beats that a queue holds: a bag of a hundred rows of one beat each does not stop the bags behind.
_DEPTH = 128

#: Beats of sums that may wait or be on their way; a distributed RAM has 16 entries anyway.
_SUMS = 16

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
    queues in turn; of these a row each is added at a time. A sum comes out when its bag is
    complete, whatever bag that is. One beat a cycle, if the row has as many beats as the sum has
    cycles (:attr:`loop`), or if there are as many bags with rows waiting. When the length of the
    rows changes, the queues run empty first.

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

    #: Cycles from the read of a partial sum to the read of the next one: two for the memories,
    #: the adder, and the write.
    loop = 3 + FloatAdder(BINARY32).latency

    def __init__(self, config: Config) -> None:
        self.config = config
        #: A row of 64 bytes takes `loop` cycles where the bus is narrow: few queues will do.
        self.queues = 8 if config.data_width > 64 else 4
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
        self._address_bits = log2(self.queues) + log2(_DEPTH)
        self._index_bits = max(1, ceil_log2(row_beats))
        self._product = data.StructLayout(
            {
                "data": config.data_width,
                "strobe": config.data_words,
                "start": beat_address_bits(config),
                "fresh": 1,
                "close": 1,
            }
        )
        # Beats of each queue, from admission to issue and from product to issue.
        issued = Signal(self.queues)
        admitted, full = self._occupancy(m, issued)
        inside, empty = Signal(range(self.queues * _DEPTH + _SUMS + 16)), Signal(init=1)
        entered, left = Signal(), Signal(2)
        m.d.sync += [inside.eq(inside + entered - left), empty.eq(~entered & (inside == left))]

        ending = Signal()
        beat, valid = self._admit(m, admitted, full, entered, empty, ending)
        stored, write = self._multiply(m, beat, valid)
        returned = self._accumulate(m, stored, write, issued)
        popped = Signal()
        m.d.comb += left.eq(returned + popped)

        out, places = self.sums, self.sum_places
        waiting, starts = self._sums.output, self._starts.output
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
        for queue in range(self.queues):
            held = Signal(range(_DEPTH + 1), name=f"held_{queue}")
            m.d.sync += [
                held.eq(held + admitted[queue] - issued[queue]),
                # A register knows a cycle late: there is still room then.
                full[queue].eq(held >= _DEPTH - 2),
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
        place, beats, weight = self.places.payload, self.beats, self.weights
        now = Signal(pool_place(config), reset_less=True)
        length, left = Signal.like(self._length), Signal.like(self._length)
        valid, fits, fresh = Signal(), Signal(), Signal(init=1)
        live, needs_weight = Signal(), Signal()
        queue = Signal(self.queues, init=1)
        take, finishes, row, sized = Signal(), Signal(), Signal(), Signal.like(self._length)
        loads = Signal()
        m.d.comb += [
            sized.eq((place.words + (config.data_words - 1)) >> shift),
            row.eq(live & ~(full & queue).any()),
            take.eq(row & (now.zero | beats.valid) & (weight.valid | ~needs_weight)),
            finishes.eq(left == 1),
            loads.eq(self.pool & (~valid | (take & finishes) | ending & self.sums.ready)),
            entered.eq(take),
            admitted.eq(Mux(take, queue, 0)),
            # All is out but the end of the list.
            ending.eq(valid & now.end & empty & beats.valid & beats.payload.end),
            weight.ready.eq(take & finishes & needs_weight),
        ]
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
                fits.eq(place.end | (sized == self._length)),
                live.eq(self.places.valid & ~place.end & (sized == self._length)),
                needs_weight.eq(self.weighted & ~place.zero),
            ]
        with m.Elif(take):
            m.d.sync += left.eq(left - 1)
        with m.If(valid & ~fits & empty):
            m.d.sync += [self._length.eq(length), fits.eq(1), live.eq(1)]
        with m.If(take & finishes):
            m.d.sync += fresh.eq(now.close)
            with m.If(now.close):
                m.d.sync += queue.eq(queue.rotate_left(1))

        # Zeros are a product too. The strobe of their last beat, as the aligner gives it for rows.
        final = Signal(config.data_words)
        rest = now.words[:shift]
        m.d.comb += final.eq(Cat((rest == 0) | (rest > n) for n in range(config.data_words)))
        made = Signal(
            data.StructLayout({"product": self._product, "weight": 32, "queue": self.queues}),
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
            made.weight.eq(Mux(needs_weight, weight.payload, _ONE)),
            made.queue.eq(queue),
        ]
        return made, made_valid

    def _multiply(self, m: Module, beat: data.View, valid: Signal) -> tuple[data.View, Signal]:
        """Products, and the queue (one-hot) that each is for."""
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
        carried = data.StructLayout(
            {n: s for n, s in self._product.members.items() if n != "data"} | {"queue": self.queues}
        )
        m.submodules.carried = line = DelayLine(carried, latency)
        m.d.comb += line.enable.eq(1)
        for name in carried.members:
            source = beat.queue if name == "queue" else beat.product[name]
            m.d.comb += line.input[name].eq(source)
        stored, queue = Signal(self._product), Signal(self.queues)
        m.d.comb += [
            stored.data.eq(Cat(unit.product for unit in units)),
            queue.eq(line.output.queue),
        ]
        for name in carried.members:
            if name != "queue":
                m.d.comb += stored[name].eq(line.output[name])
        late = _delayed(m, "product", valid, latency)
        write = Signal(self.queues)
        m.d.comb += write.eq(Mux(late, queue, 0))
        return stored, write

    def _accumulate(self, m: Module, stored: data.View, write: Signal, issued: Signal) -> Signal:
        """Issue rows of the queues in turn, add, keep or send the sums.

        Returns the pulse of a beat that was added and kept.
        """
        config = self.config
        current, active = Signal(self.queues, init=1), Signal()
        index = Signal(self._index_bits)
        issue, final = Signal(), Signal()
        # Places in the two queues behind the adders: of beats, and of rows.
        credits = Signal(range(_SUMS + 1), init=_SUMS)
        row_credits = Signal(range(_SUMS + 1), init=_SUMS)
        begins = index == 0
        waiting = Signal(self.queues)  # a product is there
        heads, tails = [], []
        for queue in range(self.queues):
            head = Signal(range(_DEPTH), name=f"head_{queue}")
            tail = Signal(range(_DEPTH), name=f"tail_{queue}")
            count = Signal(range(_DEPTH + 1), name=f"count_{queue}")
            comes, goes = write[queue], issued[queue]
            m.d.sync += [
                head.eq(head + goes),
                tail.eq(tail + comes),
                count.eq(count + comes - goes),
                waiting[queue].eq(comes | (waiting[queue] & ~(goes & (count == 1)))),
            ]
            heads.append(head)
            tails.append(tail)

        # -- which queue ------------------------------------------------------------------------
        # A queue whose last row is still being added may go on only if its first beat is done.
        long = Signal()
        busy: Value = Const(0, self.queues)
        stages = issued
        for stage in range(self.loop - 2):
            later = Signal(self.queues, name=f"flight_{stage}")
            m.d.sync += later.eq(stages)
            busy, stages = busy | later, later
        ready, above, choice = (
            Signal(self.queues),
            Signal(self.queues),
            Signal(self.queues),
        )
        m.d.sync += long.eq(self._length >= self.loop)
        m.d.comb += [
            ready.eq(waiting & (~(busy | Mux(active, current, 0)) | long.replicate(self.queues))),
            # Those after the current one come first.
            above.eq(ready & Cat(current[:n].any() if n else Const(0) for n in range(self.queues))),
            choice.eq(Mux(above.any(), one_hot_first(above), one_hot_first(ready))),
            issue.eq(
                active & (waiting & current).any() & (credits != 0) & (~begins | (row_credits != 0))
            ),
            issued.eq(Mux(issue, current, 0)),
            final.eq(index == self._length - 1),
        ]
        with m.If(issue):
            m.d.sync += index.eq(Mux(final, 0, index + 1))
        # What was the last beat of a queue shows too late for the choice: then choose again.
        stuck = begins & ~(waiting & current).any()
        with m.If(~active | (issue & final) | stuck):
            m.d.sync += active.eq(ready.any())
            with m.If(ready.any()):
                m.d.sync += current.eq(choice)

        # -- memories: products and partial sums -------------------------------------------------
        product_ports = _memory(m, "products", self._product, 1 << self._address_bits)
        sum_ports = _memory(m, "partial_sums", config.data_width, self.queues << self._index_bits)
        here = Cat(_selected(current, heads), _number(current))
        m.d.comb += [
            product_ports[0].en.eq(write.any()),
            product_ports[0].addr.eq(Cat(_selected(write, tails), _number(write))),
            product_ports[0].data.eq(stored),
            product_ports[1].addr.eq(here),
            sum_ports[1].addr.eq(Cat(index, _number(current))),
        ]
        product, partial = (
            Signal(self._product, reset_less=True),
            Signal(config.data_width, reset_less=True),
        )
        m.d.sync += [
            product.eq(product_ports[1].data),
            # A fresh bag begins with +0.0.
            partial.eq(Mux(product_ports[1].data.fresh, 0, sum_ports[1].data)),
        ]

        # -- adders ------------------------------------------------------------------------------
        adders = [FloatAdder(BINARY32) for _ in range(config.data_words)]
        for word, unit in enumerate(adders):
            m.submodules[f"adder_{word}"] = unit
            m.d.comb += [
                unit.enable.eq(1),
                unit.a.eq(partial.word_select(word, 32)),
                unit.b.eq(product.data.word_select(word, 32)),
            ]
        latency = adders[0].latency
        issue_info = data.StructLayout({"address": len(sum_ports[1].addr), "first": 1, "last": 1})
        m.submodules.issued_line = issue_line = DelayLine(issue_info, 2 + latency)
        product_info = data.StructLayout(
            {
                "strobe": config.data_words,
                "start": beat_address_bits(config),
                "close": 1,
            }
        )
        m.submodules.product_line = product_line = DelayLine(product_info, latency)
        m.d.comb += [
            issue_line.enable.eq(1),
            issue_line.input.address.eq(sum_ports[1].addr),
            issue_line.input.first.eq(begins),
            issue_line.input.last.eq(final),
            product_line.enable.eq(1),
            product_line.input.strobe.eq(product.strobe),
            product_line.input.start.eq(product.start),
            product_line.input.close.eq(product.close),
        ]
        done = _delayed(m, "sum", issue, 2 + latency)
        about, total = product_line.output, Cat(adder.sum for adder in adders)
        kept = Signal()
        m.d.comb += [
            kept.eq(done & ~about.close),
            sum_ports[0].en.eq(kept),
            sum_ports[0].addr.eq(issue_line.output.address),
            sum_ports[0].data.eq(total),
        ]

        m.submodules.sums_fifo = self._sums = fifo = SmallFIFO(aligned_beat(config), _SUMS)
        start = data.StructLayout({"start": beat_address_bits(config)})
        m.submodules.starts_fifo = self._starts = starts = SmallFIFO(start, _SUMS)
        sent = fifo.input.payload
        m.d.comb += [
            fifo.input.valid.eq(done & about.close),
            sent.data.eq(total),
            sent.strobe.eq(about.strobe),
            sent.first.eq(issue_line.output.first),
            sent.last.eq(issue_line.output.last),
            starts.input.valid.eq(fifo.input.valid & sent.first),
            starts.input.payload.start.eq(about.start),
        ]
        out = fifo.output
        sent_row, kept_row = Signal(), Signal()
        m.d.comb += [
            sent_row.eq(starts.output.valid & starts.output.ready),
            kept_row.eq(kept & sent.first),
        ]
        m.d.sync += [
            credits.eq(credits - issue + kept + (out.valid & out.ready)),
            row_credits.eq(row_credits - (issue & begins) + kept_row + sent_row),
        ]
        return kept


def _delayed(m: Module, name: str, pulse: Value, cycles: int) -> Value:
    """A pulse, so many cycles later; reset drops those on their way."""
    for cycle in range(cycles):
        later = Signal(name=f"{name}_{cycle}")
        m.d.sync += later.eq(pulse)
        pulse = later
    return pulse


def _memory(m: Module, name: str, shape: object, depth: int) -> tuple:
    """Write and read port of a block RAM."""
    m.submodules[name] = memory = Memory(
        shape=shape, depth=depth, init=[], attrs={"no_rw_check": 1, "ram_style": "block"}
    )
    return memory.write_port(), memory.read_port()


def _selected(one_hot: Value, values: list[Signal]) -> Value:
    """The value whose bit is set."""
    result: Value = Const(0, len(values[0]))
    for n, value in enumerate(values):
        result = result | Mux(one_hot[n], value, 0)
    return result


def _number(one_hot: Value) -> Value:
    """Which bit is set."""
    bits = log2(len(one_hot))
    return Cat(
        Cat(one_hot[n] for n in range(len(one_hot)) if n >> bit & 1).any() for bit in range(bits)
    )
