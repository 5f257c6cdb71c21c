"""A timeline as a picture, and as a trace that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotline.host.timeline import BUS, DEVICE, GPU, Event, summary

__all__ = ["chrome_trace", "write_picture", "write_trace"]

_MICRO = 1e6
_LANES = (GPU, DEVICE, BUS)
_COLOURS = {
    "popular": "#3d7ea6",
    "nonpopular": "#7fb7d4",
    "SPLIT": "#e8a33d",
    "GATHER": "#c8553d",
    "SCATTER": "#8a3b2a",
    "LEARN": "#5c8a4a",
    "COMMIT": "#86b06f",
    "FILL": "#a98cc0",
    "BACK": "#75549b",
}
_OTHER = "#9aa0a6"


def chrome_trace(events: Sequence[Event], process: str = "hotline", pid: int = 1) -> dict[str, Any]:
    """The trace event format: complete events in microseconds, a thread for each lane.

    Parameters
    ----------
    events : sequence of Event
        The timeline.
    process, pid : str, int
        Name and number of the process that they are shown as, such as a rank. The lists
        ``traceEvents`` of several ranks may be put together.
    """
    lanes = [*_LANES, *sorted({event.lane for event in events} - set(_LANES))]
    numbers = {lane: number for number, lane in enumerate(lanes, 1)}

    def about(kind: str, tid: int, **values: Any) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": values}

    entries = [about("process_name", 0, name=process)]
    for lane in lanes:
        if any(event.lane == lane for event in events):
            entries.append(about("thread_name", numbers[lane], name=lane))
            entries.append(about("thread_sort_index", numbers[lane], sort_index=numbers[lane]))
    for event in events:
        values = {"step": event.step}
        values |= {"cycles": event.cycles} if event.cycles else {}
        values |= {"bytes": event.bytes} if event.bytes else {}
        entries.append(
            {
                "ph": "X",
                "name": event.name,
                "cat": event.lane,
                "pid": pid,
                "tid": numbers[event.lane],
                "ts": event.start * _MICRO,
                "dur": event.duration * _MICRO,
                "args": values,
            }
        )
    return {"traceEvents": entries, "displayTimeUnit": "ns", "otherData": summary(events)}


def write_trace(events: Sequence[Event], path: Path, process: str = "hotline") -> None:
    """Write :func:`chrome_trace` to a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(json.dumps(chrome_trace(events, process)) + "\n")
    draft.replace(path)


def write_picture(
    events: Sequence[Event], path: Path, *, first_step: int | None = None, steps: int = 4
) -> None:
    """Draw some steps, with the time that each command is hidden and exposed over all of them.

    Parameters
    ----------
    events : sequence of Event
        The timeline.
    path : Path
        ``.png`` or ``.svg``.
    first_step : int, optional
        Of the steps that are drawn; by default those in the middle.
    steps : int
        How many.
    """
    if path.suffix not in (".png", ".svg"):
        raise ValueError(f"the name of a picture must end in .png or .svg, not {path.name!r}")
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    numbers = sorted({event.step for event in events})
    if first_step is None:
        first_step = numbers[max(0, (len(numbers) - steps) // 2)] if numbers else 0
    chosen = [event for event in events if first_step <= event.step < first_step + steps]
    begin = min((event.start for event in chosen), default=0.0)
    figure = Figure(figsize=(11, 5), layout="constrained")
    lanes_axes, sums_axes = figure.subplots(2, 1, height_ratios=(3, 2))
    lanes = [lane for lane in _LANES if any(event.lane == lane for event in chosen)]
    for row, lane in enumerate(reversed(lanes)):
        mine = [event for event in chosen if event.lane == lane]
        lanes_axes.broken_barh(
            [((event.start - begin) * _MICRO, event.duration * _MICRO) for event in mine],
            (row - 0.4, 0.8),
            facecolors=[_COLOURS.get(event.name, _OTHER) for event in mine],
            edgecolor="white",
            linewidth=0.5,
        )
    lanes_axes.set_yticks(range(len(lanes)), list(reversed(lanes)))
    lanes_axes.set_xlabel(f"microseconds, steps {first_step} to {first_step + steps - 1}")
    names = list(dict.fromkeys(event.name for event in chosen))
    lanes_axes.legend(
        handles=[Patch(color=_COLOURS.get(name, _OTHER), label=name) for name in names],
        loc="center left",
        bbox_to_anchor=(1, 0.5),
        frameon=False,
    )
    _draw_sums(sums_axes, summary(events)["commands"])
    for axes in (lanes_axes, sums_axes):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.stem}.part{path.suffix}")
    # No date and no version in the file: the same timeline gives the same picture.
    metadata = {"Software": None} if path.suffix == ".png" else {"Date": None}
    figure.savefig(draft, dpi=110, metadata=metadata)
    draft.replace(path)


def _draw_sums(axes: Any, commands: dict[str, dict[str, Any]]) -> None:
    names = list(reversed(commands))
    hidden = [commands[name]["hidden_seconds"] * 1e3 for name in names]
    exposed = [commands[name]["exposed_seconds"] * 1e3 for name in names]
    axes.barh(names, hidden, color="#5c8a4a", label="hidden behind the GPU")
    axes.barh(names, exposed, left=hidden, color="#c8553d", label="exposed")
    axes.set_xlabel("milliseconds over all steps")
    if names:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
