"""Sphinx configuration. Pages made from the register map are written beside the sources."""

from __future__ import annotations

from pathlib import Path

from hotline.gen.presets import preset
from hotline.gen.register_map import VERSION, register_map

project = "Hotline"
author = "the Hotline authors"
release = ".".join(map(str, VERSION))
extensions = ["myst_parser"]
html_theme = "alabaster"
exclude_patterns = ["build"]


def _register_page() -> str:
    """The register table, for the preset `ecp5`."""
    rows = ["| offset | name | access | reset | locked | content |", "|---|---|---|---|---|---|"]
    for register in register_map(preset("ecp5")):
        content = register.description
        if register.selector:
            content += f" (of the instance in {register.selector})"
        for field in register.fields:
            content += f"; `{field.name}` [{field.high}:{field.low}] {field.description}"
        locked = "yes" if register.locked else ""
        cells = (
            f"0x{register.offset:03X}", register.name, register.access.value,
            f"0x{register.reset:X}", locked, content,
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(["# Registers", "", "Reset values are those of `ecp5`.", "", *rows, ""])


# Generated, so not committed: see .gitignore.
Path(__file__).with_name("registers.md").write_text(_register_page(), encoding="utf-8")
