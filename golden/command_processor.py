"""Every command of spec section 7, checked and carried out on a memory image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hotline.gen.config import Config
from hotline.golden.bus import Bus, Fault
from hotline.golden.descriptor import Descriptor, Flag, Opcode, StatusCode
from hotline.golden.descriptor_checker import DescriptorChecker
from hotline.golden.fill import HotFill
from hotline.golden.gather import GatherDMA, HotBuffers
from hotline.golden.hot_table import HotTable
from hotline.golden.key_stream import KeyStream, Samples
from hotline.golden.outcome import CommandError, Outcome, require, spans
from hotline.golden.registers import Registers
from hotline.golden.row_mover import unpack_keys
from hotline.golden.scatter import ScatterDMA
from hotline.golden.split import LastSplit, Split
from hotline.golden.tables import Tables

__all__ = ["CommandProcessor"]


class CommandProcessor:
    """Runs descriptors; knows the hot table and the last SPLIT, not the ring.

    Parameters
    ----------
    config : Config
        The configuration.
    bus : Bus
        The memory, with the windows.
    registers : Registers
        Tables, hot buffers and GPUs.
    """

    def __init__(self, config: Config, bus: Bus, registers: Registers) -> None:
        self.config = config
        self.bus = bus
        self.registers = registers
        self.hot_table = HotTable(config)
        self.checker = DescriptorChecker(config)
        self.last_split: LastSplit | None = None
        self._run: dict[int, Callable[[Descriptor, Outcome], None]] = {
            Opcode.NOP: lambda descriptor, outcome: None,
            Opcode.LEARN: self._learn,
            Opcode.COMMIT: self._commit,
            Opcode.SPLIT: self._split,
            Opcode.SCATTER: self._scatter,
            Opcode.LOAD: self._load,
            Opcode.CLEAR: lambda descriptor, outcome: self.hot_table.clear(),
            Opcode.AGE: lambda descriptor, outcome: self.hot_table.age(),
            Opcode.GATHER: self._gather,
            Opcode.FILL: self._fill,
        }

    def reset(self) -> None:
        """As after aresetn."""
        self.hot_table.clear()
        self.last_split = None

    def execute(self, descriptor: Descriptor) -> Outcome:
        """Check a descriptor and do what it says."""
        last, outcome = self.last_split, Outcome()
        outcome.status, outcome.info = self.checker.check(
            descriptor, self.hot_table.dirty, last is not None
        )
        if descriptor.opcode == Opcode.SPLIT:
            self.last_split = None
        if outcome.status != StatusCode.OK:
            return outcome
        if last and descriptor.opcode == Opcode.GATHER and descriptor.flags & Flag.GATHER_LAST:
            descriptor = replace(descriptor, lists=last.keys, count=last.rows)
        try:
            self._run[descriptor.opcode](descriptor, outcome)
        except CommandError as failed:
            return Outcome(failed.fault.status, failed.fault.info, undefined=outcome.undefined)
        outcome.undefined = []
        return outcome

    @property
    def tables(self) -> Tables:
        """The TABLE_* registers."""
        return Tables(
            self.config,
            self.registers.wide_column("TABLE_BASE"),
            self.registers.column("TABLE_ROWS"),
            self.registers.column("TABLE_ROW_BYTES"),
        )

    @property
    def hot_buffers(self) -> HotBuffers:
        """The HOT_* registers of the GPUs that take part."""
        gpus = self.registers.get("GPU_COUNT")
        stride = self.registers.get("HOT_STRIDE")
        return HotBuffers(self.registers.wide_column("HOT_BASE")[:gpus], stride)

    def _stream(self) -> KeyStream:
        return KeyStream(self.config, self.bus, self.tables)

    def _samples(self, descriptor: Descriptor) -> Samples:
        return self._stream().samples(
            descriptor.count,
            descriptor.num_tables,
            descriptor.num_keys,
            descriptor.indices,
            descriptor.lengths,
        )

    def _split(self, descriptor: Descriptor, outcome: Outcome) -> None:
        split = Split(self.bus, self.tables, self.hot_buffers, self.hot_table)
        self.last_split = split.run(descriptor, outcome)

    def _learn(self, descriptor: Descriptor, outcome: Outcome) -> None:
        if descriptor.count == 0:
            return
        self.hot_table.dirty = True
        samples = self._samples(descriptor)
        offsets = samples.offsets
        if samples.fault is not None:
            # Whole groups before the offending sample's.
            group = self.config.learn_group
            offsets = offsets[: samples.fault.position // group * group + 1]
        keys = self.hot_table.hash.key(samples.table, samples.row)
        hits, misses = self.hot_table.learn(keys, offsets)
        require(samples.fault)
        outcome.words = (0, 0, 0, hits, misses, 0)

    def _load(self, descriptor: Descriptor, outcome: Outcome) -> None:
        if descriptor.count == 0:
            return
        self.hot_table.dirty = True
        words, fault = self._stream().list(descriptor.lists, descriptor.count, 2)
        table, row = words[:, 1].astype(np.int64), words[:, 0].astype(np.int64)
        fault = self.tables.first_bad(table, row, self.config.max_tables) or fault
        good = len(table) if fault is None else fault.position
        taken = self.hot_table.load(self.hot_table.hash.key(table[:good], row[:good]))
        require(fault)
        outcome.words = (taken, 0, 0, 0, 0, 0)

    def _commit(self, descriptor: Descriptor, outcome: Outcome) -> None:
        records = self.hot_table.peek(bool(descriptor.flags & Flag.COMMIT_ALL))
        outcome.undefined = [(descriptor.lists, 16 * len(records))]
        require(self.bus.linear(descriptor.lists, 16 * len(records), write=True))
        copied = 0
        if descriptor.flags & Flag.COMMIT_FILL:
            slot, table, row = records[:, :3].astype(np.int64).T
            fault = self.tables.first_bad(table, row, self.config.max_tables)
            self._copy_hot(slot, table, row, False, fault, outcome)
            copied = len(records)
        self.bus.memory.write(descriptor.lists, records.astype("<u4"))
        self.hot_table.finish_commit()
        outcome.words = (len(records), 0, copied, 0, 0, 0)

    def _fill(self, descriptor: Descriptor, outcome: Outcome) -> None:
        if descriptor.count == 0:
            return
        words, fault = self._stream().list(descriptor.lists, descriptor.count, 4)
        slot, table, row = words[:, :3].astype(np.int64).T
        in_range = np.where(slot < self.config.slots, table, self.config.max_tables)
        bad = self.tables.first_bad(in_range, row, self.config.max_tables)
        if bad is not None:
            at = bad.position
            fault = Fault(at, StatusCode.INDEX_RANGE, (int(table[at]) << 32) + int(row[at]))
        back = bool(descriptor.flags & Flag.FILL_BACK)
        self._copy_hot(slot, table, row, back, fault, outcome)
        outcome.words = (descriptor.count, 0, descriptor.count, 0, 0, 0)

    def _copy_hot(
        self,
        slot: np.ndarray,
        table: np.ndarray,
        row: np.ndarray,
        back: bool,
        fault: Fault | None,
        outcome: Outcome,
    ) -> None:
        """Copy the records before `fault`, or fail."""
        good = len(slot) if fault is None else fault.position
        slot, table, row = slot[:good], table[:good], row[:good]
        tables, buffers = self.tables, self.hot_buffers
        fault = HotFill(self.bus, tables, buffers).copy(slot, table, row, back, fault)
        if fault is not None:
            sizes = tables.row_bytes[table]
            targets = [tables.home(table, row)]
            if not back:
                gpus = range(len(buffers.base))
                targets = [buffers.address(np.full_like(slot, gpu), slot) for gpu in gpus]
            for target in targets:
                outcome.undefined += spans(target, sizes)
        require(fault)

    def _keys(
        self, descriptor: Descriptor
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Fault | None]:
        """(table, row, number) of the rows of a `keys` list that are not hot, up to a fault."""
        words, fault = self._stream().list(descriptor.lists, descriptor.count, 2)
        table, row, hot = unpack_keys(words)
        number = np.flatnonzero(~hot)
        bad = self.tables.first_bad(table[number], row[number], descriptor.num_tables)
        if bad is not None:
            fault = Fault(int(number[bad.position]), bad.status, bad.info)
            number = number[: bad.position]
        if fault is not None:
            # Positions of rows count the copied ones from here on.
            fault = Fault(len(number), fault.status, fault.info)
        return table[number], row[number], number, fault

    def _gather(self, descriptor: Descriptor, outcome: Outcome) -> None:
        if descriptor.count == 0:
            return
        tables = self.tables
        stride = tables.stride(descriptor.num_tables)
        outcome.undefined = [(descriptor.rows, descriptor.count * stride)]
        table, row, number, fault = self._keys(descriptor)
        home = tables.home(table, row)
        gather = GatherDMA(self.bus, tables)
        require(gather.copy(home, table, number, descriptor.rows, stride, fault))
        outcome.words = (0, 0, len(number), 0, 0, 0)
        outcome.counts = {"ROWS_GATHERED": len(number)}

    def _scatter(self, descriptor: Descriptor, outcome: Outcome) -> None:
        if descriptor.count == 0:
            return
        tables = self.tables
        stride = tables.stride(descriptor.num_tables)
        table, row, number, fault = self._keys(descriptor)
        add = bool(descriptor.flags & Flag.SCATTER_ADD)
        fault = ScatterDMA(self.bus, tables).copy(
            table, row, number, descriptor.rows, stride, add, fault
        )
        if fault is not None:
            outcome.undefined = spans(tables.home(table, row), tables.row_bytes[table])
        require(fault)
        outcome.words = (0, 0, len(number), 0, 0, 0)
