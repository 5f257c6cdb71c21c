"""The result of a job as pictures and as one self-contained HTML page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

__all__ = ["write_report"]

_ACCENT, _MUTED, _REST = "#d1495b", "#9aa5b1", "#30638e"

_PAGE = jinja2.Template(
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hotline: {{ r.data }} on {{ r.preset }}</title>
<style>
 body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
        color: #1f2933 }
 table { border-collapse: collapse; margin: 1rem 0 }
 th, td { padding: .3rem .8rem; border-bottom: 1px solid #d8dee4; text-align: right }
 th:first-child, td:first-child { text-align: left }
 .good { color: #1a7f37 } .bad { color: #c0262d; font-weight: bold }
 img { max-width: 100% } code { background: #f0f3f6; padding: 0 .2rem }
</style></head><body>
<h1>{{ r.data }} through the Hotline RTL (<code>{{ r.preset }}</code>)</h1>
<p>{{ "{:,}".format(r.samples) }} samples, {{ r.tables }} tables,
{{ "{:,}".format(r.rows) }} rows of {{ r.row_bytes }} bytes, mini-batches of {{ r.batch }}.
The hot table learned from
{{ "{:,}".format(r.learned_samples) }} samples; {{ "{:,}".format(r.split_samples) }} were split,
gathered and scattered back.</p>
<p>Bytes that differ from the golden model, over all memory after every command:
<span class="{{ 'bad' if r.mismatched_bytes else 'good' }}">{{ r.mismatched_bytes }}</span>.</p>
<table><tr><th></th><th>popular samples</th></tr>
<tr><td>this device ({{ r.configuration.policy }})</td>
 <td>{{ "%.2f %%" % (100 * r.popular_share) }}</td></tr>
<tr><td>SRRIP, as published</td><td>{{ "%.2f %%" % (100 * r.popular_share_srrip) }}</td></tr>
<tr><td>LFU oracle</td><td>{{ "%.2f %%" % (100 * r.popular_share_lfu) }}</td></tr></table>
<table><tr><th>command</th><th>runs</th><th>read beats</th><th>write beats</th><th>cycles</th>
<th>efficiency</th></tr>
{% for name, c in r.commands.items() %}<tr><td>{{ name }}</td><td>{{ c.commands }}</td>
<td>{{ "{:,}".format(c.read_beats) }}</td><td>{{ "{:,}".format(c.write_beats) }}</td>
<td>{{ "{:,}".format(c.cycles) }}</td><td>{{ "%.3f" % c.efficiency }}</td></tr>
{% endfor %}</table>
<p>{{ "{:,}".format(r.rows_gathered) }} rows gathered; {{ "{:,}".format(r.rows_shared) }} needs
shared a row that was there already; {{ r.dedup_replacements }} replacements in the store of seen
keys. Hit rate {{ "%.1f %%" % (100 * r.hit_rate) }}. Efficiency: the fewest beats the bus needs for
these rows and lists, divided by the cycles that the device took
{%- if r.simulation %}, with reads answered after {{ r.simulation.read_latency }} cycles
{%- endif %}.</p>
{% for name, picture in pictures.items() %}
<h2>{{ name }}</h2><img alt="{{ name }}" src="data:image/png;base64,{{ picture }}">{% endfor %}
<p>Configuration hash <code>{{ r.config_hash }}</code>, seed {{ r.seed }},
{% if r.simulation %}{{ "{:,}".format(r.simulation.cycles) }} cycles simulated
{%- else %}board {{ r.board.name }}{% endif %}.</p>
</body></html>
"""
)


def write_report(result: dict[str, Any], folder: Path) -> Path:
    """Write ``report.html`` and its pictures as PNG files to `folder`; returns the page.

    Parameters
    ----------
    result : dict
        What :func:`hotline.host.job.run_job` returns, and `preset`, `configuration`,
        `config_hash`, and `simulation` or `board`.
    folder : Path
        Exists.
    """
    drawings: dict[str, tuple[str, Callable[[Any, dict[str, Any]], None]]] = {
        "Popular samples": ("popular_share", _draw_shares),
        "Hit rate by table": ("hit_rate", _draw_hit_rates),
        "Bus efficiency by command": ("efficiency", _draw_efficiency),
    }
    pictures = {}
    for title, (name, draw) in drawings.items():
        figure, axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
        draw(axes, result)
        axes.spines[["top", "right"]].set_visible(False)
        buffer = io.BytesIO()
        # No date and no version in the file: the same result gives the same picture.
        figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        pyplot.close(figure)
        (folder / f"{name}.png").write_bytes(buffer.getvalue())
        pictures[title] = base64.b64encode(buffer.getvalue()).decode()
    page = folder / "report.html"
    page.write_text(_PAGE.render(r=result, pictures=pictures), encoding="utf-8")
    return page


def _draw_shares(axes: Any, result: dict[str, Any]) -> None:
    names = ("SRRIP (published)", "this device", "LFU oracle")
    keys = ("popular_share_srrip", "popular_share", "popular_share_lfu")
    shares = [100 * result[key] for key in keys]
    bars = axes.barh(names, shares, color=(_MUTED, _ACCENT, _MUTED))
    axes.bar_label(bars, fmt="%.1f %%", padding=3)
    axes.set_xlabel("samples whose keys are all hot (%)")
    axes.set_xlim(0, max(1.0, 1.15 * max(shares)))


def _draw_hit_rates(axes: Any, result: dict[str, Any]) -> None:
    rates = result["hit_rate_by_table"]
    axes.bar(list(rates), [100 * rate for rate in rates.values()], color=_REST)
    axes.set_ylabel("keys that are hot (%)")
    axes.set_ylim(0, 100)
    axes.tick_params(axis="x", labelrotation=60 if len(rates) > 12 else 0)


def _draw_efficiency(axes: Any, result: dict[str, Any]) -> None:
    commands = result["commands"]
    bars = axes.barh(list(commands), [c["efficiency"] for c in commands.values()], color=_REST)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set_xlabel("fewest beats / cycles")
    axes.set_xlim(0, 1.1)
