"""A register slice without registers."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib.wiring import connect, flipped

from hotline.rtl.stream_slice import StreamSlice

__all__ = ["StreamWire"]


class StreamWire(StreamSlice):
    """Where no path needs to be cut."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        connect(m, flipped(self.input), flipped(self.output))
        return m
