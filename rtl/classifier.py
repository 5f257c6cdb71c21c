"""Splits a mini-batch into a popular and a non-popular micro-batch (spec section 7, SPLIT)."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.bag_closer import weight_pick
from hotline.rtl.bag_lister import BagLister
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.dedup import Dedup, new_keys
from hotline.rtl.interfaces import hot_response, list_beat, row_entry
from hotline.rtl.key_lister import KeyLister
from hotline.rtl.register_slice import register_slice
from hotline.rtl.sample_buffer import SampleBuffer, judged_group
from hotline.rtl.word_packer import WordPacker

__all__ = ["LISTS", "Classifier"]

#: The lists that a SPLIT writes, in the order of their regions.
LISTS = ("popular", "nonpopular", "popular_slots", "nonpopular_slots", "keys")

#: Rows that wait for the row mover, with many lanes. At first the rows of a log come as a flood,
#: when hardly any has been seen. Were the samples to wait for them, their lists would be late at
#: the end.
_ROWS_PER_LANE = 64


class Classifier(wiring.Component):
    """From the groups of looked-up keys to the five lists of a SPLIT and the rows to gather.

    Latency: a sample waits for its last key, then about ten cycles (twenty with a seen-keys
    store). Throughput: `lanes` keys a cycle while the outputs accept; see :class:`Dedup` and
    :class:`KeyLister` for what cold keys cost. Back-pressure: any output that stops stops the
    input in the end (`rows` when 64 * `lanes` of them wait, with more than two lanes); no output
    waits for another one, save that all are fed in order. Reset: no command, everything in flight
    is dropped, the seen-keys store is cleared.

    Parameters
    ----------
    config : Config

    Members
    -------
    ready : Out(1)
        The seen-keys store is empty and no command runs: `start` may come.
    start : In(1)
        Pulse before the first group of a command: clears the counts.
    gather, all_rows : In(1)
        Send each new row to `rows` too; give numbers to hot keys of non-popular samples too, not
        only to cold ones. Stable during a command, like the next three.
    pool, weighted : In(1)
        With `gather`: `rows` are those of each bag (:class:`BagLister`), and with `weighted` their
        weights go to `picks`. Only where that unit is built.
    num_tables : In
        Bags a sample.
    response : In(stream of hot_response)
        Groups of a command, the last of them with `last`.
    popular, nonpopular, popular_slots, nonpopular_slots, keys : Out(stream of list_beat)
        Each ends with a beat with `last`.
    rows : Out(stream of row_entry)
        With `gather`: each row of `keys`, then a marker with valid = 0 and last = 1.
    picks : Out(stream of weight_pick)
    done : Out(1)
        All lists (and with `gather` the marker) have been taken; until the next `start`.
    error : Out(1)
        An error group has come: the command will not finish, until a reset.
    popular_count, nonpopular_count, num_keys_out, hits, misses, replacements, shared : Out(32)
        Words 1 to 6 of the completion record, and the keys that got an existing row. Exact with
        `done`, until the next `start`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        lists = {name: Out(stream.Signature(list_beat(config))) for name in LISTS}
        counts = {
            name: Out(32)
            for name in (
                "popular_count",
                "nonpopular_count",
                "num_keys_out",
                "hits",
                "misses",
                "replacements",
                "shared",
            )
        }
        super().__init__(
            {
                "ready": Out(1),
                "start": In(1),
                "gather": In(1),
                "all_rows": In(1),
                "pool": In(1),
                "weighted": In(1),
                "num_tables": In(range(config.max_tables + 1)),
                "response": In(stream.Signature(hot_response(config))),
                **lists,
                "rows": Out(stream.Signature(row_entry(config))),
                "picks": Out(stream.Signature(weight_pick())),
                "done": Out(1),
                "error": Out(1),
                **counts,
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        config, lanes = self.config, self.config.lanes
        # One lane means a small device: there the output buffers would be a good part of all.
        buffered = lanes > 1
        ends = min(2, lanes)  # samples that can end in a group
        m.submodules.samples = samples = SampleBuffer(config)
        m.submodules.dedup = dedup = Dedup(config)
        m.submodules.lister = lister = KeyLister(config, buffered=buffered)
        packers = {
            name: WordPacker(config, inputs=inputs, buffered=buffered)
            for name, inputs in zip(LISTS[:4], (ends, ends, lanes, lanes), strict=True)
        }
        for name, packer in packers.items():
            m.submodules[name] = packer
            wiring.connect(m, packer.output, wiring.flipped(getattr(self, name)))
        wiring.connect(m, wiring.flipped(self.response), samples.input)
        wiring.connect(m, dedup.words, packers["nonpopular_slots"].input)
        new = dedup.new
        if buffered:
            # The stall of the lister ends here.
            m.submodules.new = next_new = register_slice(config, new_keys(config))
            wiring.connect(m, new, next_new.input)
            new = next_new.output
        wiring.connect(m, new, lister.input)
        wiring.connect(m, lister.keys, wiring.flipped(self.keys))
        self._rows = wiring.flipped(self.rows)
        if lanes > 2:
            m.submodules.row_queue = queue = BlockFIFO(row_entry(config), _ROWS_PER_LANE * lanes)
            wiring.connect(m, queue.output, self._rows)
            self._rows = queue.input
        wiring.connect(m, lister.rows, self._rows)
        m.d.comb += [
            lister.gather.eq(self.gather & ~self.pool),
            dedup.start.eq(self.start),
            dedup.all_rows.eq(self.all_rows),
            self.error.eq(samples.error),
        ]

        # ---- each group goes to all branches at once --------------------------------------------
        m.submodules.judged = judged = register_slice(config, judged_group(config))
        wiring.connect(m, samples.output, judged.input)
        group, step = judged.output.payload, Signal()
        branches = {name: packers[name].input for name in LISTS[:3]} | {"needed": dedup.input}
        if config.pool:
            branches["bags"] = self._bags(m)
        if buffered:
            # Here end the stalls of the branches: the step of a group is a matter of registers.
            for name, branch in branches.items():
                entry = register_slice(config, branch.payload.shape())
                m.submodules[f"{name}_entry"] = entry
                wiring.connect(m, entry.output, branch)
                branches[name] = entry.input
        room = Signal()
        m.d.comb += [
            room.eq(Cat(branch.ready for branch in branches.values()).all()),
            judged.output.ready.eq(room),
            step.eq(judged.output.valid & room),
        ]

        number = Signal(32)  # of the sample that is open when the group begins
        m.d.comb += number.eq(self.popular_count + self.nonpopular_count)
        ended = {"popular": Signal(2), "nonpopular": Signal(2)}
        for name, is_popular in (("popular", 1), ("nonpopular", 0)):
            judged_a = group.popular_a if is_popular else ~group.popular_a
            judged_b = group.popular_b if is_popular else ~group.popular_b
            a, b = Signal(name=f"{name}_a"), Signal(name=f"{name}_b")
            segment = branches[name].payload
            m.d.comb += [
                a.eq(group.end_a & judged_a),
                b.eq(group.end_b & judged_b),
                ended[name].eq(a + b),
                segment.count.eq(a + b),
                segment.last.eq(group.last),
                segment.word[0].eq(number),
                branches[name].valid.eq(step & (a | b | group.last)),
            ]
            if lanes > 1:
                m.d.comb += [
                    segment.word[1].eq(number + 1),
                    segment.first.eq(~a & b),
                ]
            count = getattr(self, f"{name}_count")
            with m.If(self.start):
                m.d.sync += count.eq(0)
            with m.Elif(step):
                m.d.sync += count.eq(count + ended[name])

            # The keys of one kind lie in neighbouring lanes: those of A, of B, or of both.
            target = branches["popular_slots" if is_popular else "needed"]
            keys = target.payload
            m.d.comb += [
                keys.first.eq(Mux(judged_a, 0, group.split)),
                keys.count.eq(
                    Mux(judged_a, group.split, 0) + Mux(judged_b, group.count - group.split, 0)
                ),
                keys.last.eq(group.last),
                target.valid.eq(step & ((keys.count != 0) | group.last)),
            ]
        slots, needed = branches["popular_slots"].payload, branches["needed"].payload
        for lane in range(lanes):
            m.d.comb += slots.word[lane].eq(group.slot[lane])
        m.d.comb += [
            needed.key.eq(group.key),
            needed.slot.eq(group.slot),
            needed.z.eq(group.z),
            needed.hit.eq(group.hit),
        ]

        if config.pool:
            self._fill_bags(m, branches["bags"], group, step)

        self._count_keys(m, dedup, group, step, needed.count)
        self._sequence(m, dedup)
        return m

    def _bags(self, m: Module):
        """The rows of bags, in the place of those of the list. Returns the input."""
        m.submodules.bags = bags = BagLister(self.config)
        m.d.comb += [
            bags.start.eq(self.start),
            bags.num_tables.eq(self.num_tables),
            bags.weighted.eq(self.weighted),
        ]
        wiring.connect(m, bags.picks, wiring.flipped(self.picks))
        with m.If(self.pool):
            wiring.connect(m, bags.rows, self._rows)
        return bags.groups

    def _fill_bags(self, m: Module, branch, group, step) -> None:
        """What the bags need of a group."""
        bags = branch.payload
        m.d.comb += [
            branch.valid.eq(step & self.pool),
            *(bags[name].eq(group[name]) for name in ("key", "slot", "hit", "count", "last")),
            bags.ends_a.eq(group.end_a & ~group.popular_a),
            bags.ends_b.eq(group.end_b & ~group.popular_b),
        ]
        for lane in range(self.config.lanes):
            needed = (group.count > lane) & (~group.hit[lane] | self.all_rows)
            in_a = group.split > lane
            m.d.comb += [
                bags.wanted_a[lane].eq(needed & in_a & ~group.popular_a),
                bags.wanted_b[lane].eq(needed & ~in_a & ~group.popular_b),
            ]

    def _count_keys(self, m: Module, dedup: Dedup, group, step, needed) -> None:
        """Counts of keys. A register ahead of the wide adders: timing."""
        lanes = self.config.lanes
        hits = sum(group.hit[lane] for lane in range(lanes))
        needs = Signal(32)  # keys that need a row
        counters = [
            (self.hits, hits),
            (self.misses, group.count - hits),
        ]
        if self.config.dedup_entries:
            counters.append((needs, Mux(self.all_rows, needed, group.count - hits)))
        for counter, amount in counters:
            added = Signal(range(lanes + 1))
            m.d.sync += added.eq(Mux(step, amount, 0))
            with m.If(self.start):
                m.d.sync += counter.eq(0)
            with m.Else():
                m.d.sync += counter.eq(counter + added)
        m.d.comb += [
            self.num_keys_out.eq(dedup.num_keys),
            self.replacements.eq(dedup.replacements),
        ]
        if self.config.dedup_entries:  # else every need is a row of its own
            m.d.sync += self.shared.eq(needs - dedup.num_keys)

    def _sequence(self, m: Module, dedup: Dedup) -> None:
        """Follow the ends of the lists; empty the store when a command is done."""
        outputs = [getattr(self, name) for name in LISTS]
        closed = Signal(len(LISTS) + 1)
        running = Signal()
        for position, output in enumerate([*outputs, self.rows]):
            with m.If(output.valid & output.ready & output.payload.last):
                m.d.sync += closed[position].eq(1)
        complete = Signal()
        m.d.comb += [
            complete.eq(closed[:-1].all() & (closed[-1] | ~self.gather)),
            dedup.clear.eq(running & complete),
            self.done.eq(complete & ~running),
            self.ready.eq(~running & ~dedup.busy),
        ]
        with m.If(self.start):
            m.d.sync += [running.eq(1), closed.eq(0)]
        with m.Elif(complete):
            m.d.sync += running.eq(0)
