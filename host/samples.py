"""Samples where the device can read them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hotline.gen.commands import Opcode
from hotline.golden.descriptor import Descriptor
from hotline.host.batch import Batch
from hotline.host.device_memory import Buffer, DeviceMemory

__all__ = ["Samples"]


@dataclass(frozen=True)
class Samples:
    """Samples in device memory, as LEARN and SPLIT take them.

    Parameters
    ----------
    count, num_tables, num_keys : int
        Samples, tables, indices in all.
    indices : int
        Address of the indices.
    lengths_address : int
        Address of the bag lengths, 0 for one-hot.
    lengths : np.ndarray or None
        The bag lengths, uint16 [count, num_tables].
    weights : int
        Address of the weights, 0 if there are none.
    mapped : tuple of int
        Addresses that were mapped for these samples alone.
    """

    count: int
    num_tables: int
    num_keys: int
    indices: int
    lengths_address: int = 0
    lengths: np.ndarray | None = None
    weights: int = 0
    mapped: tuple[int, ...] = ()

    @classmethod
    def place(
        cls,
        indices: np.ndarray,
        num_tables: int,
        lengths: np.ndarray | None,
        index_buffer: Buffer,
        length_buffer: Buffer | None,
    ) -> Samples:
        """Copy samples into device buffers that are large enough.

        Parameters
        ----------
        indices : np.ndarray
            Rows, uint32 [num_keys], sample-major.
        num_tables : int
            Tables.
        lengths : np.ndarray or None
            Bag lengths, uint16 [count, num_tables]; None for one-hot.
        index_buffer, length_buffer : Buffer
            Where to; the second one may be None if there are no lengths.
        """
        index_buffer.data[: 4 * len(indices)] = np.ascontiguousarray(indices).view(np.uint8)
        if lengths is None:
            count = len(indices) // num_tables
            return cls(count, num_tables, len(indices), index_buffer.address)
        if length_buffer is None:
            raise ValueError("bags of several rows need a buffer for their lengths")
        bags = np.ascontiguousarray(lengths).reshape(-1).view(np.uint8)
        length_buffer.data[: len(bags)] = bags
        return cls(
            len(lengths),
            num_tables,
            len(indices),
            index_buffer.address,
            length_buffer.address,
            lengths,
        )

    @classmethod
    def in_place(cls, batch: Batch, memory: DeviceMemory) -> Samples:
        """Let the device read a batch where it is; nothing is copied.

        An array inside mapped memory is used through that mapping if it starts at a multiple of 64
        bytes there; any other gets a mapping of its own, which :meth:`release` takes back.
        """
        mapped: list[int] = []

        def address(array: np.ndarray) -> int:
            known = memory.address_of(array) if array.size else None
            if known is None:
                known = memory.map(array)
                mapped.append(known)
            return known

        samples = cls(batch.count, batch.num_tables, len(batch.indices), address(batch.indices))
        if batch.lengths is not None:
            lengths = address(batch.lengths)
            samples = replace(samples, lengths_address=lengths, lengths=batch.lengths)
        if batch.weights is not None:
            samples = replace(samples, weights=address(batch.weights))
        return replace(samples, mapped=tuple(mapped))

    def release(self, memory: DeviceMemory) -> None:
        """Take the mappings back that were made for these samples."""
        for address in self.mapped:
            memory.unmap(address)

    def describe(self, opcode: Opcode) -> Descriptor:
        """A descriptor for these samples."""
        return Descriptor(
            opcode=opcode,
            count=self.count,
            num_tables=self.num_tables,
            num_keys=self.num_keys,
            indices=self.indices,
            lengths=self.lengths_address,
            weights=self.weights,
        )
