"""Random command sequences for a :class:`~harness.pair.Pair`."""

from __future__ import annotations

import numpy as np

from harness.pair import Pair, Table
from hotline.gen.commands import Flag, Opcode
from hotline.golden.descriptor import Completion, Descriptor, Regions
from hotline.host.device import CommandError

__all__ = ["Traffic"]


class Traffic:
    """Tables, samples and commands drawn from one generator.

    Parameters
    ----------
    pair : Pair
        The devices; their tables are programmed here.
    rng : np.random.Generator
        All choices.
    tables : int
        Tables to use.
    rows : int
        Rows of the largest; few rows make hits and shared rows frequent.
    row_bytes : int
        Longest row, a multiple of 4.
    """

    def __init__(
        self, pair: Pair, rng: np.random.Generator, *, tables: int, rows: int, row_bytes: int
    ) -> None:
        self.pair, self.rng, self.config = pair, rng, pair.config
        self.num_tables = tables
        for number in range(tables):
            count = int(rng.integers(1, rows + 1))
            size = 4 * int(rng.integers(1, row_bytes // 4 + 1))
            base = pair.allocate(count * size, align=4)
            pair.set_table(number, Table(base, count, size))
        self.rows = np.array([table.rows for table in pair.tables], np.int64)
        self.stride = self.config.row_stride(max(table.row_bytes for table in pair.tables))
        longest = max(table.row_bytes for table in pair.tables)
        self.hot_stride = -(-longest // 64) * 64 + 64 * int(rng.integers(2))
        gpus = int(rng.integers(1, self.config.gpus + 1))
        size = self.config.slots * self.hot_stride
        self.hot_bases = [pair.allocate(size) for _ in range(gpus)]
        pair.set_hot_buffers(self.hot_bases, self.hot_stride)
        self._floor = pair.mark
        self.last: Regions | None = None
        self.last_keys = 0

    # ---- data ---------------------------------------------------------------------------------

    def samples(self, count: int, *, one_hot: bool, longest: int = 3) -> Descriptor:
        """Random samples in memory; a descriptor with their fields. Skewed towards low rows."""
        rng, pair, tables = self.rng, self.pair, self.num_tables
        if one_hot:
            lengths = np.ones((count, tables), np.int64)
        else:
            lengths = rng.integers(0, longest + 1, (count, tables))
            # A few long samples, up to the longest that is allowed.
            limit = self.config.max_sample_keys
            over = lengths.sum(axis=1) > limit
            lengths[over] = 0
            if count and rng.random() < 0.5:
                sample, table = int(rng.integers(count)), int(rng.integers(tables))
                lengths[sample, table] += limit - lengths[sample].sum()
        table_of = np.repeat(np.tile(np.arange(tables), count), lengths.ravel())
        draw = rng.random(len(table_of)) ** 3
        indices = (draw * self.rows[table_of]).astype(np.uint32)
        address = pair.allocate(max(64, 4 * len(indices)))
        pair.put(address, indices)
        descriptor = Descriptor(
            opcode=Opcode.NOP,
            count=count,
            num_tables=tables,
            num_keys=len(indices),
            indices=address,
            tag=int(rng.integers(1 << 16)),
        )
        if not one_hot:
            descriptor.lengths = pair.allocate(max(64, 2 * lengths.size))
            pair.put(descriptor.lengths, lengths.astype(np.uint16))
        return descriptor

    # ---- commands -----------------------------------------------------------------------------

    def learn(self, count: int, **shape: bool) -> Completion | CommandError:
        """LEARN random samples."""
        descriptor = self.samples(count, **shape)
        descriptor.opcode = Opcode.LEARN
        return self.pair.execute(descriptor)

    def commit(self, everything: bool = False, fill: bool = False) -> Completion | CommandError:
        """COMMIT to fresh memory."""
        lists = self.pair.allocate(16 * self.config.slots)
        flags = Flag.COMMIT_ALL * everything | Flag.COMMIT_FILL * fill
        return self.pair.execute(Descriptor(opcode=Opcode.COMMIT, flags=flags, lists=lists))

    def split(
        self,
        count: int,
        gather: bool,
        *,
        gather_hot: bool = False,
        pool: bool = False,
        weighted: bool = False,
        **shape: bool | int,
    ) -> Completion | CommandError:
        """SPLIT random samples; `pool` and `weighted` with random weights go with `gather`."""
        descriptor = self.samples(count, **shape)
        descriptor.opcode = Opcode.SPLIT
        regions = Regions.of(0, count, descriptor.num_keys)
        descriptor.lists = self.pair.allocate(regions.end)
        if gather:
            descriptor.flags = (
                Flag.SPLIT_GATHER | Flag.SPLIT_GATHER_HOT * gather_hot | Flag.SPLIT_POOL * pool
            )
            vectors = count * self.num_tables if pool else descriptor.num_keys
            descriptor.rows = self.pair.allocate(max(64, vectors * self.stride))
            if pool and weighted:
                weights = self.rng.standard_normal(descriptor.num_keys).astype(np.float32)
                descriptor.weights = self.pair.allocate(max(64, weights.nbytes))
                self.pair.put(descriptor.weights, weights)
        done = self.pair.execute(descriptor)
        if isinstance(done, Completion) and not gather_hot:
            self.last = Regions.of(descriptor.lists, count, descriptor.num_keys)
            self.last_keys = done.words[2]
        else:
            self.last = None
        return done

    def move(
        self, opcode: Opcode, count: int, *, last: bool = False, add: bool = False
    ) -> Completion | CommandError:
        """GATHER or SCATTER a random list, or GATHER LAST; some of its rows marked hot."""
        rng, pair = self.rng, self.pair
        descriptor = Descriptor(opcode=opcode, count=count, num_tables=self.num_tables)
        descriptor.flags = Flag.SCATTER_ADD * add
        if last:
            descriptor.flags, count = int(Flag.GATHER_LAST), self.last_keys
        else:
            tables = rng.integers(0, self.num_tables, count)
            # With ADD the same rows come again and again.
            rows = (rng.random(count) ** (1 + 5 * add) * self.rows[tables]).astype(np.uint64)
            keys = (tables.astype(np.uint64) << np.uint64(32)) | rows
            keys |= (rng.random(count) < 0.1).astype(np.uint64) << np.uint64(63)
            descriptor.lists = pair.allocate(max(64, 8 * count))
            pair.put(descriptor.lists, keys)
        descriptor.rows = pair.allocate(max(64, count * self.stride))
        return pair.execute(descriptor)

    def fill(self, count: int, back: bool = False) -> Completion | CommandError:
        """FILL with random records, some slots more than once."""
        return self.pair.execute(self.records(count, back))

    def records(self, count: int, back: bool = False) -> Descriptor:
        """A FILL of random records; word 3 of a record does not matter."""
        rng = self.rng
        records = rng.integers(0, 1 << 32, (count, 4), np.uint32)
        records[:, 0] = rng.integers(0, self.config.slots, count)
        repeated = rng.random(count) < 0.2
        records[repeated, 0] = rng.integers(0, min(4, self.config.slots), repeated.sum())
        records[:, 1] = tables = rng.integers(0, self.num_tables, count)
        records[:, 2] = rng.random(count) * self.rows[tables]
        lists = self.pair.allocate(max(64, 16 * count))
        self.pair.put(lists, records)
        flags = Flag.FILL_BACK * back
        return Descriptor(opcode=Opcode.FILL, flags=flags, count=count, lists=lists)

    def load(self, count: int) -> Completion | CommandError:
        """LOAD random keys."""
        tables = self.rng.integers(0, self.num_tables, count)
        rows = (self.rng.random(count) * self.rows[tables]).astype(np.uint64)
        lists = self.pair.allocate(max(64, 8 * count))
        self.pair.put(lists, (tables.astype(np.uint64) << np.uint64(32)) | rows)
        return self.pair.execute(Descriptor(opcode=Opcode.LOAD, count=count, lists=lists))

    def any_command(self, most: int = 40) -> None:
        """One random command of at most `most` samples, rows or keys; memory is given back."""
        rng, mark = self.rng, self.pair.mark
        count, one_hot = int(rng.integers(0, most + 1)), bool(rng.random() < 0.5)
        choice = rng.choice(
            [
                "learn",
                "commit",
                "split",
                "gather",
                "last",
                "scatter",
                "add",
                "fill",
                "back",
                "load",
                "clear",
                "age",
                "nop",
            ],
            p=[0.2, 0.12, 0.24, 0.06, 0.06, 0.06, 0.06, 0.06, 0.04, 0.04, 0.02, 0.02, 0.02],
        )
        if choice == "learn":
            self.learn(count, one_hot=one_hot)
        elif choice == "commit":
            self.commit(everything=bool(rng.random() < 0.3), fill=bool(rng.random() < 0.4))
        elif choice == "split":
            gather, gather_hot = bool(rng.random() < 0.6), bool(rng.random() < 0.5)
            pool = gather and self.config.pool and bool(rng.random() < 0.5)
            weighted = bool(rng.random() < 0.5)
            self.split(
                count, gather, gather_hot=gather_hot, pool=pool, weighted=weighted, one_hot=one_hot
            )
        elif choice in ("fill", "back"):
            self.fill(count, back=choice == "back")
        elif choice == "last":
            self.move(Opcode.GATHER, count, last=True)
        elif choice == "add":
            self.move(Opcode.SCATTER, count, add=self.config.scatter_add)
        elif choice in ("gather", "scatter"):
            self.move(Opcode[choice.upper()], count)
        elif choice == "load":
            self.load(count)
        else:
            self.pair.execute(Descriptor(opcode=Opcode[choice.upper()]))
        # What the last SPLIT wrote stays, for GATHER LAST.
        if choice != "split":
            self.pair.release(mark)
        elif self.pair.mark > len(self.pair.rtl.memory) // 2:
            # The next commands may overwrite its list of keys: a GATHER LAST then reads the same
            # garbage on both sides, which is as good a test.
            self.pair.release(self._floor)
