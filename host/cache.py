"""Where fetched data and built models are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder(chosen: str | Path | None = None) -> Path:
    """`chosen`, or else ``$HOTLINE_CACHE``, ``$XDG_CACHE_HOME/hotline``, ``~/.cache/hotline``."""
    if chosen := chosen or os.environ.get("HOTLINE_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hotline"
