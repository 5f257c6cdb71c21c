"""Descriptors, completion records and the regions of SPLIT as data (spec section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hotline.gen.commands import DESCRIPTOR_BYTES, Flag, Opcode, StatusCode

__all__ = ["Completion", "Descriptor", "Flag", "Opcode", "Regions", "StatusCode"]


@dataclass(kw_only=True)
class Descriptor:
    """A descriptor; the members are the fields of section 7, addresses in bytes."""

    opcode: int
    flags: int = 0
    tag: int = 0
    count: int = 0
    num_tables: int = 0
    num_keys: int = 0
    indices: int = 0
    lengths: int = 0
    lists: int = 0
    rows: int = 0
    weights: int = 0
    completion: int = 0

    def pack(self) -> np.ndarray:
        """The 64 bytes: uint8 [64]."""
        head = [self.opcode | self.flags << 8 | self.tag << 16]
        head += [self.count, self.num_tables, self.num_keys]
        addresses = [self.indices, self.lengths, self.lists, self.rows, self.weights]
        addresses.append(self.completion)
        packed = np.array(head, "<u4").tobytes() + np.array(addresses, "<u8").tobytes()
        return np.frombuffer(packed, np.uint8).copy()

    @classmethod
    def unpack(cls, data: np.ndarray | bytes) -> Descriptor:
        """Descriptor from its 64 bytes."""
        raw = bytes(data)
        head = np.frombuffer(raw, "<u4", 4).tolist()
        addresses = np.frombuffer(raw, "<u8", 6, 16).tolist()
        names = ("indices", "lengths", "lists", "rows", "weights", "completion")
        return cls(
            opcode=head[0] & 0xFF,
            flags=head[0] >> 8 & 0xFF,
            tag=head[0] >> 16,
            count=head[1],
            num_tables=head[2],
            num_keys=head[3],
            **dict(zip(names, addresses, strict=True)),
        )


@dataclass(kw_only=True)
class Completion:
    """A completion record; `words` 1 to 6 in order, `cycles` and `info` of 64 bits."""

    status: int
    opcode: int
    tag: int = 0
    words: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)
    cycles: int = 0
    info: int = 0
    valid: int = 1

    def pack(self) -> np.ndarray:
        """The 64 bytes: uint8 [64]."""
        words = np.zeros(DESCRIPTOR_BYTES // 4, "<u4")
        words[0] = self.status | self.opcode << 8 | self.tag << 16
        words[1:7] = self.words
        words[8:12] = np.array([self.cycles, self.info], "<u8").view("<u4")
        words[15] = self.valid
        return words.view(np.uint8)

    @classmethod
    def unpack(cls, data: np.ndarray | bytes) -> Completion:
        """Record from its 64 bytes."""
        words = np.frombuffer(bytes(data), "<u4", 16).tolist()
        return cls(
            status=words[0] & 0xFF,
            opcode=words[0] >> 8 & 0xFF,
            tag=words[0] >> 16,
            words=tuple(words[1:7]),
            cycles=words[8] | words[9] << 32,
            info=words[10] | words[11] << 32,
            valid=words[15],
        )


class Regions(NamedTuple):
    """Addresses in bytes of the five regions of SPLIT, and the end of the last."""

    popular: int
    nonpopular: int
    popular_slots: int
    nonpopular_slots: int
    keys: int
    end: int

    @classmethod
    def of(cls, lists: int, count: int, num_keys: int) -> Regions:
        """The regions from `lists` on, for `count` samples with `num_keys` indices in all."""
        addresses = [lists]
        for size in (4 * count, 4 * count, 4 * num_keys, 4 * num_keys, 8 * num_keys):
            addresses.append(addresses[-1] + -(-size // 64) * 64)
        return cls(*addresses)
