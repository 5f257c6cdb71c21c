"""A pair of devices, RTL and golden, for commands that fail."""

from __future__ import annotations

import numpy as np
from harness.pair import Pair
from harness.traffic import Traffic
from system_configs import SYSTEM_CONFIGS

from hotline.gen.commands import Flag, Opcode, StatusCode
from hotline.golden.descriptor import Completion, Descriptor, Regions
from hotline.host.device import CommandError


class Scene:
    """A pair with tables, a committed hot table, and good descriptors of every kind."""

    def __init__(self, name: str, seed: int) -> None:
        self.config = SYSTEM_CONFIGS[name]
        rng = np.random.default_rng(seed)
        self.pair = Pair(self.config, rng, random_state=True)
        self.traffic = Traffic(self.pair, rng, tables=4, rows=30, row_bytes=40)
        self.traffic.learn(24, one_hot=True)
        self.traffic.commit()

    def samples(self, opcode: Opcode, *, one_hot: bool = True, count: int = 20) -> Descriptor:
        """A good LEARN or SPLIT."""
        descriptor = self.traffic.samples(count, one_hot=one_hot, longest=2)
        descriptor.opcode = opcode
        if opcode == Opcode.SPLIT:
            descriptor.lists = self.pair.allocate(Regions.of(0, count, descriptor.num_keys).end)
            descriptor.flags = int(Flag.SPLIT_GATHER)
            descriptor.rows = self.pair.allocate(descriptor.num_keys * self.traffic.stride)
        return descriptor

    def move(self, opcode: Opcode, count: int = 12) -> Descriptor:
        """A good GATHER, SCATTER or LOAD."""
        pair, tables = self.pair, np.arange(count) % 4
        rows = self.traffic.rng.integers(0, self.traffic.rows[tables])
        descriptor = Descriptor(opcode=opcode, count=count, num_tables=4)
        descriptor.lists = pair.allocate(8 * count)
        pair.put(descriptor.lists, (tables.astype(np.uint64) << np.uint64(32)) | rows.astype("u8"))
        descriptor.rows = pair.allocate(count * self.traffic.stride)
        return descriptor

    def fails(
        self,
        descriptor: Descriptor,
        status: StatusCode,
        info: int | None = None,
        *,
        same_info: bool = True,
    ) -> CommandError:
        """The descriptor fails on both sides as said; then everything still works."""
        error = self.pair.execute(descriptor, same_info=same_info)
        assert isinstance(error, CommandError), f"{status.name} expected, the command succeeded"
        assert error.status == status, str(error)
        if info is not None:
            assert error.info == info, str(error)
        self.pair.clear_errors()
        self.pair.window(0, 0, (1 << self.config.addr_width) - 1)
        assert isinstance(self.pair.execute(Descriptor(opcode=Opcode.NOP)), Completion)
        self.traffic.commit()
        mark = self.pair.mark
        assert isinstance(self.traffic.split(10, True, one_hot=True), Completion)
        self.pair.release(mark)
        return error

    def break_bus(self, address: int) -> None:
        """Let a word answer SLVERR."""
        self.pair.add_error(address, address + 3)

    def poke(self, address: int, position: int, value: int, dtype: type) -> None:
        """Overwrite one item of an array in memory."""
        self.pair.put(address + position * np.dtype(dtype).itemsize, np.array([value], dtype))
