"""What the driver raises: one class for each error status of a command, and a few of its own."""

from __future__ import annotations

from hotline.gen.commands import Flag, Opcode, StatusCode
from hotline.golden.descriptor import Descriptor

__all__ = [
    "AddressWindowError",
    "BadDescriptorError",
    "BadOpcodeError",
    "BusReadError",
    "BusWriteError",
    "CommandError",
    "CommandSkippedError",
    "IndexRangeError",
    "LengthsError",
    "NotCommittedError",
    "RegisterError",
    "command_error",
    "command_name",
]


class RegisterError(RuntimeError):
    """The device has refused a register access."""


class CommandError(RuntimeError):
    """A command has failed; there is a class of its own for each status.

    Parameters
    ----------
    status : StatusCode
        Why.
    info : int
        Error info (spec section 7).
    opcode : int
        Of the command.
    descriptor : Descriptor, optional
        The command, for a message that names the field that was wrong.
    """

    def __init__(
        self, status: StatusCode, info: int, opcode: int, descriptor: Descriptor | None = None
    ) -> None:
        self.status, self.info, self.opcode = status, info, opcode
        self.descriptor = descriptor
        super().__init__(f"{command_name(opcode)} failed with {status.name}: {self._reason()}")

    def _reason(self) -> str:
        return f"error info {self.info:#x}"


class BadOpcodeError(CommandError):
    """BAD_OPCODE."""

    def _reason(self) -> str:
        known = ", ".join(f"{code.value:#04x}" for code in Opcode)
        return f"there is no command {self.info:#04x}, the commands are {known}"


#: What is wrong with a word, by its number; addresses share a text.
_WORDS = {
    2: "num_tables {d.num_tables} must be from 1 to max_tables",
    3: "num_keys {d.num_keys} must be below 2**31, and count * num_tables = {one_hot} if one-hot",
}
_ADDRESSES = {
    4: "indices",
    6: "lengths",
    8: "lists",
    10: "rows",
    12: "weights",
    14: "completion",
}


class BadDescriptorError(CommandError):
    """BAD_DESCRIPTOR; `info` is the number of the first offending word."""

    def _reason(self) -> str:
        return f"word {self.info}, {self._word()}"

    def _word(self) -> str:
        descriptor = self.descriptor
        if self.info == 0:
            if descriptor is None:
                return "an unknown flag, or a unit that the device does not have"
            if self.opcode == Opcode.GATHER and descriptor.flags & Flag.GATHER_LAST:
                return "no SPLIT without GATHER_HOT has succeeded that GATHER LAST could go on with"
            return (
                f"flags {descriptor.flags:#04x}: one is unknown, needs another one, or needs a "
                f"unit that the device does not have"
            )
        if self.info in _ADDRESSES:
            name = _ADDRESSES[self.info]
            value = "" if descriptor is None else f" {getattr(descriptor, name):#x}"
            return f"the {name} address{value} must be a multiple of 64 within the address width"
        if descriptor is None or self.info not in _WORDS:
            return "a value that is not allowed"
        one_hot = descriptor.count * descriptor.num_tables
        return _WORDS[self.info].format(d=descriptor, one_hot=one_hot)


class IndexRangeError(CommandError):
    """INDEX_RANGE; :attr:`table` and :attr:`row` say which index is wrong."""

    @property
    def table(self) -> int:
        """Table of the first bad index."""
        return self.info >> 32

    @property
    def row(self) -> int:
        """Row of the first bad index."""
        return self.info & 0xFFFFFFFF

    def _reason(self) -> str:
        return (
            f"row {self.row} of table {self.table} does not exist, or the slot that a record "
            f"gives it does not"
            if self.opcode == Opcode.FILL
            else f"row {self.row} of table {self.table} does not exist"
        )


class BusReadError(CommandError):
    """BUS_READ; `info` is the start address of the burst."""

    def _reason(self) -> str:
        return f"the memory answered the read of {self.info:#x} with an error"


class BusWriteError(CommandError):
    """BUS_WRITE; `info` is the start address of the burst."""

    def _reason(self) -> str:
        return f"the memory answered the write to {self.info:#x} with an error"


class AddressWindowError(CommandError):
    """ADDR_WINDOW; `info` is the start address of the burst that was not issued."""

    def _reason(self) -> str:
        return f"the burst at {self.info:#x} does not lie in one of the enabled address windows"


class NotCommittedError(CommandError):
    """NOT_COMMITTED."""

    def _reason(self) -> str:
        return "LEARN or LOAD has changed the hot table since the last COMMIT"


class LengthsError(CommandError):
    """LENGTHS; `info` is the length of a sample, or a sum of lengths."""

    def _reason(self) -> str:
        keys = "" if self.descriptor is None else f" {self.descriptor.num_keys}"
        return (
            f"the bag lengths do not fit: they add up to {self.info} instead of num_keys{keys}, "
            f"or one sample has {self.info} keys, more than max_sample_keys"
        )


class CommandSkippedError(RuntimeError):
    """A command was not run, because one that it needs has failed.

    Members
    -------
    cause : Exception
        Why the other one failed.
    """

    def __init__(self, opcode: int, needed: int, cause: Exception) -> None:
        self.cause = cause
        super().__init__(
            f"{command_name(opcode)} was not run, because {command_name(needed)}, which it needs, "
            f"did not succeed: {cause}"
        )


_CLASSES: dict[StatusCode, type[CommandError]] = {
    StatusCode.BAD_OPCODE: BadOpcodeError,
    StatusCode.BAD_DESCRIPTOR: BadDescriptorError,
    StatusCode.INDEX_RANGE: IndexRangeError,
    StatusCode.BUS_READ: BusReadError,
    StatusCode.BUS_WRITE: BusWriteError,
    StatusCode.ADDR_WINDOW: AddressWindowError,
    StatusCode.NOT_COMMITTED: NotCommittedError,
    StatusCode.LENGTHS: LengthsError,
}


def command_error(status: StatusCode, info: int, descriptor: Descriptor) -> CommandError:
    """The exception for what a device has reported about `descriptor`."""
    return _CLASSES[status](status, info, descriptor.opcode, descriptor)


def command_name(opcode: int) -> str:
    """What to call a command in a message."""
    return Opcode(opcode).name if opcode in set(Opcode) else f"opcode {opcode:#04x}"
