"""From bus beats to groups of words: up to `lanes` words a cycle, of any number, from any place."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.group_cutter import cut
from hotline.rtl.interfaces import read_beat

__all__ = ["WORD_BITS", "IndexGearbox", "word_group"]

WORD_BITS = 32


def word_group(config: Config) -> data.StructLayout:
    """The words of a group, lane by lane, each with the fault of the beat that it came with."""
    return data.StructLayout(
        {
            "word": data.ArrayLayout(WORD_BITS, config.lanes),
            "fault": config.lanes,
            "cut": cut(config),
        }
    )


class IndexGearbox(wiring.Component):
    """Fills the cut groups with the words of the beats.

    Latency up to two cycles behind the beat, one group a cycle; with `lanes` words a group and
    lanes = data_words also one beat a cycle. It stalls as a whole while `groups` stalls.

    After a beat with a fault it takes no more beats, and gives every group that is cut, with the
    words that were not read marked as faults: a burst outside the windows has fewer beats than
    were asked for. Only reset ends that. `start` drops what an earlier command left of its last
    beat.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    start : In(1)
    words : In(34)
        Words of the command; stable from `start` on.
    beats : In(stream of read_beat)
    cuts : In(stream of cut)
    groups : Out(stream of word_group)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "words": In(34),
                "beats": In(stream.Signature(read_beat(config))),
                "cuts": In(stream.Signature(cut(config))),
                "groups": Out(stream.Signature(word_group(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        lanes = config.lanes
        size = max(lanes, config.data_words)
        beats_per_chunk = size // config.data_words

        # -- chunks of as many words as a group or a beat has -------------------------------
        chunk = Signal(size * WORD_BITS)
        chunk_fault = Signal(beats_per_chunk)
        chunk_valid, chunk_ready = Signal(), Signal()
        if beats_per_chunk == 1:
            m.d.comb += [
                chunk.eq(self.beats.payload.data),
                chunk_fault.eq(self.beats.payload.fault),
                chunk_valid.eq(self.beats.valid),
                self.beats.ready.eq(chunk_ready),
            ]
        else:
            self._join(m, chunk, chunk_fault, chunk_valid, chunk_ready)

        take = self.cuts.payload
        fire, move = Signal(), Signal()
        if size == 1:
            dead = Signal()
            fault = dead | chunk_fault[0]
            used = take.count != 0
            m.d.comb += [
                move.eq(~self.groups.valid | self.groups.ready),
                fire.eq(self.cuts.valid & move & (~used | dead | chunk_valid)),
                self.cuts.ready.eq(fire),
                chunk_ready.eq(fire & used & ~dead),
            ]
            with m.If(move):
                m.d.sync += self.groups.valid.eq(fire)
            with m.If(fire):
                m.d.sync += [
                    self.groups.payload.word[0].eq(chunk),
                    self.groups.payload.fault.eq(fault),
                    self.groups.payload.cut.eq(take),
                    dead.eq(dead | (used & fault)),
                ]
            return m

        # -- the current chunk, and the next one where a group needs both ---------------------
        held = Signal(size * WORD_BITS, reset_less=True)
        held_fault = Signal(beats_per_chunk)
        held_valid = Signal()
        dead = Signal()
        # Where the group lies is found a cycle ahead.
        now, now_valid = Signal(cut(config), reset_less=True), Signal()
        place, next_place = Signal(range(size)), Signal(range(size))
        after = Signal(range(2 * size))
        empty, crosses, fills = Signal(), Signal(), Signal()
        m.d.comb += [
            after.eq(next_place + take.count),
            self.cuts.ready.eq(~now_valid | fire),
            dead.eq(held_valid & held_fault.any()),
            fire.eq(now_valid & move & (dead | empty | (held_valid & (~crosses | chunk_valid)))),
            chunk_ready.eq(~held_valid | (fire & fills & ~dead)),
        ]
        with m.If(self.cuts.ready):
            m.d.sync += [
                now_valid.eq(self.cuts.valid),
                now.eq(take),
                place.eq(next_place),
                empty.eq(take.count == 0),
                fills.eq(after >= size),
                crosses.eq((after >= size) & (after[: len(place)] != 0)),
            ]
        with m.If(self.cuts.valid & self.cuts.ready):
            m.d.sync += next_place.eq(after)
        with m.If(chunk_ready):
            m.d.sync += [
                held.eq(chunk),
                held_fault.eq(chunk_fault),
                held_valid.eq(chunk_valid),
            ]
        with m.If(dead & fire & fills):
            m.d.sync += held_fault.eq(-1)
        with m.If(self.start):
            m.d.sync += [held_valid.eq(0), now_valid.eq(0), next_place.eq(0)]

        # -- merge: word i of the window lies in slot (place + i) mod size ----------------------
        merged = Signal(data.ArrayLayout(WORD_BITS + 1, size), reset_less=True)
        merged_cut = Signal(cut(config), reset_less=True)
        merged_place = Signal(range(size))
        merged_valid = Signal()
        with m.If(move):
            # Whatever it is, if there is nothing: `fire` comes too late to reach all of this.
            m.d.sync += [merged_valid.eq(fire), merged_cut.eq(now), merged_place.eq(place)]
            for slot in range(size):
                beat = slot // config.data_words
                old = Cat(held.word_select(slot, WORD_BITS), held_fault[beat])
                new = Cat(chunk.word_select(slot, WORD_BITS), chunk_fault[beat] | dead)
                m.d.sync += merged[slot].eq(Mux(slot < place, new, old) if slot < lanes else old)

        # -- rotate ---------------------------------------------------------------------------
        m.d.comb += move.eq(~merged_valid | self.groups.ready)
        window = [merged[slot] for slot in range(size)]
        for bit in reversed(range(len(merged_place))):
            wanted = min(size, lanes + (1 << bit) - 1)
            window = [
                Mux(merged_place[bit], window[(i + (1 << bit)) % size], window[i])
                for i in range(wanted)
            ] + window[wanted:]
        m.d.comb += [self.groups.valid.eq(merged_valid), self.groups.payload.cut.eq(merged_cut)]
        for lane in range(lanes):
            m.d.comb += [
                self.groups.payload.word[lane].eq(window[lane][:WORD_BITS]),
                self.groups.payload.fault[lane].eq(window[lane][WORD_BITS]),
            ]
        return m

    def _join(self, m: Module, chunk: Signal, fault: Signal, valid: Signal, ready: Signal) -> None:
        """Joins beats into a chunk; the last one of a command may be incomplete."""
        config = self.config
        parts = max(config.lanes, config.data_words) // config.data_words
        part = Signal(range(parts))
        left = Signal(34)
        final = left <= config.data_words
        broken = self.beats.payload.fault
        m.d.comb += self.beats.ready.eq(~valid | ready)
        with m.If(ready):
            m.d.sync += valid.eq(0)
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += [
                left.eq(left - config.data_words),
                part.eq(part + 1),
                valid.eq((part == parts - 1) | final | broken),
            ]
            for i in range(parts):
                with m.If(part == i):
                    m.d.sync += chunk.word_select(i, config.data_width).eq(self.beats.payload.data)
                # What follows a fault is not read: it counts as a fault until it is.
                with m.If(part <= i):
                    m.d.sync += fault[i].eq(broken)
        with m.If(self.start):
            m.d.sync += [part.eq(0), left.eq(self.words), valid.eq(0)]
