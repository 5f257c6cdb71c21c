"""A simulated device with its tables, hot buffers and lists, for measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hotline.gen.config import Config
from hotline.golden.descriptor import Completion
from hotline.host.backends import RtlBackend
from hotline.host.bench_limits import Observed
from hotline.host.device import Buffer, Device, Samples, table_bases
from hotline.host.efficiency import Beats, region_beats, row_beats
from hotline.host.verilated import BusTiming

__all__ = ["HOT_ROW", "Rig"]

#: Bit 63 of an entry of a `keys` list: a hot row.
HOT_ROW = np.uint64(1 << 63)
#: Bytes to spare for tables, so that other lengths of rows in as much memory fit the same buffer.
_SPARE = 1 << 20


class Rig:
    """A device in simulation, its memory, and what a command on it needs.

    Entries of `keys` lists are uint64, (table << 32) + row, as in spec section 7. Memory that is
    never written costs the host nothing, so tables may be as large as real ones.

    Parameters
    ----------
    config : Config
        What to simulate.
    read_latency : int
        Of the memory, in cycles; the rest is the memory model of spec section 9.

    Members
    -------
    device : Device
        The driver.
    read_latency, write_latency : int
        Of the memory as it answers now.
    row_bytes : int
        Of the tables as they are set.
    loaded : object
        Whatever :meth:`load` was last called for; None if tables or hot table have changed since.
    """

    write_latency = 20

    def __init__(self, config: Config, read_latency: int = 200) -> None:
        self.config = config
        self.read_latency = read_latency
        timing = BusTiming(read_latency, self.write_latency)
        self.backend = RtlBackend(config, timing=timing)
        self.device = Device(self.backend)
        self.loaded: object = None
        self._buffers: dict[str, Buffer] = {}
        self._bases = np.zeros(0, np.uint64)
        self._most_tables = 0
        self.row_bytes = 0

    def close(self) -> None:
        """Free the simulation."""
        self.backend.close()

    @property
    def tables(self) -> int:
        """Number of tables as they are set."""
        return len(self._bases)

    # ---- memory -------------------------------------------------------------------------------

    def buffer(self, name: str, size: int, spare: int = 0) -> Buffer:
        """The buffer of this name, of at least `size` bytes; a new one gets some to spare."""
        found = self._buffers.get(name)
        if found is None or found.data.size < size:
            found = self._buffers[name] = self.device.allocate(size + spare)
        return found

    def set_read_latency(self, cycles: int) -> None:
        """Change how late the memory answers reads."""
        self.read_latency = cycles
        self.backend.set_timing(BusTiming(cycles, self.write_latency))

    def set_tables(self, rows: Sequence[int], row_bytes: int, offset: int = 0) -> None:
        """Place tables of `rows` rows each; row 0 lies `offset` bytes after a multiple of 64."""
        bases = table_bases(rows, row_bytes)
        tables = self.buffer("tables", int(bases[-1]) + offset, _SPARE)
        self._bases = bases[:-1].astype(np.uint64) + np.uint64(tables.address + offset)
        for table, count in enumerate(rows):
            self.device.set_table(table, int(self._bases[table]), int(count), row_bytes)
        # Long rows of tables that are not used now would forbid a short HOT_STRIDE.
        for table in range(len(rows), self._most_tables):
            self.device.set_table(table, 0, 0, 4)
        self.row_bytes, self.loaded = row_bytes, None
        self._most_tables = max(self._most_tables, len(rows))

    def set_hot_buffers(self, gpus: int) -> None:
        """Hot buffers of `gpus` GPUs for rows as they are set."""
        stride = -(-self.row_bytes // 64) * 64
        buffers = [self.buffer(f"hot {gpu}", self.config.slots * stride) for gpu in range(gpus)]
        self.device.set_hot_buffers([buffer.address for buffer in buffers], stride)

    def put(self, name: str, content: np.ndarray) -> Buffer:
        """A buffer that begins with `content`."""
        buffer = self.buffer(name, content.nbytes)
        buffer.data[: content.nbytes] = content.reshape(-1).view(np.uint8)
        return buffer

    def samples(
        self, indices: np.ndarray, tables: int, lengths: np.ndarray | None = None
    ) -> Samples:
        """Samples in device memory: uint32 rows, and uint16 [n, tables] unless one-hot."""
        return Samples.place(
            indices,
            tables,
            lengths,
            self.buffer("indices", 4 * len(indices)),
            self.buffer("lengths", 0 if lengths is None else lengths.nbytes),
        )

    # ---- hot table ----------------------------------------------------------------------------

    def load(self, keys: np.ndarray, owner: object, *, commit: bool = True) -> None:
        """Empty the hot table and LOAD `keys` (key integers).

        Without `commit` the slots stay marked as changed.
        """
        bits, mask = np.uint64(self.config.row_bits), np.uint64((1 << self.config.row_bits) - 1)
        keys = keys.astype(np.uint64)
        profile = self.put("profile", ((keys >> bits) << np.uint64(32)) | (keys & mask))
        self.device.clear()
        self.device.load(len(keys), profile.address)
        if commit:
            self.device.commit(self.buffer("records", 16 * self.config.slots))
        self.loaded = owner if commit else None

    # ---- measuring ----------------------------------------------------------------------------

    def observe(self, command: Callable[[], Completion]) -> Observed:
        """Run one command, and see what it does on the bus."""
        before = self.device.counters()
        self.backend.clear_statistics()
        done = command()
        bus = self.backend.statistics
        after = self.device.counters()
        return Observed(
            cycles=done.cycles,
            read_beats=bus.read_beats,
            read_bursts=bus.read_bursts,
            read_stalls=bus.read_stalls,
            write_beats=bus.write_beats,
            write_bursts=bus.write_bursts,
            write_stalls=bus.write_stalls,
            bank_stalls=after["BANK_STALLS"] - before["BANK_STALLS"],
        )

    def home_beats(self, keys: np.ndarray) -> int:
        """Beats that the rows of `keys` touch where they live, hot ones in the hot buffers."""
        cold = keys[keys < HOT_ROW]
        tables, rows = cold >> np.uint64(32), cold & np.uint64(0xFFFFFFFF)
        addresses = self._bases[tables.astype(np.int64)] + rows * np.uint64(self.row_bytes)
        beats = row_beats(self.config, addresses, np.full(len(cold), self.row_bytes))
        return beats + self.dense_beats(len(keys) - len(cold))

    def dense_beats(self, rows: int) -> int:
        """Beats of so many rows in a dense buffer, or in a hot buffer."""
        return rows * region_beats(self.config, self.row_bytes)

    def sample_beats(self, samples: Samples) -> Beats:
        """Beats of indices and bag lengths."""
        lengths = 0 if samples.lengths is None else samples.lengths.nbytes
        return Beats(region_beats(self.config, 4 * samples.num_keys, lengths))
