"""The checks of spec section 7 that need no data, in their order."""

from __future__ import annotations

from hotline.gen.commands import is_built, known_flags
from hotline.gen.config import Config
from hotline.golden.descriptor import Descriptor, Flag, Opcode, StatusCode

__all__ = ["DescriptorChecker"]


class DescriptorChecker:
    """Says whether a descriptor may be executed.

    Parameters
    ----------
    config : Config
        Gives `addr_width`, `max_tables`, `pool`, `scatter_add`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def check(
        self, descriptor: Descriptor, dirty: bool, last_split: bool
    ) -> tuple[StatusCode, int]:
        """(status, info) of all checks that do not need the data.

        Parameters
        ----------
        descriptor : Descriptor
        dirty : bool
            The directory has uncommitted changes.
        last_split : bool
            There is a SPLIT that GATHER LAST can follow.
        """
        opcode = descriptor.opcode
        if opcode not in set(Opcode):
            return StatusCode.BAD_OPCODE, opcode
        word = self._bad_word(descriptor, last_split)
        if word is not None:
            return StatusCode.BAD_DESCRIPTOR, word
        if opcode == Opcode.SPLIT and dirty:
            return StatusCode.NOT_COMMITTED, 0
        return StatusCode.OK, 0

    def _bad_word(self, descriptor: Descriptor, last_split: bool) -> int | None:
        opcode, flags = descriptor.opcode, descriptor.flags
        samples = opcode in (Opcode.LEARN, Opcode.SPLIT)
        split = opcode == Opcode.SPLIT
        last = opcode == Opcode.GATHER and bool(flags & Flag.GATHER_LAST)
        gather = bool(flags & Flag.SPLIT_GATHER)
        if not is_built(self.config, Opcode(opcode)):
            return 0
        if flags & ~known_flags(self.config, Opcode(opcode)):
            return 0
        if split and flags & (Flag.SPLIT_GATHER_HOT | Flag.SPLIT_POOL) and not gather:
            return 0
        if last and not last_split:
            return 0
        tables = samples or opcode in (Opcode.SCATTER, Opcode.GATHER)
        if tables and not 1 <= descriptor.num_tables <= self.config.max_tables:
            return 2
        if samples:
            product = descriptor.count * descriptor.num_tables
            if descriptor.num_keys >= 1 << 31:
                return 3
            if descriptor.lengths == 0 and descriptor.num_keys != product:
                return 3
        listed = opcode in (Opcode.COMMIT, Opcode.SPLIT, Opcode.SCATTER, Opcode.LOAD, Opcode.FILL)
        used = {
            4: descriptor.indices if samples else 0,
            6: descriptor.lengths if samples else 0,
            8: descriptor.lists if listed or (opcode == Opcode.GATHER and not last) else 0,
            10: descriptor.rows
            if opcode in (Opcode.SCATTER, Opcode.GATHER) or (split and gather)
            else 0,
            12: descriptor.weights if split and flags & Flag.SPLIT_POOL else 0,
            14: descriptor.completion,
        }
        for word, address in used.items():
            if not self.reachable(address):
                return word
        return None

    def reachable(self, address: int) -> bool:
        """Whether an address of a descriptor is 64-byte aligned and within `addr_width`."""
        return address % 64 == 0 and address >> self.config.addr_width == 0
