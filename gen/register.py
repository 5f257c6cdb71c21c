"""What there is to say of a register, and of the values it may have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["ALL_ONES", "Access", "Field", "Register"]

#: The largest value of a register.
ALL_ONES = (1 << 32) - 1


class Access(Enum):
    """What the host may do with a register."""

    RO = "ro"
    RW = "rw"
    W1C = "w1c"  #: reads the bits, writing a 1 clears a bit
    WO = "wo"


@dataclass(frozen=True, kw_only=True)
class Field:
    """Named bits of a register.

    Parameters
    ----------
    name, description : str
        Lower-case name, and what the bits mean.
    low, width : int
        Lowest bit, and number of bits.
    pulse : bool
        Writing 1 acts once; the bit clears itself.
    """

    name: str
    low: int
    width: int
    description: str
    pulse: bool = False

    @property
    def high(self) -> int:
        """Highest bit."""
        return self.low + self.width - 1


@dataclass(frozen=True, kw_only=True)
class Register:
    """A 32-bit register.

    A write is allowed if ``minimum <= value <= maximum`` and ``value`` is a multiple of `align`
    (and, for RING_TAIL alone, below the ring size). Any other value is answered SLVERR.

    Parameters
    ----------
    name, description : str
        As in the specification; the halves of a 64-bit register end in ``_LO`` and ``_HI``.
    offset : int
        Byte address.
    access : Access
        What the host may do.
    reset : int
        Value after reset (of each instance, if there is a selector).
    minimum, maximum, align : int
        The values that a write may have.
    locked : bool
        Writes are refused while STATUS.busy.
    selector : str or None
        Name of the register that selects which instance this one shows.
    live : bool
        Device logic changes the value, so it is not simply what was last written.
    fields : tuple of Field
        Named bits, if the register is more than a number.
    """

    name: str
    offset: int
    access: Access
    description: str
    reset: int = 0
    minimum: int = 0
    maximum: int = ALL_ONES
    align: int = 1
    locked: bool = False
    selector: str | None = None
    live: bool = False
    fields: tuple[Field, ...] = ()

    @property
    def word(self) -> int:
        """Word address, ``offset / 4``."""
        return self.offset // 4

    @property
    def readable(self) -> bool:
        """Whether a read is answered OKAY."""
        return self.access is not Access.WO

    @property
    def writable(self) -> bool:
        """Whether a write of an allowed value is answered OKAY."""
        return self.access is not Access.RO

    def allows(self, value: int) -> bool:
        """Whether `value` may be written (RING_TAIL: for the longest ring)."""
        return self.minimum <= value <= self.maximum and value % self.align == 0
