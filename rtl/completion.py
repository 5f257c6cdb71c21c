"""Writes the completion record of a descriptor (spec section 7)."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.commands import DESCRIPTOR_BYTES
from hotline.gen.config import Config
from hotline.rtl.descriptor import descriptor_words
from hotline.rtl.interfaces import write_beat

__all__ = ["CompletionWriter"]


class CompletionWriter(wiring.Component):
    """One ascending burst of 64 bytes, or as few as `max_burst_beats` allows.

    Each burst is handed over only when the one before it has been answered. The first beat is
    offered in the cycle after `start`.

    Members
    -------
    start : In(1)
        Pulse: write `words` to `addr` (bytes, 64-byte aligned); both hold until `done`.
    output : Out
        Channel of the write engine.
    engine_idle : In(1)
        The write engine has nothing buffered and nothing outstanding.
    engine_fault : In(1)
        A write has failed: no further burst is handed over.
    done : Out(1)
        Pulse: everything is answered, or failed.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "addr": In(config.addr_width),
                "words": In(descriptor_words()),
                "output": Out(stream.Signature(write_beat(config))),
                "engine_idle": In(1),
                "engine_fault": In(1),
                "done": Out(1),
            }
        )

    @staticmethod
    def beats(config: Config) -> int:
        """Beats of a record."""
        return DESCRIPTOR_BYTES // config.data_bytes

    @staticmethod
    def first_burst(config: Config) -> int:
        """Beats of the record's first burst."""
        return min(CompletionWriter.beats(config), config.max_burst_beats)

    def elaborate(self, platform: object) -> Module:
        config = self.config
        m = Module()
        beats, burst = self.beats(config), self.first_burst(config)
        beat = Signal(range(beats + 1))
        in_burst = Signal(range(burst + 1))
        offset = Signal(range(DESCRIPTOR_BYTES + 1))
        payload = self.output.payload

        whole = Cat(self.words)
        slices = Array(whole.word_select(i, config.data_width) for i in range(beats))
        last_in_burst = (in_burst == burst - 1) | (beat == beats - 1)
        m.d.comb += [
            payload.data.eq(slices[beat]),
            payload.strobe.eq(~0),
            # The record does not cross 64 bytes, so the low address bits are just the offset.
            payload.addr.eq(Cat(offset[:6], self.addr[6:])),
            payload.last.eq(last_in_burst),
        ]
        m.d.sync += self.done.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [beat.eq(0), in_burst.eq(0), offset.eq(0)]
                with m.If(self.start):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += self.output.valid.eq(1)
                with m.If(self.output.ready):
                    m.d.sync += [beat.eq(beat + 1), in_burst.eq(in_burst + 1)]
                    with m.If(last_in_burst):
                        m.next = "SETTLE"
            with m.State("SETTLE"):
                # The engine says that it is busy one cycle after it has taken the last beat.
                m.next = "ANSWER"
            with m.State("ANSWER"), m.If(self.engine_fault | self.engine_idle):
                m.d.sync += [in_burst.eq(0), offset.eq(offset + burst * config.data_bytes)]
                with m.If(self.engine_fault | (beat == beats)):
                    m.d.sync += self.done.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.next = "SEND"
        return m
