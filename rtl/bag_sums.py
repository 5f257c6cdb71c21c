"""Sums of the rows of several bags at a time, in fp32."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.aligner import aligned_beat
from hotline.rtl.delay_line import DelayLine
from hotline.rtl.fp_adder import FloatAdder
from hotline.rtl.fp_format import BINARY32
from hotline.rtl.one_hot import one_hot_first, one_hot_number, one_hot_select
from hotline.rtl.row_bursts import beat_address_bits
from hotline.rtl.row_writer import row_place
from hotline.rtl.small_fifo import SmallFIFO

__all__ = ["LOOP", "BagSums", "bag_product", "bag_queues", "delayed_pulse", "queue_beats"]

#: Cycles from the read of a partial sum to the read of the next one: two for the memories, the
#: adder, and the write.
LOOP = 3 + FloatAdder(BINARY32).latency

#: Beats of sums that may wait or be on their way; a distributed RAM has 16 entries anyway.
_SUMS = 16


def bag_queues(config: Config) -> int:
    """Queues of bags.

    A row of 64 bytes takes as long as a sum on a narrow bus: there few will do. On a bus as wide as
    such a row a queue adds one in LOOP cycles, and the longest bags all go to a part of the queues.
    """
    return 4 if config.data_width <= 64 else 8 if config.data_width < 512 else 16


def queue_beats(config: Config) -> int:
    """Beats that a queue holds.

    A bag of a hundred rows of 64 bytes does not stop the bags behind it; where such a row takes as
    long as a sum it need not all be there.
    """
    return 128 if config.data_width <= 64 else 128 * max(1, 64 // config.data_bytes)


def bag_product(config: Config) -> data.StructLayout:
    """A beat of a row, times its weight, with the place of the bag's vector.

    `fresh`, `close`: it belongs to the first, to the last row of its bag.
    """
    return data.StructLayout(
        {
            "data": config.data_width,
            "strobe": config.data_words,
            "start": beat_address_bits(config),
            "fresh": 1,
            "close": 1,
        }
    )


class BagSums(wiring.Component):
    """Adds the rows of a queue one after the other, and those of different queues in turns.

    A queue holds the rows of a bag, then those of another. Rows of :data:`LOOP` beats or more
    follow each other without a gap; of shorter ones each queue has one at a time in the adders. A
    beat a cycle as long as there are enough queues with rows. A sum comes out when its bag is
    complete. Back-pressure stops it. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    length : In
        Beats of a row; may change while it is empty.
    write, product : In(queues), In(bag_product)
        Put a beat into the queue whose bit is set. The user keeps count of what a queue holds.
    issued : Out(queues)
        A beat leaves this queue.
    kept : Out
        Pulse: a beat has been added, and its sum stays.
    places, sums : Out
        Sums of complete bags, for `RowWriter`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        queues = bag_queues(config)
        super().__init__(
            {
                "length": In(range(-(-config.max_row_bytes // config.data_bytes) + 1)),
                "write": In(queues),
                "product": In(bag_product(config)),
                "issued": Out(queues),
                "kept": Out(1),
                "places": Out(stream.Signature(row_place(config))),
                "sums": Out(stream.Signature(aligned_beat(config))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config, queues, depth = self.config, bag_queues(self.config), queue_beats(self.config)
        layout = bag_product(config)
        index_bits = max(1, ceil_log2(-(-config.max_row_bytes // config.data_bytes)))
        issued, kept = self.issued, self.kept
        current, active = Signal(queues, init=1), Signal()
        index = Signal(index_bits)
        issue, final = Signal(), Signal()
        # Places in the two queues behind the adders: of beats, and of rows.
        credits = Signal(range(_SUMS + 1), init=_SUMS)
        row_credits = Signal(range(_SUMS + 1), init=_SUMS)
        # Registers: few gates may stand between what is known and `issue`. Credits are known a
        # cycle late, when one more may be gone.
        begins = Signal(init=1)
        has_credit, has_row_credit = Signal(), Signal()
        m.d.sync += [has_credit.eq(credits > 1), has_row_credit.eq(row_credits > 1)]
        waiting = Signal(queues)  # a product is there
        heads, tails = [], []
        for queue in range(queues):
            head = Signal(range(depth), name=f"head_{queue}")
            tail = Signal(range(depth), name=f"tail_{queue}")
            count = Signal(range(depth + 1), name=f"count_{queue}")
            comes, goes = self.write[queue], issued[queue]
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
        busy: Value = Const(0, queues)
        stages: Value = issued
        for stage in range(LOOP - 2):
            later = Signal(queues, name=f"flight_{stage}")
            m.d.sync += later.eq(stages)
            busy, stages = busy | later, later
        ready, above, choice = (
            Signal(queues),
            Signal(queues),
            Signal(queues),
        )
        m.d.sync += long.eq(self.length >= LOOP)
        m.d.comb += [
            ready.eq(waiting & (~(busy | Mux(active, current, 0)) | long.replicate(queues))),
            # Those after the current one come first.
            above.eq(ready & Cat(current[:n].any() if n else Const(0) for n in range(queues))),
            choice.eq(Mux(above.any(), one_hot_first(above), one_hot_first(ready))),
            issue.eq(active & (waiting & current).any() & has_credit & (~begins | has_row_credit)),
            issued.eq(Mux(issue, current, 0)),
            final.eq(index == self.length - 1),
        ]
        with m.If(issue):
            m.d.sync += [index.eq(Mux(final, 0, index + 1)), begins.eq(final)]
        # What was the last beat of a queue shows too late for the choice: then choose again.
        stuck = begins & ~(waiting & current).any()
        with m.If(~active | (issue & final) | stuck):
            m.d.sync += active.eq(ready.any())
            with m.If(ready.any()):
                m.d.sync += current.eq(choice)

        # -- memories: products and partial sums -------------------------------------------------
        product_ports = _memory(m, "products", layout, queues * depth)
        sum_ports = _memory(m, "partial_sums", config.data_width, queues << index_bits)
        here = Cat(one_hot_select(current, heads), one_hot_number(current))
        m.d.comb += [
            product_ports[0].en.eq(self.write.any()),
            product_ports[0].addr.eq(
                Cat(one_hot_select(self.write, tails), one_hot_number(self.write))
            ),
            product_ports[0].data.eq(self.product),
            product_ports[1].addr.eq(here),
            sum_ports[1].addr.eq(Cat(index, one_hot_number(current))),
        ]
        product, partial = (
            Signal(layout, reset_less=True),
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
        done = delayed_pulse(m, "sum", issue, 2 + latency)
        about, total = product_line.output, Cat(adder.sum for adder in adders)
        m.d.comb += [
            kept.eq(done & ~about.close),
            sum_ports[0].en.eq(kept),
            sum_ports[0].addr.eq(issue_line.output.address),
            sum_ports[0].data.eq(total),
        ]

        m.submodules.sums_fifo = fifo = SmallFIFO(aligned_beat(config), _SUMS)
        m.submodules.starts_fifo = starts = SmallFIFO(row_place(config), _SUMS)
        wiring.connect(m, fifo.output, wiring.flipped(self.sums))
        wiring.connect(m, starts.output, wiring.flipped(self.places))
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
        return m


def delayed_pulse(m: Module, name: str, pulse: Value, cycles: int) -> Value:
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
