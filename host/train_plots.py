"""The result of a training run as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot

__all__ = ["write_plots"]

_ACCENT, _MUTED, _REST = "#d1495b", "#9aa5b1", "#30638e"
#: Steps over which a curve is smoothed.
_WINDOW = 20


def write_plots(result: dict[str, Any], folder: Path) -> list[Path]:
    """Write ``loss.png``, ``popular.png`` and ``links.png`` to `folder`, which is made.

    Parameters
    ----------
    result : dict
        What :func:`hotline.host.training_loop.summary` returns.
    folder : Path
        Where to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawings = {"loss": _draw_loss, "popular": _draw_popular, "links": _draw_links}
    written = []
    for name, draw in drawings.items():
        figure, axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
        draw(axes, result)
        axes.spines[["top", "right"]].set_visible(False)
        written.append(folder / f"{name}.png")
        # No date and no version in the file: the same result gives the same picture.
        figure.savefig(written[-1], dpi=110, metadata={"Software": None})
        pyplot.close(figure)
    return written


def _curve(axes: Any, values: np.ndarray, color: str) -> None:
    steps = np.arange(1, len(values) + 1)
    axes.plot(steps, values, color=_MUTED, linewidth=0.8, label="each step")
    window = min(_WINDOW, len(values))
    if window > 1:
        smooth = np.convolve(values, np.full(window, 1 / window), "valid")
        axes.plot(steps[window - 1 :], smooth, color=color, label=f"mean of {window} steps")
    axes.set_xlabel("step")
    axes.legend(frameon=False)


def _draw_loss(axes: Any, result: dict[str, Any]) -> None:
    _curve(axes, np.array(result["losses"]), _ACCENT)
    axes.set_ylabel("mean loss (nats)")


def _draw_popular(axes: Any, result: dict[str, Any]) -> None:
    _curve(axes, 100 * np.array(result["popular_shares"]), _REST)
    axes.set_ylabel("popular samples (%)")
    axes.set_ylim(bottom=0)


def _draw_links(axes: Any, result: dict[str, Any]) -> None:
    sizes = result["device"]["link_bytes"]
    names = [name.replace("_", " ") for name in sizes]
    values = [size / 1e6 for size in sizes.values()]
    without = result["device"]["plain_bytes"] / 1e6
    bars = axes.barh(
        [*names, "rows, if none were hot"],
        [*values, without],
        color=[_REST] * len(names) + [_MUTED],
    )
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set_xlabel("MB")
    axes.set_xlim(0, 1.15 * max(1e-9, *values, without))
