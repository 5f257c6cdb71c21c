"""What kept a command from being faster, from what the bus and the counters saw of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hotline.gen.config import Config
from hotline.rtl.burst import burst_limit
from hotline.rtl.read_engine import read_buffer_beats

__all__ = ["Limit", "Observed", "limit_of"]

#: A channel with beats in this share of the cycles is what limits.
_FULL = 0.9
#: Below this use of every resource, none of them limits.
_USED = 0.75


class Limit(StrEnum):
    """What limits a command; see :func:`limit_of`."""

    READ_BUS = "read bus"
    WRITE_BUS = "write bus"
    BANKS = "banks"
    CREDITS = "credits"
    LATENCY = "latency"


@dataclass(frozen=True)
class Observed:
    """One command as the bus and the counters of the device saw it.

    Parameters
    ----------
    cycles : int
        Words 8-9 of the completion record.
    read_beats, read_bursts, read_stalls : int
        On R and AR; the descriptor's are included.
    write_beats, write_bursts, write_stalls : int
        On W and AW; the completion record's are included.
    bank_stalls : int
        The counter BANK_STALLS; 0 if the device has no counters.
    """

    cycles: int
    read_beats: int = 0
    read_bursts: int = 0
    read_stalls: int = 0
    write_beats: int = 0
    write_bursts: int = 0
    write_stalls: int = 0
    bank_stalls: int = 0


def limit_of(
    config: Config,
    seen: Observed,
    *,
    read_latency: int,
    write_latency: int,
    table_cycles: int = 0,
) -> Limit:
    """What limited a command: the resource that was used most.

    * *read bus*, *write bus*: beats / cycles. From 0.9 on the busier one is the limit in any case.
    * *banks*: the fewest cycles in which the hot table can do its part, or BANK_STALLS if they are
      more, / cycles.
    * *credits*: bursts in flight, by Little's law (bursts a cycle, times the cycles that a burst is
      under way), / the bursts that outstanding reads or writes, or the space that is reserved for
      read data, allow.
    * *latency*: no use is above 0.75. The command waited for single answers, or was short.

    Parameters
    ----------
    config : Config
        Of the device.
    seen : Observed
        The command.
    read_latency, write_latency : int
        Of the memory, in cycles.
    table_cycles : int
        Fewest cycles in which the hot table can do its part, 0 if it has none.
    """
    cycles = max(1, seen.cycles)
    used = {
        Limit.READ_BUS: seen.read_beats / cycles,
        Limit.WRITE_BUS: seen.write_beats / cycles,
    }
    busier = max(used, key=lambda limit: used[limit])
    if used[busier] >= _FULL:
        return busier
    reads = _in_flight(seen.read_bursts, seen.read_beats, read_latency, cycles)
    writes = _in_flight(seen.write_bursts, seen.write_beats, write_latency, cycles)
    used[Limit.BANKS] = max(table_cycles, seen.bank_stalls) / cycles
    used[Limit.CREDITS] = max(reads / _most_reads(config, seen), writes / config.write_outstanding)
    most = max(used, key=lambda limit: used[limit])
    return most if used[most] >= _USED else Limit.LATENCY


def _in_flight(bursts: int, beats: int, latency: int, cycles: int) -> float:
    """Mean number of bursts under way: each for the latency, and a cycle a beat."""
    return (bursts * latency + beats) / cycles


def _most_reads(config: Config, seen: Observed) -> float:
    """Read bursts of this command's mean length that can be in flight.

    A port reserves space for a burst only while two of the longest ones would fit.
    """
    mean = seen.read_beats / max(1, seen.read_bursts)
    space = read_buffer_beats(config) - 2 * burst_limit(config)
    return min(config.read_outstanding, space / max(1.0, mean) + 1)
