"""Register slice of a wide stream whose consumer decides late."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib.memory import Memory

from hotline.rtl.stream_slice import StreamSlice

__all__ = ["StreamPair"]


class StreamPair(StreamSlice):
    """Two places in turns, for an `output.ready` that comes late in the cycle.

    As :class:`~hotline.rtl.stream_register.StreamRegister`, but `output.ready` reaches a few
    flip-flops only, whatever the width of the payload, which is in distributed RAM where the device
    has it.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.places = places = Memory(
            shape=self.shape, depth=2, init=[], attrs={"ram_style": "distributed"}
        )
        place_in, place_out = places.write_port(), places.read_port(domain="comb")
        write, read = Signal(), Signal()
        some, both = Signal(), Signal()  # at least one place is full; both are
        put = self.input.valid & self.input.ready
        take = self.output.valid & self.output.ready
        m.d.comb += [
            self.input.ready.eq(~both),
            self.output.valid.eq(some),
            self.output.payload.eq(place_out.data),
            place_out.addr.eq(read),
            place_in.addr.eq(write),
            place_in.data.eq(self.input.payload),
            # While it is the next to be written, an empty place may take anything.
            place_in.en.eq(~both),
        ]
        m.d.sync += [
            some.eq(put | both | (some & ~take)),
            both.eq(~take & (both | (some & put))),
            write.eq(write ^ put),
            read.eq(read ^ take),
        ]
        return m
