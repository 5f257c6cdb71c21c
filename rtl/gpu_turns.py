"""Which GPU's hot buffer each row of a list is for."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.interfaces import row_entry

__all__ = ["GpuTurns", "routed_entry"]


def routed_entry(config: Config) -> data.StructLayout:
    """A row for the row mover, the GPU for its slot, and whether it counts as a row copied."""
    return data.StructLayout(
        {"entry": row_entry(config), "gpu": range(max(2, config.gpus)), "counts": 1}
    )


class GpuTurns(wiring.Component):
    """Repeats each hot row for every GPU (FILL), or lets the GPUs serve them in turn (SPLIT).

    Latency 0. One row a cycle. Back-pressure passes through. Reset: as after `start`.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    start : In
        Pulse before a list: GPU 0 comes next.
    gpu_count : In
        GPUs that take part, 1 to `gpus`.
    repeat : In
        Each hot row goes to all of them, and counts with the last. Stable while a list runs.
    turns : In
        The n-th hot row is for GPU n mod `gpu_count`. With neither all are for GPU 0.
    input, output : In, Out
        The list.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "gpu_count": In(4),
                "repeat": In(1),
                "turns": In(1),
                "input": In(stream.Signature(row_entry(config))),
                "output": Out(stream.Signature(routed_entry(config))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        entry, out = self.input.payload, self.output.payload
        gpu, routed, last, final = Signal.like(out.gpu), Signal(), Signal(), Signal()
        m.d.comb += [
            last.eq(gpu == (self.gpu_count - 1)),
            routed.eq(entry.valid & entry.hot),
            final.eq(~self.repeat | ~routed | last),
            self.output.valid.eq(self.input.valid),
            self.input.ready.eq(self.output.ready & final),
            out.entry.eq(entry),
            out.entry.last.eq(entry.last & final),
            out.gpu.eq(gpu),
            out.counts.eq(final),
        ]
        with m.If(self.start):
            m.d.sync += gpu.eq(0)
        with m.Elif(self.output.valid & self.output.ready & routed & (self.repeat | self.turns)):
            m.d.sync += gpu.eq(Mux(last, 0, gpu + 1))
        return m
