"""What a bench has measured so far, on disk: the large presets take hours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hotline.host.bench_sweeps import Task

__all__ = ["BenchJournal"]


class BenchJournal:
    """Records by task, in a file beside that of the result, a line for each task.

    Parameters
    ----------
    json_file : Path
        Where the result will be.
    key : dict
        All that the records depend on, ready for JSON. Those of another key are dropped.

    Attributes
    ----------
    path : Path
        The journal: ``.journal`` in the place of ``.json``.
    count : int
        Tasks found in it.
    """

    def __init__(self, json_file: Path, key: dict[str, Any]) -> None:
        self.path = json_file.with_suffix(".journal")
        self._key = key
        self._found: dict[str, list[dict[str, Any]]] = {}
        lines = self._lines()
        self._begun = bool(lines) and lines[0] == key
        if self._begun:
            for line in lines[1:]:
                self._found.update(line)
        self.count = len(self._found)

    def find(self, task: Task) -> list[dict[str, Any]] | None:
        """Records of `task`, or None if it has not been measured."""
        return self._found.get(_name(task))

    def add(self, task: Task, records: list[dict[str, Any]]) -> None:
        """Keep the records of `task`."""
        if not self._begun:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self._key) + "\n", encoding="utf-8")
            self._begun = True
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({_name(task): records}) + "\n")

    def remove(self) -> None:
        """The result has been written."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        lines = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:  # the last one, of a run that was stopped
                break
        return lines


def _name(task: Task) -> str:
    return f"{task.section}: {task.name}"
