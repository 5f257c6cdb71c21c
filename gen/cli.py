"""The command line, ``hotline``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from hotline.gen.blocks import BLOCKS, TOP, make_block
from hotline.gen.config import Config
from hotline.gen.presets import PRESETS, preset

__all__ = ["app", "main"]

#: Exit codes: wrong input, and a device that differs from the golden model.
_WRONG_INPUT, _MISMATCH = 2, 1

_DEFAULT_PRESET = "ecp5"
_DEFAULT_SAMPLES = "10000"

app = typer.Typer(
    help="Hotline: an accelerator for recommendation-model training.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

PresetOption = Annotated[
    str | None,
    typer.Option("--preset", "-p", help=f"Named configuration: {', '.join(PRESETS)}."),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file with a configuration.")
]


def _configuration(
    name: str | None, file: Path | None, default: str | None = None
) -> tuple[Config, str]:
    """The configuration that the options name, or the default preset, and what to call it."""
    if name is not None and file is not None:
        raise ValueError("--preset and --config exclude each other")
    if file is not None:
        try:
            return Config.from_toml(file), file.stem
        except (FileNotFoundError, IsADirectoryError):
            raise ValueError(f"there is no file {str(file)!r}") from None
    name = name if name is not None else default
    if name is None:
        raise ValueError("either --preset or --config is needed")
    return preset(name), name


@app.command("generate")
def generate_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")],
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    block: Annotated[str, typer.Option("--block", "-b", help=f"One of {', '.join(BLOCKS)}.")] = TOP,
) -> None:
    """Write Verilog, and the files that go with it."""
    config, name = _configuration(preset_name, config_file)
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
    ] = _DEFAULT_SAMPLES,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the result.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the report and the pictures.")
    ] = Path("hotline-run"),
    batch: Annotated[int, typer.Option(min=1, help="Samples of a mini-batch.")] = 1024,
    learn_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the mini-batches to learn from.")
    ] = 0.3,
    row_bytes: Annotated[int, typer.Option(min=4, help="Bytes of an embedding row.")] = 64,
    seed: Annotated[int, typer.Option(help="Seed of all that is random.")] = 1,
    waves: Annotated[Path | None, typer.Option(help="Waveform file, .vcd or .fst.")] = None,
) -> None:
    """Run a click log through the simulated RTL, checked byte by byte."""
    config, name = _configuration(preset_name, config_file, _DEFAULT_PRESET)
    from hotline.host.job import JobOptions
    from hotline.host.run import run

    options = JobOptions(batch=batch, learn_share=learn_share, row_bytes=row_bytes, seed=seed)
    wrong = run(config, name, data, _sample_limit(samples), options, output, json_file, waves)
    if wrong:
        raise typer.Exit(_MISMATCH)


@app.command("train")
def train_command(
    data: Annotated[
        str, typer.Option(help="Click log: ml-100k, criteo:FILE, avazu:FILE, synthetic:K, ...")
    ] = "ml-100k",
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    entries: Annotated[
        int | None, typer.Option(help="Entries of the hot table, if not those of the preset.")
    ] = None,
    dedup_entries: Annotated[
        int | None, typer.Option(help="Entries of SPLIT's store of seen keys, likewise.")
    ] = None,
    backend: Annotated[
        str, typer.Option(help="Device: verilator (the RTL) or golden (its model).")
    ] = "verilator",
    samples: Annotated[
        str, typer.Option(help="At most so many samples, or 'all'.")
    ] = _DEFAULT_SAMPLES,
    batch: Annotated[int, typer.Option(help="Samples of a mini-batch.")] = 128,
    dim: Annotated[int, typer.Option(help="Numbers in an embedding vector.")] = 16,
    bottom: Annotated[str, typer.Option(help="Hidden layers of the bottom MLP.")] = "512-256-64",
    top: Annotated[str, typer.Option(help="Hidden layers of the top MLP.")] = "512-256",
    optimizer: Annotated[str, typer.Option(help="sgd, adagrad or rowwise-adagrad.")] = "sgd",
    lr: Annotated[
        float | None, typer.Option(help="Learning rate; by default 0.1 for sgd, else 0.01.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    epochs: Annotated[int, typer.Option(help="Passes over the log.")] = 1,
    relearn: Annotated[
        int, typer.Option(help="Times an epoch that the hot table learns again.")
    ] = 3,
    learn_share: Annotated[
        float, typer.Option(help="Share of an epoch's mini-batches that it learns from.")
    ] = 0.2,
    forget: Annotated[
        str, typer.Option(help="Before it learns again: nothing, age or clear.")
    ] = "nothing",
    profile: Annotated[
        bool, typer.Option("--profile", help="At the start LOAD the most frequent rows instead.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of all that is random.")] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Train the plain model beside it, and compare.")
    ] = False,
    checkpoint: Annotated[Path | None, typer.Option(help="File of the checkpoints.")] = None,
    checkpoint_every: Annotated[int, typer.Option(help="Steps between two checkpoints.")] = 10,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
    stop_after: Annotated[
        int | None, typer.Option(help="Stop after so many steps of this run.")
    ] = None,
    digests: Annotated[
        bool, typer.Option("--digests", help="Put a digest of all memory into the result, by step.")
    ] = False,
    world: Annotated[int, typer.Option(help="Processes that train together.")] = 1,
    reduce: Annotated[
        str, typer.Option(help="How they add up gradients: ordered (same bits as one) or sum.")
    ] = "ordered",
    threads: Annotated[int, typer.Option(help="Threads of PyTorch in a process.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the result.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for the pictures.")] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(help="JSON file for a trace (Perfetto); a picture goes beside it."),
    ] = None,
    clock: Annotated[
        float, typer.Option(help="For the timeline: clock of the device, in MHz.")
    ] = 100.0,
    bus: Annotated[
        float | None, typer.Option(help="For the timeline: what the bus carries, in GB/s.")
    ] = None,
    gpu_times: Annotated[
        str,
        typer.Option(
            help="For the timeline: seconds of GPU work instead of those measured here, such as "
            "popular=0.001,nonpopular=0.002,gradients=0.001,update=0.0005."
        ),
    ] = "",
) -> None:
    """Train a DLRM whose embedding rows the device keeps, fetches and writes back."""
    config, name = _configuration(preset_name, config_file, _DEFAULT_PRESET)
    limit = _sample_limit(samples)
    try:
        import torch  # noqa: F401  # what follows needs it, and it is not among the dependencies
    except (ImportError, OSError) as error:
        raise ValueError(
            f"hotline train needs PyTorch, which cannot be imported: {error}"
        ) from None
    from hotline.host.dlrm import parse_layers
    from hotline.host.train import train
    from hotline.host.train_options import TrainOptions
    from hotline.host.training_loop import LoopOptions
    from hotline.host.training_setup import Setup, with_entries
    from hotline.host.training_timeline import TimelineOptions, parse_times

    config = with_entries(config, entries)
    if dedup_entries is not None:
        config = config.replace(dedup_entries=dedup_entries)
    options = TrainOptions(
        batch=batch,
        dim=dim,
        bottom=parse_layers("--bottom", bottom),
        top=parse_layers("--top", top),
        optimizer=optimizer,
        lr=lr if lr is not None else 0.1 if optimizer == "sgd" else 0.01,
        dtype=dtype,
        epochs=epochs,
        relearn=relearn,
        learn_share=learn_share,
        forget=forget,
        profile=profile,
        reduce=reduce,
        seed=seed,
    )
    loop = LoopOptions(
        check=check,
        checkpoint=checkpoint,
        every=checkpoint_every,
        resume=resume,
        stop_after=stop_after,
        digests=digests,
    )
    setup = Setup(
        config=config, name=name, source=data, samples=limit, backend=backend, world=world,
        threads=threads,
    )  # fmt: skip
    drawn = None
    if timeline is not None:
        drawn = TimelineOptions(
            file=timeline, clock_mhz=clock, bus_gbytes=bus, gpu_seconds=parse_times(gpu_times)
        )
    result = train(setup, options, loop, json_file, plots, drawn)
    if not result.get("within_limits", True):
        raise typer.Exit(_MISMATCH)


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
    config, name = _configuration(preset_name, config_file, _DEFAULT_PRESET)
    if clock is not None and clock_json is not None:
        raise ValueError("--clock and --clock-json exclude each other")
    limit = _sample_limit(samples)
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
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for netlist and logs.")],
    preset_name: PresetOption = None,
    config_file: ConfigOption = None,
    block: Annotated[str, typer.Option("--block", "-b", help=f"One of {', '.join(BLOCKS)}.")] = TOP,
    seeds: Annotated[int, typer.Option(min=1, help="Place and route with seeds 1 to this.")] = 1,
    clock: Annotated[float, typer.Option(min=1, help="Clock to aim at, in MHz.")] = 100.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the result.")] = None,
) -> None:
    """Synthesise, place and route on an LFE5U-85F, with registered ports; report size and clock."""
    config, name = _configuration(preset_name, config_file)
    from hotline.fpga.flow import report

    report(make_block(block, config), f"{block} of {name}", output, seeds, clock, json_file)


def _sample_limit(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"--samples must be a positive number or 'all', not {text!r}")
    return int(text)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    """Entry point: a mistake of the user ends in one sentence and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        sentence = " ".join(str(error).split())
        print(f"hotline: {sentence}", file=sys.stderr)
        sys.exit(_WRONG_INPUT)


if __name__ == "__main__":
    main()
