"""Registers of a device by name."""

from __future__ import annotations

from hotline.gen.register_map import register_map
from hotline.host.backends import Backend
from hotline.host.errors import RegisterError

__all__ = ["RegisterPort"]


class RegisterPort:
    """Reads and writes registers by the names of spec section 8.

    Parameters
    ----------
    backend : Backend
        Whose registers.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._offsets = {item.name: item.offset for item in register_map(backend.config)}

    def write(self, name: str, value: int) -> None:
        """Write a register.

        Raises
        ------
        RegisterError
            SLVERR: locked while busy, or a value that is not allowed.
        """
        if self._backend.write_register(self._offset(name), value):
            raise RegisterError(f"the device refused {value:#x} in {name}")

    def write64(self, name: str, value: int) -> None:
        """Write a register pair `name`_LO, `name`_HI."""
        self.write(f"{name}_LO", value & 0xFFFFFFFF)
        self.write(f"{name}_HI", value >> 32)

    def read(self, name: str) -> int:
        """Read a register.

        Raises
        ------
        RegisterError
            SLVERR: the register is write-only.
        """
        value, response = self._backend.read_register(self._offset(name))
        if response:
            raise RegisterError(f"the device refused a read of {name}")
        return value

    def read64(self, name: str) -> int:
        """Read a register pair `name`_LO, `name`_HI."""
        return self.read(f"{name}_LO") | self.read(f"{name}_HI") << 32

    def _offset(self, name: str) -> int:
        if name not in self._offsets:
            raise ValueError(f"there is no register {name!r}")
        return self._offsets[name]
