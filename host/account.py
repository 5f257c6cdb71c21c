"""What a training run has done on the device: sums for reports, spans for the timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotline.golden.descriptor import Completion

__all__ = ["Account", "Span"]


@dataclass(frozen=True)
class Span:
    """Something that took time.

    Parameters
    ----------
    step : int
        In which step; a command that runs ahead counts for the step that it is for.
    name : str
        The command, or ``popular``, ``nonpopular``, ``gradients``, ``update``.
    cycles : int
        Of the device; 0 for work of the GPU.
    seconds : float
        Of the GPU; 0 for commands.
    link_bytes : int
        Bytes that the command has moved over all links.
    """

    step: int
    name: str
    cycles: int = 0
    seconds: float = 0.0
    link_bytes: int = 0


@dataclass
class Account:
    """Sums over a run, of one rank.

    Links are seen from the device: the host's memory, where tables and lists live, and the GPU's,
    where hot rows and gathered rows live. Bytes are those of rows and lists, not whole beats.

    Members
    -------
    samples, popular, keys, hits : int
        Of all SPLITs.
    gathered, duplicates : int
        Cold rows fetched, and how many of them were a copy of another.
    rows_back, rows_filled : int
        Rows that were moved between their homes.
    commands, cycles : dict
        How many there were of each command, and device cycles in all (0 without a clock).
    link_bytes : dict
        Bytes by link.
    plain_bytes : int
        What would go over the bus without hot rows: each row of a mini-batch once, there and back.
    spans : list of Span or None
        What took how long, in the order in which it ended; None: not kept.
    """

    samples: int = 0
    popular: int = 0
    keys: int = 0
    hits: int = 0
    gathered: int = 0
    duplicates: int = 0
    rows_back: int = 0
    rows_filled: int = 0
    commands: dict[str, int] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    link_bytes: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("host_to_device", "device_to_host", "gpu_to_device", "device_to_gpu"), 0
        )
    )
    plain_bytes: int = 0
    spans: list[Span] | None = field(default=None, repr=False)

    def command(self, step: int, name: str, done: Completion, **link_bytes: int) -> None:
        """Count a command that has succeeded, and what it has moved over which link."""
        self.commands[name] = self.commands.get(name, 0) + 1
        self.cycles[name] = self.cycles.get(name, 0) + done.cycles
        for link, size in link_bytes.items():
            self.link_bytes[link] += int(size)
        self.rows_back += done.words[0] * (name == "BACK")
        self.rows_filled += done.words[0] * (name == "FILL")
        if self.spans is not None:
            self.spans.append(Span(step, name, done.cycles, link_bytes=sum(link_bytes.values())))

    def work(self, step: int, name: str, seconds: float) -> None:
        """Note work of the GPU."""
        if self.spans is not None:
            self.spans.append(Span(step, name, seconds=seconds))

    def as_dict(self) -> dict[str, Any]:
        """All sums, ready for JSON."""
        sums = {name: value for name, value in vars(self).items() if name != "spans"}
        return {k: dict(v) if isinstance(v, dict) else v for k, v in sums.items()}

    def restore(self, sums: dict[str, Any]) -> None:
        """Go on from what :meth:`as_dict` gave."""
        for name, value in sums.items():
            setattr(self, name, value)
