"""The register file of spec section 8, driven by the register map."""

from __future__ import annotations

import numpy as np

from hotline.gen.config import Config
from hotline.gen.register_map import COUNTERS, Access, register_map

__all__ = ["OKAY", "SLVERR", "Registers"]

#: AXI responses.
OKAY, SLVERR = 0, 2

_COUNTER_LIMIT = (1 << 64) - 1


class Registers:
    """Storage, and the rules by which a write is refused.

    What a write sets off (resume, soft reset, the ring) is the interpreter's; it looks at the
    answer and at the register's name.

    Parameters
    ----------
    config : Config
        Gives the register map.

    Members
    -------
    counters : dict of str to int
        The live counters.
    saturated : int
        COUNTERS_SATURATED as of the last snapshot.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.map = {register.offset: register for register in register_map(config)}
        self.by_name = {register.name: register for register in self.map.values()}
        self._instances = {
            None: 1,
            "TABLE_SELECT": config.max_tables,
            "GPU_SELECT": config.gpus,
            "WINDOW_SELECT": config.windows,
        }
        self.reset()

    def reset(self) -> None:
        """All registers and counters as after aresetn."""
        self._values = {
            register.name: np.full(self._instances[register.selector], register.reset, np.int64)
            for register in self.map.values()
        }
        # Only window 0 is enabled after reset.
        self._values["WINDOW_LO_LO"][1:] = 1
        for half in ("LO", "HI"):
            self._values[f"WINDOW_HI_{half}"][1:] = 0
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.saturated = 0

    def get(self, name: str, instance: int = 0) -> int:
        """Value of a register; of one without selector whatever `instance` is."""
        values = self._values[name]
        return int(values[instance if len(values) > 1 else 0])

    def wide(self, name: str, instance: int = 0) -> int:
        """Value of the 64-bit register `name`_LO, `name`_HI."""
        return self.get(f"{name}_HI", instance) << 32 | self.get(f"{name}_LO", instance)

    def put(self, name: str, value: int) -> None:
        """Set a register without selector, from inside the device."""
        self._values[name][0] = value

    def put_wide(self, name: str, value: int) -> None:
        """Set the 64-bit register `name`_LO, `name`_HI."""
        self.put(f"{name}_LO", value & 0xFFFFFFFF)
        self.put(f"{name}_HI", value >> 32)

    def column(self, name: str) -> np.ndarray:
        """All instances of a register: int64 [n]."""
        return self._values[name]

    def wide_column(self, name: str) -> np.ndarray:
        """All instances of a 64-bit register: uint64 [n]."""
        high = self._values[f"{name}_HI"].astype(np.uint64) << np.uint64(32)
        return high | self._values[f"{name}_LO"].astype(np.uint64)

    def read(self, offset: int) -> tuple[int, int]:
        """(value, response) of a read by the host."""
        register = self.map.get(offset & ~3)
        if register is None or not register.readable:
            return 0, SLVERR
        return self.get(register.name, self._instance(register.selector)), OKAY

    def write(self, offset: int, value: int, strobe: int, busy: bool) -> tuple[str | None, int]:
        """(name of the register that takes the write, response) of a write by the host."""
        register = self.map.get(offset & ~3)
        if register is None or not register.writable or strobe != 0xF:
            return None, SLVERR
        if (register.locked and busy) or not register.allows(value):
            return None, SLVERR
        if not self._allowed(register.name, value):
            return None, SLVERR
        if register.access is Access.RW and register.name != "CONTROL":
            self._values[register.name][self._instance(register.selector)] = value
        return register.name, OKAY

    def count(self, **amounts: int) -> None:
        """Add to counters; they saturate."""
        if self.config.perf_counters:
            for name, amount in amounts.items():
                self.counters[name] = min(_COUNTER_LIMIT, self.counters[name] + amount)

    def snapshot(self) -> None:
        """Copy the counters to the registers that show them."""
        self.saturated = 0
        for bit, (name, value) in enumerate(self.counters.items()):
            self.put_wide(name, value)
            self.saturated |= (value == _COUNTER_LIMIT) << bit
        self.put("COUNTERS_SATURATED", self.saturated)

    def clear_counters(self) -> None:
        """Zero the live counters; the snapshot stays."""
        self.counters = dict.fromkeys(COUNTERS, 0)

    def _instance(self, selector: str | None) -> int:
        return 0 if selector is None else self.get(selector)

    def _allowed(self, name: str, value: int) -> bool:
        """Limits that depend on other registers."""
        if name == "RING_TAIL":
            return value < 1 << self.get("RING_LOG2")
        if name == "HOT_STRIDE":
            return value >= int(self.column("TABLE_ROW_BYTES").max())
        return True
