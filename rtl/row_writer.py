"""Write bursts of rows, addressed beat by beat."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.aligner import aligned_beat
from hotline.rtl.burst import beat_bits, burst_limit
from hotline.rtl.interfaces import write_beat
from hotline.rtl.row_bursts import beat_address_bits, page_bits

__all__ = ["RowWriter", "row_place"]


def row_place(config: Config) -> data.StructLayout:
    """Where a row goes: its first beat, and whether the next row follows without a gap."""
    return data.StructLayout({"start": beat_address_bits(config), "joins": 1})


class RowWriter(wiring.Component):
    """Gives destination beats their burst addresses.

    A burst ends with the row, unless the next one `joins`, at a 4 KiB boundary, and at the
    longest burst. One beat a cycle, latency 1; back-pressure holds the beat. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    places : In
        One for each row.
    beats : In
        Their beats, then perhaps the end of the list.
    output : Out
        For the write engine.
    done : Out
        The list has ended, and its last beat has been handed over. Level, until reset or `clear`.
    clear : In
        Pulse: forget `done`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "places": In(stream.Signature(row_place(config))),
                "beats": In(stream.Signature(aligned_beat(config))),
                "output": Out(stream.Signature(write_beat(config))),
                "done": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        longest = burst_limit(config)
        beat, out = self.beats, self.output
        payload = Signal(write_beat(config), reset_less=True)
        here, following = (Signal(beat_address_bits(config)) for _ in range(2))
        opened, ended = Signal(), Signal()
        count, position = Signal(range(longest)), Signal(range(longest))
        free, take, closes = Signal(), Signal(), Signal()
        m.d.comb += [
            out.payload.eq(payload),
            free.eq(~out.valid | out.ready),
            beat.ready.eq(free & (beat.payload.end | self.places.valid)),
            take.eq(beat.valid & beat.ready & ~beat.payload.end),
            self.places.ready.eq(take & beat.payload.last),
            here.eq(Mux(beat.payload.first, self.places.payload.start, following)),
            position.eq(Mux(opened, count, 0)),
            closes.eq(
                here[: page_bits(config)].all()
                | (position == longest - 1)
                | (beat.payload.last & ~self.places.payload.joins)
            ),
            self.done.eq(ended & ~out.valid & ~self.clear),
        ]
        with m.If(free):
            m.d.sync += [
                out.valid.eq(take),
                payload.data.eq(beat.payload.data),
                payload.strobe.eq(beat.payload.strobe),
                payload.last.eq(closes),
                payload.row_end.eq(beat.payload.last),
            ]
        with m.If(take):
            m.d.sync += [following.eq(here + 1), opened.eq(~closes), count.eq(position + 1)]
            with m.If(~opened):
                m.d.sync += payload.addr.eq(here << beat_bits(config))
        with m.If(beat.valid & beat.ready & beat.payload.end):
            m.d.sync += ended.eq(1)
        with m.If(self.clear):
            m.d.sync += ended.eq(0)
        return m
