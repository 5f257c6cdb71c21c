"""The page of results, and the table of the README, from what the bench measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hotline.host.bench_arbiter import LANE_QUEUE
from hotline.host.bench_plots import write_plots
from hotline.host.bench_tables import (
    TextTable,
    arbiter_table,
    clock_table,
    depth_table,
    line_table,
    missed,
    peer_table,
    sweep_table,
)
from hotline.host.bench_traffic import WorstTraffic

__all__ = ["page", "read_clocks", "read_results", "readme_table", "write_page"]

_HEAD = """# Results

Measured by `make bench` in simulation of the Verilog; written by `make results` from the JSON files
in `docs/bench`. A test keeps page and files in step.

The memory accepts AR and AW every cycle, answers each read {read_latency} cycles after its AR,
moves a beat a cycle in each direction, and sends B {write_latency} cycles after the last W beat.

*Efficiency* = fewest beats / cycles. Fewest beats: the larger of R and W beats, counting each beat
that a row or region touches. Cycles: words 8-9 of the completion record. *Of bound*: the fewest
cycles that bus and hot table allow / cycles.

What limited a command is the resource that was used most. *Read bus*, *write bus*: beats / cycles;
from 0.9 on the busier one counts in any case. *Banks*: the fewest cycles in which the hot table can
do its part, or BANK_STALLS if they are more, / cycles. *Credits*: bursts in flight (bursts a cycle,
times the cycles that one is under way) / bursts that may be. *Latency*: no use is above 0.75.
"""

_WORST = """
Bounds of the worst case. Look-ups: `lanes` keys a cycle where there are up to two lanes, which own
a port of each bank; with more lanes two different keys a cycle and bank, equal keys together. Store
of seen keys: one new key a cycle and bank. Updates: one key a cycle and bank, after the look-ups of
the group; an update that needs what an earlier one has not decided yet waits for it, so equal keys
take six cycles each, or three where there are more than two lanes. Equal keys come in bags of a
whole number of groups, all others are one-hot. The row of the one cold key has no successor, so
it is gathered at the end, which adds the latency of a read.
"""

_CLOCKS = """
## Place and route

Blocks alone on an LFE5U-85F, speed grade 6, between registers on all ports (a ring that is counted
here, too), by `hotline synth --preset ecp5 --block BLOCK --seeds 5 --json FILE`; yosys and nextpnr
from PyPI. The first line is the whole accelerator.
"""

_ARBITER = """
Keys a cycle of the hot table alone, {lanes} lanes, by banks; in brackets a model of the crossbar in
NumPy. Each lane has a queue of {depth} keys, and only the heads of the queues ask; a bank takes two
different keys a cycle, and equal keys at the heads are one request. So the bound is {lanes} keys a
cycle, for equal keys as well, and 2 for different keys of one bank. Below it the published curve:
one queue of which all entries ask, one request a cycle and bank.
"""

_PEERS = """
One thread of the machine that ran the simulation. The splitters write both micro-batches, but no
slots and no list of rows. Device: million items a second at the clock, and the ratio to the peer.
"""

#: Sweeps: title, and what stands before the table.
_SWEEPS = {
    "latency": ("Memory latency", "Efficiency by read latency of the memory, in cycles:"),
    "row_bytes": (
        "Row size",
        "Efficiency by bytes of a row, random rows; unaligned: tables begin 4 bytes after a beat:",
    ),
    "outstanding": (
        "Outstanding reads",
        "Efficiency of a GATHER of 64-byte rows on a 64-bit bus, by outstanding reads (down) and\n"
        "read latency in cycles (across), on devices with a small hot table:",
    ),
}

#: Lines of the README's table: text, and commands.
_README = (
    ("SPLIT, 4096 x 26 keys, 100 / 75 / 25 % popular",
     ("SPLIT, 100 % popular", "SPLIT, 75 % popular", "SPLIT, 25 % popular")),
    ("SPLIT with GATHER, 75 / 25 % popular",
     ("SPLIT + GATHER, 75 % popular", "SPLIT + GATHER, 25 % popular")),
    ("SPLIT with GATHER_HOT, 75 / 25 % popular",
     ("SPLIT + GATHER_HOT, 75 % popular", "SPLIT + GATHER_HOT, 25 % popular")),
    ("GATHER, 10 000 rows of 64 bytes / of 256 bytes, unaligned",
     ("GATHER, 64-byte rows", "GATHER, 256-byte rows, unaligned")),
    ("SCATTER, 10 000 rows of 64 bytes", ("SCATTER, 64-byte rows",)),
    ("SCATTER with ADD, 10 000 rows of 64 bytes", ("SCATTER ADD, 64-byte rows",)),
    ("FILL / BACK, 10 000 rows of 64 bytes", ("FILL, 64-byte rows", "BACK, 64-byte rows")),
    ("SPLIT with POOL, 214 indices a sample / weighted",
     ("SPLIT + POOL, MLPerf bags", "SPLIT + POOL, MLPerf bags, weighted")),
    ("LEARN, 4096 x 26 keys", ("LEARN",)),
)  # fmt: skip


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The results in the JSON files of a folder, in the order of the file names.

    Raises
    ------
    ValueError
        There is none, or one that is not what ``hotline bench --json`` writes.
    """
    results = []
    for path in sorted(folder.glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            _ = result["lines"], result["clocks"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} is not what `hotline bench --json` writes") from None
        results.append({**result, "file": path.stem})
    if not results:
        raise ValueError(f"there are no JSON files in {str(folder)!r}")
    return results


def read_clocks(folder: Path) -> list[dict[str, Any]]:
    """What `hotline synth --json` wrote below a folder, in ``synth``; the whole device first."""
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("synth/*.json")]
    return sorted(reports, key=lambda report: -report["LUT4"])


