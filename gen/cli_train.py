"""The command ``hotline train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotline.gen.cli_options import (
    DEFAULT_PRESET,
    DEFAULT_SAMPLES,
    MISMATCH,
    ConfigOption,
    PresetOption,
    configuration,
    sample_limit,
)

__all__ = ["train_command"]


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
    ] = DEFAULT_SAMPLES,
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
    config, name = configuration(preset_name, config_file, DEFAULT_PRESET)
    limit = sample_limit(samples)
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
        raise typer.Exit(MISMATCH)
