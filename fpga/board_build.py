"""``hotline synth --board``: a bitstream, with its report on screen and on disk."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from hotline.fpga.bitstream import build_bitstream
from hotline.fpga.boards import Board
from hotline.fpga.build_report import save_baseline, show
from hotline.gen.config import Config

__all__ = ["run"]


def run(
    config: Config,
    name: str,
    board: Board,
    folder: Path,
    seeds: int,
    json_file: Path | None,
    update_baseline: bool = False,
) -> None:
    """Build a bitstream in `folder`, show the report, and write it to `json_file`.

    With `update_baseline` later builds are compared with this one.

    Raises
    ------
    FlowError, ValueError
        See :func:`~hotline.fpga.bitstream.build_bitstream`.
    """
    console = Console()
    with console.status("synthesis") as status:
        build = build_bitstream(config, name, board, folder, seeds, status.update)
    show(build.report, console)
    spent = ", ".join(f"{step} {seconds:.0f} s" for step, seconds in build.seconds.items())
    console.print(
        f"{board.title}: {build.bitstream} (seed {build.seed}; {spent})",
        highlight=False,
        soft_wrap=True,
    )
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        result = {"board": board.name, **build.as_dict()}
        json_file.write_text(json.dumps(result, indent=2) + "\n")
    if update_baseline:
        stored = save_baseline(build.report)
        console.print(f"stored as baseline: {stored}", highlight=False, soft_wrap=True)
