"""Commands for the bench of the key stream, and what spec section 7 makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hotline.gen.config import Config
from hotline.rtl.burst import aligned_beats
from hotline.rtl.interfaces import Status
from hotline.rtl.key_stream import KeyMode

__all__ = ["LENGTHS", "Command", "Outcome", "model", "random_command"]

INDICES, LENGTHS = 0x10_0000, 0x40_0000


@dataclass
class Command:
    """A command, the content of its two regions, and the byte whose burst fails, if any."""

    mode: KeyMode
    count: int
    num_tables: int = 1
    num_keys: int = 0
    one_hot: bool = False
    words: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    indices: int = INDICES
    fault: dict[str, int] = field(default_factory=dict)
    in_window: bool = True
    aligned: bool = False


@dataclass
class Outcome:
    """What the model expects: complete samples, the start of the failed one, and the error."""

    samples: list[list[int]] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    status: Status = Status.OK
    info: int = 0


def failed_burst(config_: Config, base: int, fault: int) -> range:
    """Addresses of the burst that contains `fault`; bursts are cut at aligned addresses."""
    chunk = aligned_beats(config_) * config_.data_bytes
    start = max(base, fault // chunk * chunk)
    return range(start, (fault // chunk + 1) * chunk)


def model(config_: Config, command: Command, rows: list[int]) -> Outcome:
    """Section 7 in plain words: samples in order, lengths before indices, first error wins."""
    out = Outcome()
    bus = Status.BUS_READ if command.in_window else Status.ADDR_WINDOW
    holes = {
        name: failed_burst(config_, base, command.fault[name])
        for name, base in (("index", command.indices), ("length", LENGTHS))
        if name in command.fault
    }
    position = total = 0

    def hole(name: str, address: int) -> bool:
        return name in holes and address in holes[name]

    def fail(status: Status, info: int) -> Outcome:
        out.status, out.info = status, info
        return out

    for sample in range(command.count):
        out.begun = []
        if command.mode == KeyMode.KEY_LIST:
            at = 2 * sample
            if hole("index", command.indices + 4 * at):
                return fail(bus, holes["index"].start)
            if hole("index", command.indices + 4 * at + 4):
                return fail(bus, holes["index"].start)
            row, table = command.words[at : at + 2]
            if table >= config_.max_tables or row >= rows[table]:
                return fail(Status.INDEX_RANGE, (table << 32) + row)
            out.samples.append([table << config_.row_bits | row])
            continue
        bags = [1] * command.num_tables
        if not command.one_hot:
            first = sample * command.num_tables
            for i in range(command.num_tables):
                if hole("length", LENGTHS + 2 * (first + i)):
                    return fail(bus, holes["length"].start)
            bags = command.lengths[first : first + command.num_tables]
        total += sum(bags)
        if sum(bags) > config_.max_sample_keys:
            return fail(Status.LENGTHS, sum(bags))
        if total > command.num_keys:
            return fail(Status.LENGTHS, total)
        for table, bag in enumerate(bags):
            for _ in range(bag):
                if hole("index", command.indices + 4 * position):
                    return fail(bus, holes["index"].start)
                row = command.words[position]
                position += 1
                if row >= rows[table]:
                    return fail(Status.INDEX_RANGE, (table << 32) + row)
                out.begun.append(table << config_.row_bits | row)
        out.samples.append(out.begun)
    out.begun = []
    if command.mode == KeyMode.SAMPLES and command.count and total != command.num_keys:
        out.begun = out.samples.pop()  # the last sample is the wrong one, so it must not end
        return fail(Status.LENGTHS, total)
    return out


def random_command(rng: np.random.Generator, config_: Config, rows: list[int]) -> Command:
    """Any command that the command processor lets pass; about half of them go wrong."""
    limit = config_.max_sample_keys
    kind = rng.choice(["one_hot", "bags", "list"], p=[0.4, 0.45, 0.15])
    count = int(rng.choice([0, 1, 2, int(rng.integers(3, 24))], p=[0.05, 0.1, 0.1, 0.75]))
    tables = int(rng.choice([1, 2, int(rng.integers(1, config_.max_tables + 1))]))
    tables = min(tables, config_.max_tables)
    indices = INDICES + 64 * int(rng.integers(0, 128))
    if kind == "list":
        command = Command(KeyMode.KEY_LIST, count, indices=indices)
        for _ in range(count):
            table = int(rng.integers(0, config_.max_tables))
            command.words += [int(rng.integers(0, rows[table])), table]
        if count and rng.random() < 0.4:
            at = int(rng.integers(0, count))
            if rng.random() < 0.5:
                command.words[2 * at + 1] = int(
                    rng.choice([config_.max_tables, 1 << config_.table_bits, 1 << 31, 0xFFFF_FFFF])
                )
            else:
                command.words[2 * at] = rows[command.words[2 * at + 1]]
    elif kind == "one_hot":
        if rng.random() < 0.95:
            tables = min(tables, limit)
        command = Command(KeyMode.SAMPLES, count, tables, count * tables, True, indices=indices)
        bags = [1] * (count * tables)
    else:
        command = Command(KeyMode.SAMPLES, count, tables, indices=indices)
        mean = rng.choice([0.2, 1.0, 4.0])
        bags = [int(min(rng.poisson(mean), limit // tables)) for _ in range(count * tables)]
        if bags and rng.random() < 0.3:  # a long bag, up to the limit or one beyond
            at = int(rng.integers(0, len(bags)))
            first = at // tables * tables
            rest = sum(bags[first : first + tables]) - bags[at]
            bags[at] = limit - rest + int(rng.choice([0, 1, 60_000], p=[0.5, 0.25, 0.25]))
            bags[at] = min(bags[at], 65_535)
        command.num_keys = sum(bags)
        if rng.random() < 0.25:
            change = int(rng.choice([-1, 1, -7, 13]))
            command.num_keys = max(0, command.num_keys + change)
        command.lengths = bags
        command.num_keys = min(command.num_keys, 4000)
    if kind != "list":
        owner = [i % tables for i, bag in enumerate(bags) for _ in range(min(bag, 4000))]
        owner = (owner + [0] * command.num_keys)[: command.num_keys]
        command.words = [int(rng.integers(0, rows[table])) for table in owner]
        for _ in range(int(rng.choice([0, 1, 2], p=[0.65, 0.2, 0.15]))):
            if owner:
                at = int(rng.integers(0, len(owner)))
                command.words[at] = int(rng.choice([rows[owner[at]], 0xFFFF_FFFF]))
    if rng.random() < 0.2:
        name = "length" if command.lengths and rng.random() < 0.5 else "index"
        size = 4 * len(command.words) if name == "index" else 2 * len(command.lengths)
        if size:
            base = command.indices if name == "index" else LENGTHS
            command.fault[name] = base + int(rng.integers(0, size))
            command.in_window = bool(rng.random() < 0.5)
    command.aligned = bool(rng.random() < 0.4)
    return command
