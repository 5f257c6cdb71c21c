"""Holds groups of looked-up keys until it is known whether their samples are popular."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.interfaces import hot_response

__all__ = ["SampleBuffer", "judged_group"]


def _stored_group(config: Config) -> data.StructLayout:
    """A group of responses; the seen-keys store alone needs z."""
    lanes = range(config.lanes + 1)
    fields = {
        "key": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
        "slot": data.ArrayLayout(unsigned(config.slot_bits), config.lanes),
        "hit": config.lanes,
        "count": lanes,
        "end_a": 1,
        "last": 1,
    }
    if config.lanes > 1:
        fields |= {"split": lanes, "end_b": 1, "more_b": 1}
    if config.dedup_entries:
        fields["z"] = data.ArrayLayout(unsigned(config.key_bits), config.lanes)
    return data.StructLayout(fields)


def judged_group(config: Config) -> data.StructLayout:
    """A group whose one or two samples are judged; fields as in `group_meta`.

    `popular_a`, `popular_b`: the sample is popular; of no meaning if it has neither keys nor its
    end in the group.
    """
    lanes = range(config.lanes + 1)
    return data.StructLayout(
        {
            "key": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
            "slot": data.ArrayLayout(unsigned(config.slot_bits), config.lanes),
            "z": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
            "hit": config.lanes,
            "count": lanes,
            "split": lanes,
            "end_a": 1,
            "end_b": 1,
            "last": 1,
            "popular_a": 1,
            "popular_b": 1,
        }
    )


class SampleBuffer(wiring.Component):
    """Delays the responses of the hot table until all keys of their samples have been seen.

    Groups lie in one block RAM FIFO. Each group that ends a sample leaves a verdict in a second
    one, with which the groups are released in order: the sample that is open at the beginning of
    a group is the next to end, so its verdict is always the next one.

    Latency: about five cycles after the end of the sample. Throughput: one group a cycle (one
    lane: a group that touches two samples takes two cycles). Back-pressure: the buffer holds the
    longest sample whatever its bags, so it can always fill up to a verdict. Reset: empty.

    Parameters
    ----------
    config : Config

    Members
    -------
    input : In(stream of hot_response)
        Groups without keys, ends and `last` vanish.
    output : Out(stream of judged_group)
        With one lane there is never a second sample in a group, and `split` = `count`. Without
        a seen-keys store `z` is 0.
    error : Out(1)
        An error group has come. Until reset nothing more is taken; what is stored may wait for
        ever.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "input": In(stream.Signature(hot_response(config))),
                "output": Out(stream.Signature(judged_group(config))),
                "error": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        config, lanes = self.config, self.config.lanes
        pairs = lanes > 1
        # A group of the longest sample has a key of it or its end, and one more group may be
        # waiting for it.
        depth = 1 << ceil_log2(config.max_sample_keys + 2)
        layout = _stored_group(config)
        m.submodules.groups = groups = BlockFIFO(layout, depth)
        # Verdicts never outnumber the groups in flight: those stored, and the two on the way.
        verdict = data.StructLayout({"popular_a": 1, **({"popular_b": 1} if pairs else {})})
        m.submodules.verdicts = verdicts = BlockFIFO(verdict, depth)

        # ---- input: judge the samples that end -------------------------------------------------
        response = self.input.payload
        meta = response.meta
        entry = Signal(layout)
        second = Signal()  # one lane: the part of the second sample is to be stored
        two = Signal()
        m.d.comb += two.eq(meta.end_a & (meta.end_b | (meta.count != meta.split)))
        if config.dedup_entries:
            m.d.comb += entry.z.eq(response.z)
        m.d.comb += [
            entry.key.eq(response.key),
            entry.slot.eq(response.slot),
            entry.hit.eq(response.hit),
            entry.count.eq(meta.count),
            entry.end_a.eq(meta.end_a),
            entry.last.eq(meta.last),
        ]
        opened_cold = Signal()  # the open sample has had a miss
        cold_a, cold_b, carry = Signal(), Signal(), Signal()
        if pairs:
            m.d.comb += [
                entry.split.eq(meta.split),
                entry.end_b.eq(meta.end_b),
                entry.more_b.eq(two & ~meta.end_b),
                carry.eq(Mux(meta.end_b, 0, Mux(meta.end_a, cold_b, cold_a))),
            ]
        else:
            with m.If(two):
                m.d.comb += entry.last.eq(0)
                m.d.comb += entry.count.eq(meta.split)
                with m.If(second):
                    m.d.comb += entry.count.eq(meta.count - meta.split)
                    m.d.comb += entry.end_a.eq(meta.end_b)
                    m.d.comb += entry.last.eq(meta.last)
            m.d.comb += [
                entry.hit.eq(response.hit & (entry.count != 0)),
                carry.eq(cold_a & ~entry.end_a),
            ]
        if pairs:
            missed, in_a = Signal(lanes), Signal(lanes)
            m.d.comb += [
                missed.eq(Cat((meta.count > n) & ~response.hit[n] for n in range(lanes))),
                in_a.eq(Cat(meta.split > n for n in range(lanes))),
                cold_a.eq(opened_cold | (missed & in_a).any()),
                cold_b.eq((missed & ~in_a).any()),
            ]
        else:
            m.d.comb += cold_a.eq(opened_cold | ((entry.count != 0) & ~entry.hit))
        useful, store = Signal(), Signal()
        m.d.comb += [
            useful.eq((meta.count != 0) | meta.end_a | meta.last),
            store.eq(self.input.valid & useful & ~meta.error & ~self.error),
            groups.input.valid.eq(store & verdicts.input.ready),
            groups.input.payload.eq(entry),
            self.input.ready.eq(groups.input.ready & verdicts.input.ready & ~self.error),
            verdicts.input.valid.eq(store & groups.input.ready & entry.end_a),
            verdicts.input.payload.popular_a.eq(~cold_a),
        ]
        if pairs:
            m.d.comb += verdicts.input.payload.popular_b.eq(~cold_b)
        else:
            with m.If(two & ~second):
                m.d.comb += self.input.ready.eq(0)
        with m.If(groups.input.valid & groups.input.ready):
            m.d.sync += opened_cold.eq(carry)
            if not pairs:
                m.d.sync += second.eq(two & ~second)
        with m.If(self.input.valid & self.input.ready & meta.error):
            m.d.sync += self.error.eq(1)

        self._release(m, groups, verdicts)
        return m

    def _release(self, m: Module, groups: BlockFIFO, verdicts: BlockFIFO) -> None:
        """Output: a group leaves with the verdicts on its samples."""
        pairs = self.config.lanes > 1
        layout = _stored_group(self.config)
        # The next two verdicts, and the oldest group: registers, because the decision to release
        # would come too late after a read of block RAM.
        first, queued = (
            Signal(verdicts.output.payload.shape()),
            Signal(verdicts.output.payload.shape()),
        )
        first_valid, queued_valid = Signal(), Signal()
        group, group_valid, known = Signal(layout, reset_less=True), Signal(), Signal()
        release, drop, shift = Signal(), Signal(), Signal()
        judges = Signal()  # the group is part of a sample
        m.d.comb += [
            known.eq(first_valid | ~judges),
            self.output.valid.eq(group_valid & known),
            release.eq(self.output.valid & self.output.ready),
            drop.eq(release & group.end_a),
            groups.output.ready.eq(~group_valid | release),
        ]
        new = groups.output.payload
        with m.If(groups.output.ready):
            m.d.sync += [
                group_valid.eq(groups.output.valid),
                group.eq(new),
                judges.eq(new.end_a | (new.count != 0)),
            ]

        out = self.output.payload
        m.d.comb += [
            out.key.eq(group.key),
            out.slot.eq(group.slot),
            out.hit.eq(group.hit),
            out.count.eq(group.count),
            out.split.eq(group.split if pairs else group.count),
            out.end_a.eq(group.end_a),
            out.last.eq(group.last),
            out.popular_a.eq(first.popular_a),
        ]
        if self.config.dedup_entries:
            m.d.comb += out.z.eq(group.z)
        if pairs:
            # A second sample that goes on behind this group has the next verdict.
            m.d.comb += [
                known.eq((first_valid & (~group.more_b | queued_valid)) | ~judges),
                out.end_b.eq(group.end_b),
                out.popular_b.eq(Mux(group.end_b, first.popular_b, queued.popular_a)),
                shift.eq(~first_valid | drop),
                verdicts.output.ready.eq(~queued_valid | shift),
            ]
            with m.If(shift):
                m.d.sync += [first.eq(queued), first_valid.eq(queued_valid)]
            with m.If(verdicts.output.ready):
                m.d.sync += [
                    queued.eq(verdicts.output.payload),
                    queued_valid.eq(verdicts.output.valid),
                ]
        else:
            m.d.comb += verdicts.output.ready.eq(~first_valid | drop)
            with m.If(verdicts.output.ready):
                m.d.sync += [
                    first.eq(verdicts.output.payload),
                    first_valid.eq(verdicts.output.valid),
                ]
