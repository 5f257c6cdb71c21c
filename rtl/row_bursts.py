"""Read bursts of rows: cut at the longest burst and at 4 KiB boundaries."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.aligner import row_beats_bits
from hotline.rtl.burst import beat_bits, burst_limit
from hotline.rtl.interfaces import bus_address, read_request
from hotline.rtl.register_slice import register_slice
from hotline.rtl.stream_half import StreamHalf
from hotline.rtl.stream_register import StreamRegister

__all__ = ["RowBursts", "beat_address_bits", "beat_span", "page_bits"]


def beat_address_bits(config: Config) -> int:
    """Bits of a bus-aligned address, without those that are always 0."""
    return bus_address(config).width - beat_bits(config)


def page_bits(config: Config) -> int:
    """Bits of a beat's position within its 4 KiB."""
    return 12 - beat_bits(config)


def beat_span(config: Config) -> data.StructLayout:
    """`beats` (at least 1) successive beats from beat number `start` of the address space on."""
    return data.StructLayout({"start": beat_address_bits(config), "beats": row_beats_bits(config)})


class RowBursts(wiring.Component):
    """Cuts spans of beats into bursts.

    Latency 3 cycles; a span that fits one burst takes 1 cycle (in a device of rows alone 2), any
    other 2 cycles a burst (which has beats enough to make up for it). Back-pressure holds the
    request. Reset empties it.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    spans : In
        What to read.
    requests : Out
        The bursts, in order.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "spans": In(stream.Signature(beat_span(config))),
                "requests": Out(stream.Signature(read_request(config))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        page = page_bits(config)
        longest = burst_limit(config)
        valid, known, step, fits = Signal(), Signal(), Signal(), Signal()
        span = Signal(beat_span(config), reset_less=True)
        limit, next_limit = Signal(range(longest + 1)), Signal(range(longest + 1))
        to_boundary = Signal(page + 1)
        # The choice of the read engine ends here, and its stall.
        slice_ = StreamRegister if config.hot_table else StreamHalf
        m.submodules.exit = leaving = slice_(read_request(config))
        wiring.connect(m, leaving.output, wiring.flipped(self.requests))
        out = leaving.input
        m.submodules.entry = entry = register_slice(config, beat_span(config))
        wiring.connect(m, wiring.flipped(self.spans), entry.input)
        spans = entry.output
        start = Mux(valid & ~known, span.start, spans.payload.start)
        m.d.comb += [
            # The limit is registered before it is used; two chains in one cycle are too slow.
            to_boundary.eq((1 << page) - start[:page]),
            next_limit.eq(Mux(to_boundary < longest, to_boundary, longest)),
            fits.eq(span.beats <= limit),
            step.eq(valid & known & out.ready),
            spans.ready.eq(~valid | (step & fits)),
            out.valid.eq(valid & known),
            out.payload.addr.eq(span.start << beat_bits(config)),
            out.payload.beats.eq(Mux(fits, span.beats, limit)),
        ]
        with m.If(step):
            m.d.sync += [
                span.start.eq(span.start + limit),
                span.beats.eq(span.beats - limit),
                known.eq(0),
            ]
        with m.If(valid & ~known):
            m.d.sync += [limit.eq(next_limit), known.eq(1)]
        with m.If(spans.ready):
            m.d.sync += [
                valid.eq(spans.valid),
                span.eq(spans.payload),
                limit.eq(next_limit),
                known.eq(1),
            ]
        return m
