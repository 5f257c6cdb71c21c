"""The result of a bench on the screen."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from hotline.host.bench_tables import (
    SWEEPS,
    TextTable,
    arbiter_table,
    line_table,
    missed,
    peer_table,
    reaches,
    sweep_table,
)

__all__ = ["show"]

_STYLES = {True: "green", False: "red", None: ""}


def show(console: Console, result: dict[str, Any]) -> None:
    """Print lines, sweeps and peers, as far as they were measured."""
    for traffic in dict.fromkeys(line["traffic"] for line in result["lines"]):
        lines = [line for line in result["lines"] if line["traffic"] == traffic]
        styles = [_STYLES[reaches(line)] for line in lines]
        console.print(_table(traffic, line_table(lines), styles))
    for section, (title, _, _) in SWEEPS.items():
        if result[section]:
            table = sweep_table(section, result[section])
            console.print(_table(f"efficiency by {title}", table))
    if result["arbiter"]:
        table = arbiter_table(result["arbiter"])
        console.print(_table("keys a cycle of the hot table (model), 16 lanes", table))
    if result["peers"]:
        title = "a CPU's thread, and the device at each clock"
        console.print(_table(title, peer_table(result)))
    if sentence := missed(result["lines"]):
        console.print(sentence)


def _table(title: str, text: TextTable, styles: list[str] | None = None) -> Table:
    table = Table(title=title, title_justify="left")
    for number, head in enumerate(text.heads):
        table.add_column(head, justify="left" if number < text.left else "right")
    for number, row in enumerate(text.rows):
        table.add_row(*row, style=styles[number] if styles else None)
    return table
