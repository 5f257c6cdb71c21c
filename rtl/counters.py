"""The 64-bit performance counters of spec section 8, kept in a small memory."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.register_map import COUNTERS

__all__ = ["COMMAND_COUNTERS", "EVENT_COUNTERS", "CounterBank", "command_counts", "counter_events"]

#: Counters that grow once per command, by a 32-bit amount.
COMMAND_COUNTERS = ("SAMPLES", "POPULAR", "KEYS", "HITS", "ROWS_GATHERED", "ROWS_SHARED")

#: Counters that grow by one in a cycle.
EVENT_COUNTERS = tuple(name for name in COUNTERS if name not in COMMAND_COUNTERS)

#: Cycles in which one 32-bit half is updated: address, data, sum, write.
_PHASES = 4

#: Halves of a counter in update order; the third pass repairs the low half on overflow.
_PASSES = 3

#: Cycles that a round takes at most; the event counts of a round must fit into _EVENT_BITS.
_ROUND = len(COUNTERS) * _PASSES * _PHASES
_EVENT_BITS = (_ROUND + 1).bit_length()


def counter_events() -> data.StructLayout:
    """One bit for each of `EVENT_COUNTERS`, lower case: 1 counts one."""
    return data.StructLayout({name.lower(): 1 for name in EVENT_COUNTERS})


def command_counts() -> data.StructLayout:
    """A 32-bit amount for each of `COMMAND_COUNTERS`, lower case."""
    return data.StructLayout({name.lower(): 32 for name in COMMAND_COUNTERS})


class CounterBank(wiring.Component):
    """Saturating 64-bit counters with an atomic snapshot.

    One 32-bit adder serves all counters. Events are counted in small registers; round by round
    these are frozen, all in the same cycle, and added to the totals. A snapshot is a round that
    also hands the new totals out, so it shows all counters as of one cycle. A round takes at most
    144 cycles; a snapshot waits for the current round and takes one.

    Reset clears everything, which takes one round.

    Members
    -------
    events : In
        Counted in every cycle.
    counts : In, stream
        Accepted at once, unless the counts before are still waiting (at most two rounds).
        A snapshot that starts after the transfer includes it.
    start, snapshot, clear : In(1)
        `start` holds until `done`; `snapshot` and `clear` say what to do, snapshot first.
    done : Out(1)
        Pulse: the snapshot has been handed out.
    write, write_word, write_data : Out
        Halves of the snapshot: word 2*i is the low half of counter i, 2*i + 1 the high half. The
        low half is written twice if the counter overflows in this round; the second holds.
    saturated : Out
        Bit i: counter i had overflowed at the last snapshot.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "events": In(counter_events()),
                "counts": In(stream.Signature(command_counts())),
                "start": In(1),
                "snapshot": In(1),
                "clear": In(1),
                "done": Out(1),
                "write": Out(1),
                "write_word": Out(range(2 * len(COUNTERS))),
                "write_data": Out(32),
                "saturated": Out(len(COUNTERS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number = len(COUNTERS)
        m.submodules.totals = totals = Memory(
            shape=32, depth=2 * number, init=[], attrs={"no_rw_check": 1}
        )
        read, write = totals.read_port(), totals.write_port()

        live = Signal(data.ArrayLayout(_EVENT_BITS, len(EVENT_COUNTERS)))
        frozen = Signal.like(live)
        waiting = Signal(command_counts())
        is_waiting = Signal()
        use_waiting = Signal()

        index = Signal(range(number))
        half = Signal(2)
        phase = Signal(range(_PHASES))
        active, taking = Signal(), Signal()
        # Clears the totals in the first round after reset: a memory has no reset.
        clearing = Signal(init=1)
        # Bit 0 belongs to the counter at hand; rotates as `index` advances.
        full = Signal(number)
        carry = Signal()
        total, addend, total_sum = Signal(32), Signal(32), Signal(33)

        events, amounts = iter(range(len(EVENT_COUNTERS))), iter(range(len(COMMAND_COUNTERS)))
        words = Array(waiting.as_value().word_select(i, 32) for i in range(len(COMMAND_COUNTERS)))
        sources = Array(
            Mux(use_waiting, words[next(amounts)], 0)
            if name in COMMAND_COUNTERS
            else frozen[next(events)]
            for name in COUNTERS
        )

        # From registers: phase == _PHASES - 1; index == number - 1.
        ends, at_last = Signal(), Signal()
        last_pass = Signal()
        round_ends = Signal()
        overflow = (half == 1) & total_sum[32]
        m.d.comb += [
            # The third pass is needed only where the low half wrapped without being full before.
            last_pass.eq((half == 2) | ((half == 1) & ~total_sum[32])),
            round_ends.eq(ends & last_pass & at_last),
            read.addr.eq(Cat(half[0], index)),
            write.addr.eq(Cat(half[0], index)),
            write.en.eq(ends),
            write.data.eq(Mux(clearing, 0, self.write_data)),
            self.write.eq(write.en & taking),
            self.write_word.eq(write.addr),
            self.write_data.eq(total_sum[:32] | (full[0] | overflow | (half == 2)).replicate(32)),
            self.done.eq(round_ends & active),
            self.counts.ready.eq(~is_waiting),
        ]
        m.d.sync += [
            phase.eq(phase + 1),
            ends.eq(phase == _PHASES - 2),
            at_last.eq(index == number - 1),
            total.eq(read.data),
            addend.eq(Mux(half == 0, sources[index], 0)),
            total_sum.eq(total + addend + carry),
        ]
        with m.If(ends):
            m.d.sync += [half.eq(half + 1), carry.eq((half == 0) & total_sum[32])]
            with m.If(overflow):
                m.d.sync += full[0].eq(1)
            with m.If(last_pass):
                m.d.sync += [half.eq(0), index.eq(index + 1), carry.eq(0)]
                stays_full = full[0] | overflow | (half == 2)
                m.d.sync += full.eq(Cat(full[1:], stays_full & ~clearing))
                with m.If(taking):
                    m.d.sync += self.saturated.eq(Cat(self.saturated[1:], stays_full))

        # They come from everywhere, and late.
        events_now = Signal.like(self.events)
        m.d.sync += events_now.eq(self.events)
        for position, name in enumerate(EVENT_COUNTERS):
            event = events_now[name.lower()]
            m.d.sync += live[position].eq(live[position] + event)
            with m.If(round_ends):
                m.d.sync += [live[position].eq(event), frozen[position].eq(live[position])]
        with m.If(round_ends):
            m.d.sync += [
                index.eq(0),
                use_waiting.eq(is_waiting),
                # A command that has just been done is still held by its `start`.
                active.eq(self.start & ~self.done),
                taking.eq(self.start & self.snapshot & ~self.done),
                clearing.eq(self.start & self.clear & ~self.done),
            ]
            with m.If(use_waiting):
                m.d.sync += [is_waiting.eq(0), use_waiting.eq(0)]
        with m.If(self.counts.valid & self.counts.ready):
            m.d.sync += [waiting.eq(self.counts.payload), is_waiting.eq(1)]
        return m
