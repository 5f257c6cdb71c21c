"""Where fetched data and built models are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """``$HOTLINE_CACHE``, else ``$XDG_CACHE_HOME/hotline``, else ``~/.cache/hotline``."""
    if chosen := os.environ.get("HOTLINE_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hotline"
