"""The result of a bench as tables of text, for the screen and for the page of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotline.host.bench_arbiter import PUBLISHED, QUEUES
from hotline.host.bench_peers import compare
from hotline.host.bench_sweeps import DEPTHS

__all__ = [
    "SWEEPS",
    "TextTable",
    "arbiter_table",
    "clock_table",
    "depth_table",
    "line_table",
    "missed",
    "peer_table",
    "reaches",
    "sweep_table",
]

#: Sections that are sweeps: title, what the curves are, and what runs along them.
SWEEPS = {
    "latency": ("read latency of the memory (cycles)", "command", "latency"),
    "row_bytes": ("bytes of a row", "command", "row_bytes"),
    "outstanding": ("outstanding reads and read latency (cycles)", "read_outstanding", "latency"),
}


@dataclass(frozen=True)
class TextTable:
    """Heads and rows of text; the first `left` columns stand to the left."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


def reaches(line: dict[str, Any]) -> bool | None:
    """Whether a line reaches its aims; None if it has none."""
    pairs = (("efficiency", "aim"), ("per_cycle", "per_cycle_aim"))
    reached = [line[value] >= line[aim] for value, aim in pairs if line[aim] is not None]
    return all(reached) if reached else None


def missed(lines: Sequence[dict[str, Any]]) -> str:
    """A sentence: how many lines reach their aims, and which do not. Empty if none has an aim."""
    aimed = [line for line in lines if reaches(line) is not None]
    if not aimed:
        return ""
    names = [
        f"{line['command']} ({line['traffic']}), limited by {line['limited_by']}"
        for line in aimed
        if not reaches(line)
    ]
    sentence = f"{len(aimed) - len(names)} of {len(aimed)} lines with an aim reach it."
    return sentence + (f" Not: {'; '.join(names)}." if names else "")


def clock_table(reports: Sequence[dict[str, Any]]) -> TextTable:
    """What ``hotline synth --json`` says of blocks: cells, and clocks by seed."""
    cells = [name for name, value in reports[0].items() if isinstance(value, int)]
    heads = ("block", *cells, "MHz (median)", "MHz by seed")
    rows = [
        (
            report["name"],
            *(f"{report[cell]:,}" for cell in cells),
            f"{report['fmax_mhz_median']:.1f}",
            ", ".join(f"{clock:.1f}" for clock in report["fmax_mhz"].values()),
        )
        for report in reports
    ]
    return TextTable(heads, rows)


def line_table(lines: Sequence[dict[str, Any]]) -> TextTable:
    """Commands on one traffic."""
    heads = (
        "command", "beats", "cycles", "efficiency", "aim", "limited by", "a cycle", "of bound",
    )  # fmt: skip
    rows = []
    for line in lines:
        beats, rate = max(line["read_beats"], line["write_beats"]), line["per_cycle_aim"]
        rows.append(
            (
                line["command"],
                f"{beats:,}",
                f"{line['cycles']:,}",
                f"{line['efficiency']:.3f}" if beats else "",
                "" if line["aim"] is None else f"{line['aim']:.2f}",
                line["limited_by"],
                f"{line['per_cycle']:.4f} {line['unit']}"
                + ("" if rate is None else f" (aim {rate})"),
                f"{line['of_bound']:.3f}",
            )
        )
    return TextTable(heads, rows)


def sweep_table(section: str, records: Sequence[dict[str, Any]]) -> TextTable:
    """Efficiency: a row a curve, a column a point."""
    _, by, over = SWEEPS[section]
    places = sorted({record[over] for record in records})
    rows = []
    for name in dict.fromkeys(record[by] for record in records):
        found = {r[over]: r["efficiency"] for r in records if r[by] == name}
        rows.append((str(name), *(f"{found[p]:.3f}" if p in found else "" for p in places)))
    return TextTable(("", *map(str, places)), rows)


def arbiter_table(records: Sequence[dict[str, Any]]) -> TextTable:
    """Keys a cycle by traffic and banks, the model in brackets; the published curve below."""
    lanes, banks = records[0]["lanes"], sorted({record["banks"] for record in records})
    rows = []
    for traffic in dict.fromkeys(record["traffic"] for record in records):
        found = {record["banks"]: record for record in records if record["traffic"] == traffic}
        cells = (f"{found[n]['per_cycle']:.2f} ({found[n]['model']:.2f})" for n in banks)
        rows.append((traffic, *cells))
    for queue in (lanes, 512):
        curve = (f"{PUBLISHED[n][QUEUES.index(queue)]:.2f}" for n in banks)
        rows.append((f"published, queue of {queue}, random", *curve))
    return TextTable(("keys", *(f"{count} banks" for count in banks)), rows)


def depth_table(records: Sequence[dict[str, Any]]) -> TextTable:
    """Keys a cycle of the model by banks and depth of a lane's queue."""
    rows = [
        (f"{record['banks']} banks", *(f"{rate:.2f}" for rate in record["model_by_depth"]))
        for record in records
        if "model_by_depth" in record
    ]
    return TextTable(("", *map(str, DEPTHS)), rows)


def peer_table(result: dict[str, Any]) -> TextTable:
    """CPU peers, and the device at each clock: million items a second, and the ratio."""
    clocks = result["clocks"]
    rows = []
    for peer in compare(result):
        device, ratio = peer["device"], peer["ratio"]
        cells = (f"{device[n] / 1e6:.2f} ({ratio[n]:.2f} x)" if device else "" for n in clocks)
        rate = f"{peer['per_second'] / 1e6:.2f} {peer['unit']}"
        rows.append((peer["peer"], peer["command"], peer["traffic"], rate, *cells))
    heads = (f"{mhz:g} MHz ({name})" for name, mhz in clocks.items())
    return TextTable(("peer", "command", "traffic", "million a second", *heads), rows, 3)
