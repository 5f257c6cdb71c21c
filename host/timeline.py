"""When what happened in training: device, buses and GPU side by side, and what hides behind what.

The device takes its commands one after the other, in the order of look-ahead (SPLIT n, GATHER n,
SPLIT n+1, SCATTER n, GATHER n+1, ...); the GPU works on one thing at a time. From how long each
thing takes, :func:`schedule` finds when it begins: as soon as its lane is free and what it needs is
there.

============== ==========================================================
needs          what
============== ==========================================================
popular n      SPLIT n
nonpopular n   GATHER n
SCATTER n      all work of the GPU on n
LEARN and so   all work of the GPU on n-1: hot rows move, or change homes
on, before n
============== ==========================================================
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["BUS", "DEVICE", "GPU", "Event", "Timed", "schedule", "summary"]

#: The lanes.
DEVICE, BUS, GPU = "device", "bus", "GPU"

#: The commands of a step; all others belong to re-learning and come before its SPLIT.
_SPLIT, _GATHER, _SCATTER = "SPLIT", "GATHER", "SCATTER"
_STEP_COMMANDS = (_SPLIT, _GATHER, _SCATTER)
_NONPOPULAR = "nonpopular"


class Timed(Protocol):
    """Something that took time.

    Members
    -------
    step : int
        The training step that it is for.
    name : str
        In upper case a command of the device, in lower case work of the GPU, of which
        ``popular`` and ``nonpopular`` are the micro-batches.
    cycles : int
        Device cycles (words 8-9 of the completion record).
    seconds : float
        Of the GPU.
    link_bytes : int
        Bytes that the command has moved.
    """

    @property
    def step(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def cycles(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def link_bytes(self) -> int: ...


@dataclass(frozen=True)
class Event:
    """Something with its place on the timeline.

    Parameters
    ----------
    name, lane : str
        What, and on which lane.
    start, duration : float
        Seconds.
    step : int
        Of the training.
    cycles : int
        Of the device; 0 where there are none.
    bytes : int
        Moved over the bus.
    """

    name: str
    lane: str
    start: float
    duration: float
    step: int = 0
    cycles: int = 0
    bytes: int = 0

    @property
    def end(self) -> float:
        """Seconds."""
        return self.start + self.duration


def schedule(
    spans: Iterable[Timed],
    *,
    clock_mhz: float,
    bytes_per_second: float | None = None,
    gpu_seconds: Mapping[str, float] | None = None,
) -> list[Event]:
    """Place everything on the timeline.

    Parameters
    ----------
    spans : iterable of Timed
        In the order in which the GPU did its work; commands in any order within a step.
    clock_mhz : float
        Clock of the device.
    bytes_per_second : float, optional
        What the bus carries. A command takes as long as the slower of device and bus. By default
        the cycles alone count, in which the simulated bus is contained.
    gpu_seconds : mapping, optional
        Time of work by name, instead of the measured one: for example that of a real GPU.

    Returns
    -------
    list of Event
        By start.
    """
    if not clock_mhz > 0:
        raise ValueError(f"the clock must be above 0 MHz, not {clock_mhz}")
    if bytes_per_second is not None and not bytes_per_second > 0:
        raise ValueError(f"the bus must carry more than 0 bytes a second, not {bytes_per_second}")
    times = gpu_seconds or {}
    for name, seconds in times.items():
        if not seconds >= 0:
            raise ValueError(f"the time of {name} must be at least 0 s, not {seconds}")
    items = list(spans)
    lanes = {
        DEVICE: deque(_ring_order([item for item in items if item.name.isupper()])),
        GPU: deque(item for item in items if not item.name.isupper()),
    }
    left: dict[tuple[str, int], int] = defaultdict(int)
    for lane, queue in lanes.items():
        for item in queue:
            left[_done_key(lane, item)] += 1
    ended: dict[tuple[str, int], float] = defaultdict(float)
    free = dict.fromkeys(lanes, 0.0)
    events: list[Event] = []
    while any(lanes.values()):
        progress = False
        for lane, queue in lanes.items():
            while queue and not any(left[need] for need in _needs(lane, queue[0])):
                progress = True
                item = queue.popleft()
                start = max([free[lane], *(ended[need] for need in _needs(lane, item))])
                moved = item.link_bytes / bytes_per_second if bytes_per_second else 0.0
                if lane == DEVICE:
                    duration = max(item.cycles / (clock_mhz * 1e6), moved)
                else:
                    duration = times.get(item.name, item.seconds)
                size = item.link_bytes
                event = Event(item.name, lane, start, duration, item.step, item.cycles, size)
                events.append(event)
                if moved:
                    events.append(Event(item.name, BUS, start, moved, item.step, bytes=size))
                key = _done_key(lane, item)
                left[key] -= 1
                ended[key] = free[lane] = event.end
        if not progress:
            heads = " and ".join(f"{q[0].name} of step {q[0].step}" for q in lanes.values() if q)
            raise ValueError(f"the order of the work makes no sense: {heads} wait for each other")
    return sorted(events, key=lambda event: (event.start, event.lane, event.step))


def summary(events: Sequence[Event]) -> dict[str, Any]:
    """What hides behind what, ready for JSON; all times in seconds.

    Returns
    -------
    dict
        ``seconds``: from the first to the last event. ``serial_seconds``: the same without any
        overlap of device and GPU. ``gpu_busy_seconds``. ``commands``: for each command ``seconds``,
        of which ``hidden_seconds`` while the GPU worked and ``exposed_seconds`` while it did not,
        ``bytes``, and ``behind``: the hidden time by the work that it hid behind.
    """
    work = sorted((event for event in events if event.lane == GPU), key=lambda event: event.start)
    ends = [event.end for event in work]
    commands: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.lane != DEVICE:
            continue
        entry = commands.setdefault(
            event.name,
            {"count": 0, "seconds": 0.0, "hidden_seconds": 0.0, "bytes": 0, "behind": {}},
        )
        entry["count"] += 1
        entry["seconds"] += event.duration
        entry["bytes"] += event.bytes
        at = bisect_right(ends, event.start)
        while at < len(work) and work[at].start < event.end:
            other = work[at]
            at += 1
            common = min(event.end, other.end) - max(event.start, other.start)
            if common > 0:
                entry["hidden_seconds"] += common
                entry["behind"][other.name] = entry["behind"].get(other.name, 0.0) + common
    for entry in commands.values():
        entry["exposed_seconds"] = max(0.0, entry["seconds"] - entry["hidden_seconds"])
    begin = min((event.start for event in events), default=0.0)
    end = max((event.end for event in events), default=0.0)
    return {
        "seconds": end - begin,
        "serial_seconds": sum(event.duration for event in events if event.lane != BUS),
        "gpu_busy_seconds": sum(event.duration for event in work),
        "commands": commands,
    }


def _ring_order(commands: list[Timed]) -> list[Timed]:
    """Commands in the order of the ring (see the module)."""
    by_step: dict[int, list[Timed]] = defaultdict(list)
    for command in commands:
        by_step[command.step].append(command)

    def named(step: int, name: str) -> list[Timed]:
        return [item for item in by_step.get(step, ()) if item.name == name]

    def learning(step: int) -> list[Timed]:
        return [item for item in by_step.get(step, ()) if item.name not in _STEP_COMMANDS]

    steps = sorted(by_step)
    order: list[Timed] = []
    ahead = False
    for position, step in enumerate(steps):
        order += learning(step)
        if not ahead:
            order += named(step, _SPLIT)
        order += named(step, _GATHER)
        # What is learned before the next step decides how it is split.
        following = steps[position + 1 : position + 2]
        ahead = bool(following) and not learning(following[0])
        if ahead:
            order += named(following[0], _SPLIT)
        order += named(step, _SCATTER)
    return order


def _done_key(lane: str, item: Timed) -> tuple[str, int]:
    """What is done when `item` is: others wait for it under this name."""
    return (GPU if lane == GPU else item.name, item.step)


def _needs(lane: str, item: Timed) -> list[tuple[str, int]]:
    """What must be done before `item` begins."""
    step = item.step
    if lane == GPU:
        return [(_SPLIT, step), *([(_GATHER, step)] if item.name == _NONPOPULAR else [])]
    if item.name == _SCATTER:
        return [(GPU, step)]
    if item.name in _STEP_COMMANDS:
        return []
    return [(GPU, step - 1)]
