"""How a sample compares with the running mean of misses: x and y of `tracker.md`."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config

__all__ = ["SampleReference", "sample_score"]

#: y only matters up to here: e = min(6, .. + 2 * y) of `tracker.md`.
Y_MAX = 3


def sample_score(config: Config) -> data.StructLayout:
    """Score of a sample: x == 0, and min(y, 3)."""
    return data.StructLayout({"x_zero": 1, "y": 2})


class SampleReference(wiring.Component):
    """Register R: misses of learned samples in, their scores out, in order.

    One sample a cycle, latency three cycles. R takes a sample's misses as soon as they are
    accepted, so only samples that are applied may enter. `clear` and reset set R to 0.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    clear : In(1)
        Only while nothing is inside.
    misses : In(stream of range(max_sample_keys + 1))
    scores : Out(stream of sample_score)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "clear": In(1),
                "misses": In(stream.Signature(range(config.max_sample_keys + 1))),
                "scores": Out(stream.Signature(sample_score(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        count = len(self.misses.payload)
        mean = Signal(config.reference_bits)
        reference = Signal(count + 1)
        misses = Signal(count)
        above = Signal(signed(count + 2))
        valid = Signal(2)
        move = Signal()
        m.d.comb += [
            move.eq(~self.scores.valid | self.scores.ready),
            self.misses.ready.eq(move),
        ]
        x_zero = above <= 0
        with m.If(move):
            m.d.sync += [
                valid.eq((valid << 1) | self.misses.valid),
                self.scores.valid.eq(valid[1]),
                reference.eq(((mean << 1) + mean) >> 12),
                misses.eq(self.misses.payload),
                above.eq(misses - reference),
                self.scores.payload.x_zero.eq(x_zero),
                self.scores.payload.y.eq(
                    Mux(x_zero, 0, Mux(above > Y_MAX, Y_MAX, (above - 1)[:2]))
                ),
            ]
            with m.If(self.misses.valid):
                m.d.sync += mean.eq(mean + self.misses.payload - (mean >> 10))
        with m.If(self.clear):
            m.d.sync += mean.eq(0)
        return m
