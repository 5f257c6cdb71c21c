"""pytest set-up shared by all tests: the harness is importable, here and inside the simulator."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# cocotb's Python inherits sys.path from this process, so the benches are found by their names.
_HERE = str(Path(__file__).resolve().parent)
if _HERE not in sys.path:
    sys.path.insert(0, _HERE)


@pytest.fixture
def seed() -> int:
    """``HOTLINE_SEED``, or 1; printed, and shown when a test fails."""
    value = int(os.environ.get("HOTLINE_SEED", "1"))
    print(f"seed {value}")
    return value
