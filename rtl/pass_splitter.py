"""Cuts a group of keys into passes without conflicts on a bank of the seen-keys store."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2

__all__ = ["PassSplitter", "key_pass", "key_segment", "store_banks"]


def store_banks(config: Config) -> int:
    """Banks of the seen-keys store: twice the lanes where there are several, but no empty ones."""
    return 1 if config.lanes == 1 else min(2 * config.lanes, max(1, config.dedup_entries))


def key_segment(config: Config) -> data.StructLayout:
    """Keys of non-popular samples: lanes `first` .. `first + count - 1`. `last` ends the list."""
    return data.StructLayout(
        {
            "key": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
            "slot": data.ArrayLayout(unsigned(config.slot_bits), config.lanes),
            "z": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
            "hit": config.lanes,
            "first": range(config.lanes),
            "count": range(config.lanes + 1),
            "last": 1,
        }
    )


def key_pass(config: Config) -> data.StructLayout:
    """A segment of which no two different keys that get row numbers share a bank.

    `numbered`: lanes of keys that get one. `leader`: by lane, the first lane of the pass with the
    same such key; `leads`: lanes that are their own leader.
    """
    return data.StructLayout(
        {
            "key": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
            "slot": data.ArrayLayout(unsigned(config.slot_bits), config.lanes),
            "z": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
            "hit": config.lanes,
            "numbered": config.lanes,
            "leads": config.lanes,
            "leader": data.ArrayLayout(range(config.lanes), config.lanes),
            "first": range(config.lanes),
            "count": range(config.lanes + 1),
            "last": 1,
        }
    )


class PassSplitter(wiring.Component):
    """Cuts segments into passes: as many lanes as possible, in order, up to the first conflict.

    Since passes are contiguous, everything behind can treat them as segments of their own, and
    numbering them in order is numbering the keys in order. Equal keys do not conflict.

    Latency: one cycle. Throughput: one pass a cycle. Back-pressure: holds one segment. Reset:
    empty.

    Parameters
    ----------
    config : Config
        With `dedup_entries` = 0 no keys conflict and none is equal to another.

    Members
    -------
    all_rows : In(1)
        Hot keys get row numbers too, not only cold ones. Stable during a command.
    input : In(stream of key_segment)
    output : Out(stream of key_pass)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "all_rows": In(1),
                "input": In(stream.Signature(key_segment(config))),
                "output": Out(stream.Signature(key_pass(config))),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        lanes, segment, out = self.config.lanes, self.input.payload, self.output.payload
        merge = lanes > 1 and self.config.dedup_entries > 0
        bank_bits = log2(store_banks(self.config))

        held, consumed = Signal(), Signal()
        store = Signal()
        kept = Signal(key_segment(self.config), reset_less=True)
        numbered, pending = Signal(lanes), Signal(lanes)
        conflict = [Signal(lane, name=f"conflict_{lane}") for lane in range(lanes)]
        equal = [Signal(lane, name=f"equal_{lane}") for lane in range(lanes)]
        m.d.comb += [
            self.input.ready.eq(~held | consumed),
            store.eq(self.input.valid & self.input.ready),
            self.output.valid.eq(held),
        ]
        with m.If(consumed):
            m.d.sync += held.eq(0)

        inside = Signal(lanes)
        end = Signal(range(lanes + 1))
        m.d.comb += [
            end.eq(segment.first + segment.count),
            inside.eq(Cat((segment.first <= lane) & (end > lane) for lane in range(lanes))),
        ]
        incoming = Signal(lanes)
        m.d.comb += incoming.eq(inside & (~segment.hit | self.all_rows.replicate(lanes)))
        with m.If(store):
            m.d.sync += [held.eq(1), kept.eq(segment), numbered.eq(incoming), pending.eq(inside)]
        if merge:
            for lane in range(1, lanes):
                for other in range(lane):
                    mine, theirs = segment.z[lane], segment.z[other]
                    same = Signal(name=f"same_{lane}_{other}")
                    near = Const(1) if bank_bits == 0 else mine[:bank_bits] == theirs[:bank_bits]
                    both = incoming[lane] & incoming[other]
                    m.d.comb += same.eq(mine == theirs)
                    with m.If(store):
                        m.d.sync += [
                            equal[lane][other].eq(both & same),
                            conflict[lane][other].eq(both & near & ~same),
                        ]

        blocked, stop, chosen = Signal(lanes), Signal(lanes), Signal(lanes)
        final = Signal()
        if merge:
            m.d.comb += blocked.eq(Cat((conflict[n] & pending).any() for n in range(lanes)))
        amount = Signal(range(lanes + 1))
        m.d.comb += [
            stop.eq(Cat((blocked & pending)[: lane + 1].any() for lane in range(lanes))),
            chosen.eq(pending & ~stop),
            amount.eq(sum(chosen[lane] for lane in range(lanes))),
            final.eq(~(blocked & pending).any()),
            consumed.eq(held & self.output.ready & final),
            out.key.eq(kept.key),
            out.slot.eq(kept.slot),
            out.z.eq(kept.z),
            out.hit.eq(kept.hit),
            out.numbered.eq(numbered & chosen),
            out.first.eq(kept.first),
            out.count.eq(amount),
            out.last.eq(kept.last & final),
        ]
        with m.If(held & self.output.ready & ~final):
            m.d.sync += [pending.eq(pending & stop), kept.first.eq(kept.first + amount)]
        for lane in range(lanes):
            twin = equal[lane] & pending[:lane] if merge else Const(0, lane)
            leader = Const(lane, range(lanes))
            for other in reversed(range(lane)):
                leader = Mux(twin[other], other, leader)
            m.d.comb += [out.leads[lane].eq(~twin.any()), out.leader[lane].eq(leader)]
        return m
