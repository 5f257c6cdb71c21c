"""How the memory behind a simulated bus answers, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BusTiming", "Statistics", "latency_range"]


@dataclass(frozen=True)
class BusTiming:
    """How the memory answers. The defaults are the memory model of spec section 9.

    Parameters
    ----------
    read_latency, write_latency : int or (int, int)
        Cycles from AR to the first R beat, and from the last W beat to B; a pair is a range that
        each burst draws from.
    reorder, interleave : bool
        Bursts of different IDs are answered in any order; their R beats mix.
    ar_pause, r_pause, aw_pause, w_pause, b_pause : float
        Probability, per cycle, of not being ready or not answering.
    read_bandwidth, write_bandwidth : float
        Beats per cycle, above 0 and at most 1.
    read_outstanding, write_outstanding : int or None
        Bursts that the memory takes before it has answered one; None for any number.
    seed : int
        Seed of all that is random.
    """

    read_latency: int | tuple[int, int] = 200
    write_latency: int | tuple[int, int] = 20
    reorder: bool = False
    interleave: bool = False
    ar_pause: float = 0.0
    r_pause: float = 0.0
    aw_pause: float = 0.0
    w_pause: float = 0.0
    b_pause: float = 0.0
    read_bandwidth: float = 1.0
    write_bandwidth: float = 1.0
    read_outstanding: int | None = None
    write_outstanding: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("read_latency", "write_latency"):
            low, high = latency_range(getattr(self, name))
            if not 1 <= low <= high:
                raise ValueError(f"{name} must be at least 1 and ascending, not {low}..{high}")
        for name in ("ar_pause", "r_pause", "aw_pause", "w_pause", "b_pause"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 0 and below 1")
        for name in ("read_bandwidth", "write_bandwidth"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1")
        for name in ("read_outstanding", "write_outstanding"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"{name} must be at least 1, or None, not {limit}")

    @staticmethod
    def rough(seed: int) -> BusTiming:
        """Everything that AXI4 allows a memory to do to its master."""
        return BusTiming((1, 80), (1, 40), True, True, 0.3, 0.3, 0.3, 0.3, 0.3, seed=seed)


def latency_range(latency: int | tuple[int, int]) -> tuple[int, int]:
    """The least and the greatest latency of a parameter of :class:`BusTiming`."""
    return (latency, latency) if isinstance(latency, int) else latency


@dataclass(frozen=True)
class Statistics:
    """Counts of the bus since the last :meth:`VerilatorBackend.clear_statistics`.

    Stalls are cycles with valid and without ready on AR and W. `most_reads` and `most_writes`
    (bursts in flight) and `outside` (bursts that lay in no region) count from the beginning.
    """

    cycles: int
    read_bursts: int
    read_beats: int
    read_stalls: int
    write_bursts: int
    write_beats: int
    write_stalls: int
    most_reads: int
    most_writes: int
    outside: int
