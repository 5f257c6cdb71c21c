"""A host for tests of the golden model: a memory image with tables, and a ring."""

from __future__ import annotations

import numpy as np

from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.golden.accelerator import Hotline, Result
from hotline.golden.descriptor import Descriptor, Opcode, Regions
from hotline.golden.memory import Memory

RING, COMPLETION = 0x1000, 0x2000
INDICES, LENGTHS, WEIGHTS = 0x10000, 0x20000, 0x30000
LISTS, ROWS, TABLES, HOT = 0x60000, 0xA0000, 0x2000000, 0x4000000
HOT_SPACING = 0x2000000
FULL = preset("ecp5").replace(sets=16, dedup_entries=64, max_tables=4, gpus=2, learn_group=2)
SMALL = FULL.replace(pool=False, scatter_add=False)
SHAPES = [(50, 64), (300, 12), (7, 40)]


class GoldenHost:
    """Tables of given shapes, filled with random bits, and one command at a time.

    Parameters
    ----------
    config : Config
    shapes : list of (rows, row_bytes)
        The tables; their bases are aligned to 4 bytes only.
    seed : int
        Of the contents.
    low_bytes : int
        Size of the region at address 0, where ring, indices, lists and rows are.
    """

    def __init__(
        self,
        config: Config,
        shapes: list[tuple[int, int]],
        seed: int = 0,
        low_bytes: int = 0x100000,
    ) -> None:
        self.config = config
        self.memory = Memory()
        rng = np.random.default_rng(seed)
        self.low = self.memory.allocate(0, low_bytes)
        size = 64 + sum(rows * row_bytes + 64 for rows, row_bytes in shapes)
        self.high = self.memory.add_region(TABLES, rng.integers(0, 256, size, dtype=np.uint8))
        self.device = Hotline(config, self.memory)
        self.shapes = shapes
        self.bases: list[int] = []
        base = TABLES + 4
        for table, (rows, row_bytes) in enumerate(shapes):
            self.set("TABLE_SELECT", table)
            self.set_wide("TABLE_BASE", base)
            self.set("TABLE_ROWS", rows)
            self.set("TABLE_ROW_BYTES", row_bytes)
            self.bases.append(base)
            base += rows * row_bytes + 4
        self.set_wide("RING_BASE", RING)
        self.set("RING_LOG2", 3)
        self.stride = max(64, config.row_stride(max(bytes_ for _, bytes_ in shapes)))
        self.set("HOT_STRIDE", -(-self.stride // 64) * 64)
        for gpu in range(config.gpus):
            self.set("GPU_SELECT", gpu)
            self.set_wide("HOT_BASE", HOT + gpu * HOT_SPACING)
            self.memory.allocate(HOT + gpu * HOT_SPACING, config.slots * self.hot_stride)
        self.set("CONTROL", 1)

    @property
    def hot_stride(self) -> int:
        return self.get("HOT_STRIDE")

    def offset(self, name: str) -> int:
        return self.device.registers.by_name[name].offset

    def set(self, name: str, value: int) -> None:
        assert self.device.write_register(self.offset(name), value) == 0, name

    def set_wide(self, name: str, value: int) -> None:
        self.set(f"{name}_LO", value & 0xFFFFFFFF)
        self.set(f"{name}_HI", value >> 32)

    def get(self, name: str) -> int:
        value, response = self.device.read_register(self.offset(name))
        assert response == 0
        return value

    def push(self, descriptor: Descriptor) -> None:
        tail = self.get("RING_TAIL")
        self.memory.write(RING + 64 * tail, descriptor.pack())
        self.set("RING_TAIL", (tail + 1) % 8)

    def run(self, opcode: int, flags: int = 0, **fields: int) -> Result:
        """One command, with the usual addresses where none are given."""
        usual = {"indices": INDICES, "lists": LISTS, "rows": ROWS, "completion": COMPLETION}
        self.memory.write(COMPLETION, np.zeros(64, np.uint8))
        self.push(Descriptor(opcode=opcode, flags=flags, **usual | fields))
        (result,) = self.device.run()
        return result

    def samples(self, bags: list[list[list[int]]], one_hot: bool = False) -> dict[str, int]:
        """Write samples, given as bags of rows by table; returns the fields that name them."""
        flat = [row for sample in bags for bag in sample for row in bag]
        lengths = [len(bag) for sample in bags for bag in sample]
        self.memory.write(INDICES, np.array(flat, "<u4"))
        self.memory.write(LENGTHS, np.array(lengths, "<u2"))
        return {
            "count": len(bags),
            "num_tables": len(self.shapes),
            "num_keys": len(flat),
            "lengths": 0 if one_hot else LENGTHS,
        }

    def load(self, keys: list[tuple[int, int]]) -> Result:
        """LOAD keys, then COMMIT."""
        self.memory.write(LISTS, np.array([table << 32 | row for table, row in keys], "<u8"))
        result = self.run(Opcode.LOAD, count=len(keys))
        self.run(Opcode.COMMIT)
        return result

    def words(self, address: int, count: int) -> list[int]:
        return self.memory.read(address, 4 * count).view("<u4").tolist()

    def row(self, table: int, row: int) -> np.ndarray:
        size = self.shapes[table][1]
        return self.memory.read(self.bases[table] + row * size, size)

    def lists(self, fields: dict[str, int], words: tuple[int, ...], keys: int) -> dict:
        """The five lists that a SPLIT with record `words` wrote; `keys` of popular samples."""
        regions = Regions.of(LISTS, fields["count"], fields["num_keys"])
        pairs = self.memory.read(regions.keys, 8 * words[2]).view("<u8").tolist()
        return {
            "popular": self.words(regions.popular, words[0]),
            "nonpopular": self.words(regions.nonpopular, words[1]),
            "popular_slots": self.words(regions.popular_slots, keys),
            "nonpopular_slots": self.words(regions.nonpopular_slots, fields["num_keys"] - keys),
            "keys": pairs,
        }


def small_host(config: Config = SMALL, seed: int = 0) -> GoldenHost:
    """With tables of :data:`SHAPES`."""
    return GoldenHost(config, SHAPES, seed)
