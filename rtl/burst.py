"""Burst arithmetic that everything on the AXI side shares.

AXI4 forbids bursts across a 4 KiB boundary. All contiguous traffic is therefore cut at multiples
of a power of two: that power divides 4 KiB, so that no separate boundary check is needed, and
after the first burst of a region every burst is aligned, which memory controllers like.
"""

from __future__ import annotations

from amaranth import Value, ValueLike

from hotline.gen.config import Config, log2

__all__ = ["PAGE_BYTES", "aligned_beats", "beat_bits", "burst_limit", "room_in_burst"]

#: No burst crosses a multiple of this (AMBA AXI4, A3.4.1).
PAGE_BYTES = 4096


def burst_limit(config: Config) -> int:
    """Beats of the longest burst: `max_burst_beats`, or a page if that is less."""
    return min(config.max_burst_beats, PAGE_BYTES // config.data_bytes)


def aligned_beats(config: Config) -> int:
    """Largest power of two that is not above :func:`burst_limit`: where linear bursts are cut."""
    return 1 << (burst_limit(config).bit_length() - 1)


def beat_bits(config: Config) -> int:
    """Low address bits below the bus width, log2(data bytes)."""
    return log2(config.data_bytes)


def room_in_burst(config: Config, beat_addr: ValueLike) -> Value:
    """Beats from `beat_addr` (address in beats) to the end of its aligned burst, 1 or more."""
    limit = aligned_beats(config)
    return limit - (Value.cast(beat_addr) & (limit - 1))