def write_page(folder: Path, target: Path) -> list[Path]:
    """Write the page on the results in `folder`, and their pictures beside them; returns all.

    Raises
    ------
    ValueError
        The results are not in or below the folder of the page, which links to the pictures.
    """
    results = read_results(folder)
    text = page(results, _below(folder, target.parent), read_clocks(folder))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    pictures = [path for r in results for path in write_plots(r, folder, r["file"])]
    return [target, *pictures]


def _below(folder: Path, base: Path) -> str:
    try:
        return folder.resolve().relative_to(base.resolve()).as_posix()
    except ValueError:
        raise ValueError(f"{str(folder)!r} must be below the folder of the page") from None


def page(
    results: Sequence[dict[str, Any]], images: str, clocks: Sequence[dict[str, Any]] = ()
) -> str:
    """The page as MyST text; `images` is the folder of the pictures, as seen from the page."""
    parts = [_HEAD.format(**results[0]["memory"])]
    parts += [part for result in results for part in _chapter(result, images)]
    if clocks:
        parts += [_CLOCKS, _markdown(clock_table(clocks))]
    return "\n".join(parts) + "\n"


def readme_table(result: dict[str, Any]) -> str:
    """The table of the README: what was measured on the last log and on random rows."""
    log = result["logs"][-1]["name"]
    found = {
        line["command"]: line
        for line in result["lines"]
        if line["traffic"] in (log, f"random rows, tables of {log}", "random rows")
        and line["aim"] is not None
    }
    rows = []
    for text, commands in _README:
        if all(command in found for command in commands):
            lines = [found[command] for command in commands]
            values = " / ".join(f"{line['efficiency']:.3f}" for line in lines)
            aims = dict.fromkeys(f"{line['aim']:.2f}" for line in lines)
            rows.append((text, values, " / ".join(aims)))
    return _markdown(TextTable(("command", "efficiency", "aim"), rows))


def _chapter(result: dict[str, Any], images: str) -> Iterable[str]:
    """All about one result."""
    config = result["configuration"]
    yield f"\n## `{result['preset']}`\n"
    yield (
        f"Lanes: {config['lanes']}. Bus: {config['data_width']} bits. Hot table: "
        f"{config['sets'] * config['ways']:,} entries, banks: {config['banks']}. Outstanding "
        f"reads: {config['read_outstanding']}.\nConfiguration `{result['config_hash']}`, seed "
        f"{result['seed']}."
    )
    if result["quick"]:
        yield "Measured with `--quick`: there are no aims."
    yield ""
    for log in result["logs"]:
        yield (
            f"- {log['name']}: {log['samples']:,} samples, {log['tables']} tables, "
            f"{log['rows']:,} rows, {log['hot_keys']:,} hot; mini-batches of "
            f"{log['mini_batch']:,} samples"
        )
    if result["lines"]:
        yield f"\n### Commands\n\n{missed(result['lines'])}"
    for traffic in dict.fromkeys(line["traffic"] for line in result["lines"]):
        if traffic == WorstTraffic.name:
            yield _WORST.rstrip()
        yield f"\n**{traffic}**\n"
        yield _markdown(line_table([r for r in result["lines"] if r["traffic"] == traffic]))
    for section, (title, text) in _SWEEPS.items():
        if result[section]:
            yield f"\n### {title}\n\n{text}\n"
            yield _markdown(sweep_table(section, result[section]))
            yield _picture(result, images, section)
    if result["arbiter"]:
        lanes = result["arbiter"][0]["lanes"]
        yield "\n### Banks and queues\n" + _ARBITER.format(lanes=lanes, depth=LANE_QUEUE)
        yield _markdown(arbiter_table(result["arbiter"]))
        yield "\nThe model by depth of a lane's queue, random keys:\n"
        yield _markdown(depth_table(result["arbiter"]))
        yield _picture(result, images, "arbiter")
    if result["peers"]:
        yield f"\n### Beside a CPU\n{_PEERS}"
        yield _markdown(peer_table(result))


def _picture(result: dict[str, Any], images: str, section: str) -> str:
    return f"\n![{section}]({images}/{result['file']}-{section}.png)"


def _markdown(table: TextTable) -> str:
    columns = range(len(table.heads))
    rule = "|".join("---" if number < table.left else "--:" for number in columns)
    lines = [f"| {' | '.join(table.heads)} |", f"|{rule}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in table.rows)])
