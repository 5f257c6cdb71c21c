"""The command line, ``hotline``."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from hotline.fpga.boards import BOARDS, board
from hotline.gen.blocks import BLOCKS, TOP, make_block
from hotline.gen.cli_options import (
    DEFAULT_PRESET,
    DEFAULT_SAMPLES,
    MISMATCH,
    WRONG_INPUT,
    ConfigOption,
    PresetOption,
    board_preset,
    configuration,
    run_board,
    sample_limit,
)
from hotline.gen.cli_train import train_command
from hotline.gen.config import Config
from hotline.gen.presets import PRESETS

__all__ = ["app", "main"]

_DEFAULT_BATCH = 1024

app = typer.Typer(
    help="Hotline: an accelerator for recommendation-model training.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command("generate")
def generate_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    block: Annotated[str, typer.Option("--block", "-b", help=f"One of {', '.join(BLOCKS)}.")] = TOP,
) -> None:
    """Write Verilog, and the files that go with it."""
    config, name = configuration(preset_name, config_file)
    from hotline.gen.export import generate

    console = Console()
    with console.status(f"generating {block} of {name}"):
        written = generate(config, block, output)
    for path in written:
        console.print(f"{path}  {path.stat().st_size:,} bytes", highlight=False, soft_wrap=True)


@app.command("presets")
def presets_command() -> None:
    """Show the named configurations."""
    table = Table()
    table.add_column("parameter")
    for name in PRESETS:
        table.add_column(name, justify="right")
    for parameter in Config.__dataclass_fields__:
        values = (getattr(config, parameter) for config in PRESETS.values())
        table.add_row(parameter, *(_text(value) for value in values))
    table.add_section()
    table.add_row("entries", *(f"{config.slots:,}" for config in PRESETS.values()))
    table.add_row("hash", *(f"{config.config_hash:08x}" for config in PRESETS.values()))
    Console().print(table)


@app.command("run")
def run_command(
    data: Annotated[
        str, typer.Option(help="Click log: ml-100k, criteo:FILE, avazu:FILE, synthetic:K, ...")
    ] = "ml-100k",
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    samples: Annotated[
        str, typer.Option(help="At most so many samples, or 'all'.")
    ] = DEFAULT_SAMPLES,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the result.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the report and the pictures.")
    ] = Path("hotline-run"),
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Samples of a mini-batch; by default {_DEFAULT_BATCH}, or what suits the "
            "memory of the board.",
        ),
    ] = None,
    learn_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the mini-batches to learn from.")
    ] = 0.3,
    row_bytes: Annotated[int, typer.Option(min=4, help="Bytes of an embedding row.")] = 64,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Take row numbers modulo this at most.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is random.")] = 1,
    waves: Annotated[Path | None, typer.Option(help="Waveform file, .vcd or .fst.")] = None,
    backend: Annotated[
        str, typer.Option(help="Device: verilator (the RTL) or serial (a board).")
    ] = "verilator",
    port: Annotated[
        str | None, typer.Option(help="Serial port of the board, such as /dev/ttyUSB0.")
    ] = None,
    board_name: Annotated[
        str | None, typer.Option("--board", help=f"One of {', '.join(BOARDS)}.")
    ] = None,
    baud: Annotated[
        int | None, typer.Option(min=1, help="Bits a second, if not those of the board.")
    ] = None,
) -> None:
    """Run a click log through the simulated RTL or a board, checked byte by byte."""
    chosen = run_board(backend, port, board_name, baud, batch is None)
    if chosen is not None and waves is not None:
        raise ValueError("--waves is for the simulated RTL: it excludes --backend serial")
    default = DEFAULT_PRESET if chosen is None else board_preset(chosen.name)
    config, name = configuration(preset_name, config_file, default)
    from hotline.host.job import JobOptions
    from hotline.host.run import run

    options = JobOptions(
        batch=batch or _DEFAULT_BATCH, learn_share=learn_share, row_bytes=row_bytes, seed=seed
    )
    limit = sample_limit(samples)
    wrong = run(
        config, name, data, limit, options, output, json_file, waves, rows=rows, board=chosen
    )
    if wrong:
        raise typer.Exit(MISMATCH)


app.command("train")(train_command)


@app.command("bench")
def bench_command(
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="One-hot click log, as for 'run'; may be given several times, and tables of the "
            "last one are used for random rows. Default: ml-100k and synthetic:K."
        ),
    ] = None,
    samples: Annotated[
        str, typer.Option(help="Samples of a log to draw from, or 'all'.")
    ] = "300000",
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure only what has this word in its section (lines, latency, row_bytes, "
            "outstanding, arbiter, peers), command or traffic; may be given several times."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small mini-batches, nothing that needs extra builds.")
    ] = False,
    clock: Annotated[
        float | None, typer.Option(min=0.001, help="Clock of place and route, in MHz.")
    ] = None,
    clock_json: Annotated[
        Path | None, typer.Option(help="The same from the JSON of 'hotline synth --json'.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the result.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for the pictures.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 1,
) -> None:
    """Measure the performance contract (spec section 9) on the simulated RTL."""
    config, name = configuration(preset_name, config_file, DEFAULT_PRESET)
    if clock is not None and clock_json is not None:
        raise ValueError("--clock and --clock-json exclude each other")
    limit = sample_limit(samples)
    from hotline.host.bench import BenchOptions, read_clock, run

    if clock_json is not None:
        clock = read_clock(clock_json)
    options = BenchOptions(
        **({"sources": data} if data else {}),
        samples=limit,
        only=only or (),
        quick=quick,
        clock_mhz=clock,
        seed=seed,
    )
    run(config, name, options, json_file, plots)


@app.command("results")
def results_command(
    folder: Annotated[Path, typer.Argument(help="Folder with the JSON files of 'bench'.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown file, above FOLDER.")],
) -> None:
    """Write the page of results from what 'bench' measured; pictures go beside the JSON files."""
    from hotline.host.bench_page import write_page

    for path in write_page(folder, output):
        print(path)


@app.command("synth")
def synth_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what is built.")],
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    board_name: Annotated[
        str | None,
        typer.Option("--board", help=f"Build a bitstream for one of {', '.join(BOARDS)}."),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option("--block", "-b", help=f"Without --board: one of {', '.join(BLOCKS)}."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Place and route with seeds 1 to this. [default: 1, "
            + ", ".join(
                f"{board.name}: {board.seeds}" for board in BOARDS.values() if board.seeds > 1
            )
            + "]",
        ),
    ] = None,
    clock: Annotated[
        float | None,
        typer.Option(min=1, help="Without --board: clock to aim at, in MHz. [default: 100]"),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the result.")] = None,
    update_baseline: Annotated[
        bool,
        typer.Option("--update-baseline", help="With --board: compare later builds with this one."),
    ] = False,
) -> None:
    """Build a bitstream for a board, or measure a block alone.

    Without --board the block is placed and routed on an LFE5U-85F with registered ports.
    """
    config, name = configuration(preset_name, config_file)
    if board_name is not None:
        if block is not None or clock is not None:
            raise ValueError(
                "--board builds the whole device at the board's own clock: it excludes --block "
                "and --clock"
            )
        from hotline.fpga.board_build import run

        target = board(board_name)
        run(config, name, target, output, seeds or target.seeds, json_file, update_baseline)
        return
    if update_baseline:
        raise ValueError("--update-baseline stores the figures of a board: it needs --board")
    from hotline.fpga.flow import report

    block = block or TOP
    component, title = make_block(block, config), f"{block} of {name}"
    report(component, title, output, seeds or 1, clock or 100.0, json_file)


@app.command("board-sim")
def board_sim_command(
    board_name: Annotated[str, typer.Option("--board", help=f"One of {', '.join(BOARDS)}.")],
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    cycles_per_bit: Annotated[
        int, typer.Option(help="Cycles for each bit on the serial line, 4 to 16.")
    ] = 4,
) -> None:
    """Simulate a board behind a pseudo-terminal, for 'run --backend serial', until Ctrl-C."""
    chosen = board(board_name)
    config, name = configuration(preset_name, config_file, board_preset(board_name))
    from hotline.host.board_simulator import BoardSimulator, PseudoTerminal

    # A shell that starts it in the background would have it ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    console = Console()
    with console.status(f"building the simulation of {name} on {board_name}"):
        simulator = BoardSimulator(config, chosen, cycles_per_bit)
    with PseudoTerminal(simulator) as terminal:
        print(f"{name} on {board_name}: {terminal.path}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            terminal.join()


@app.command("estimate")
def estimate_command(
    target: Annotated[
        str,
        typer.Option(
            help="xcup: resources of an UltraScale+ FPGA. asic: gates of a generic library, and "
            "memory bits, beside the published area."
        ),
    ],
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the result.")] = None,
) -> None:
    """Estimate, with yosys alone, what the accelerator takes where the open flow does not reach."""
    config, name = configuration(preset_name, config_file)
    from hotline.fpga.estimate import run

    run(config, name, target, json_file)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    """Entry point: a mistake of the user ends in one sentence and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        sentence = " ".join(str(error).split())
        print(f"hotline: {sentence}", file=sys.stderr)
        sys.exit(WRONG_INPUT)


if __name__ == "__main__":
    main()
