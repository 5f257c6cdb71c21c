"""Sweeps of a bench as pictures, each of which knows the figures that it was drawn from."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot

from hotline.host.bench_arbiter import LANE_QUEUE, PUBLISHED, QUEUES, queue_rate
from hotline.host.bench_sweeps import DEPTHS

__all__ = ["PLOTS", "source_of", "write_plots"]

_COLOURS = ("#d1495b", "#30638e", "#edae49", "#00798c", "#9aa5b1", "#5c4d7d")


def source_of(records: list[dict[str, Any]]) -> str:
    """Hash of the records that a picture shows; the picture carries it as `Source`."""
    return hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()


def write_plots(result: dict[str, Any], folder: Path, prefix: str) -> list[Path]:
    """Write ``<prefix>-<section>.png`` for each sweep that was measured; returns the files.

    Parameters
    ----------
    result : dict
        Of a bench.
    folder : Path
        Is made if it is not there.
    prefix : str
        Of the file names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for section, draw in PLOTS.items():
        records = result[section]
        if not records:
            continue
        figure = pyplot.figure(figsize=(8, 3.6), layout="constrained")
        draw(figure, records)
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        buffer = io.BytesIO()
        # No version of the drawing program: only the figures count.
        metadata = {"Software": None, "Source": source_of(records)}
        figure.savefig(buffer, format="png", dpi=90, metadata=metadata)
        pyplot.close(figure)
        written.append(folder / f"{prefix}-{section}.png")
        written[-1].write_bytes(buffer.getvalue())
    return written


def _draw_latency(figure: Any, records: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    _curves(axes, records, "command", "latency")
    axes.set_xlabel("read latency of the memory (cycles)")
    axes.set_xscale("log")
    _ticks(axes, sorted({record["latency"] for record in records}))


def _draw_row_bytes(figure: Any, records: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    _curves(axes, records, "command", "row_bytes")
    axes.set_xlabel("bytes of a row")
    axes.set_xscale("log", base=2)
    _ticks(axes, sorted({record["row_bytes"] for record in records}))


def _draw_outstanding(figure: Any, records: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    _curves(axes, records, "read_outstanding", "latency", "{} outstanding reads")
    axes.set_xlabel("read latency of the memory (cycles), GATHER of 64-byte rows, 64-bit bus")
    axes.set_xscale("log")
    _ticks(axes, sorted({record["latency"] for record in records}))


def _curves(
    axes: Any, records: list[dict[str, Any]], by: str, over: str, label: str = "{}"
) -> None:
    """Efficiency over `over`, a curve for each value of `by`."""
    for colour, name in zip(
        _COLOURS, dict.fromkeys(record[by] for record in records), strict=False
    ):
        points = sorted((r[over], r["efficiency"]) for r in records if r[by] == name)
        places, values = zip(*points, strict=True)
        axes.plot(places, values, "o-", color=colour, label=label.format(name), markersize=4)
    axes.set_ylabel("fewest beats / cycles")
    axes.set_ylim(0, 1.05)
    axes.legend(frameon=False, fontsize=8)


def _ticks(axes: Any, places: list[int]) -> None:
    axes.set_xticks(places, [str(place) for place in places])
    axes.minorticks_off()


def _draw_arbiter(figure: Any, records: list[dict[str, Any]]) -> None:
    """Left: the published curve, its model, and the hot table. Right: depth of a lane's queue."""
    left, right = figure.subplots(1, 2)
    rng = np.random.default_rng(1)
    lanes = records[0]["lanes"]
    random = {record["banks"]: record for record in records if record["traffic"] == "random"}
    for colour, (banks, curve) in zip(_COLOURS, PUBLISHED.items(), strict=False):
        left.plot(QUEUES, curve, "-", color=colour, label=f"{banks} banks")
        model = [queue_rate(banks, queue, rng, replicas=4) for queue in QUEUES]
        left.plot(QUEUES, model, "x", color=colour, markersize=5)
        if banks in random:
            left.plot([lanes], [random[banks]["per_cycle"]], "o", color=colour)
            right.plot(DEPTHS, random[banks]["model_by_depth"], "-", color=colour)
            right.plot([LANE_QUEUE], [random[banks]["per_cycle"]], "o", color=colour)
    left.set_xlabel("entries of the queue\nline: published, x: model, dot: heads of 16 lanes, RTL")
    left.set_ylabel("requests a cycle")
    left.set_xscale("log", base=2)
    left.legend(frameon=False, fontsize=8)
    right.set_xlabel(f"keys in the queue of a lane, {lanes} lanes\nline: model, dot: RTL")
    right.set_xscale("log", base=2)
    right.set_ylim(0, 1.05 * lanes)
    _ticks(right, list(DEPTHS))


#: Section of the result, and what draws it on a figure.
PLOTS: dict[str, Callable[[Any, list[dict[str, Any]]], None]] = {
    "latency": _draw_latency,
    "row_bytes": _draw_row_bytes,
    "outstanding": _draw_outstanding,
    "arbiter": _draw_arbiter,
}
