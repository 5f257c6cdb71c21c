"""Everything between the command processor and the bus: the blocks and how they are joined."""

from __future__ import annotations

from functools import partial

from amaranth import Cat, Const, DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.commands import Opcode
from hotline.gen.config import Config
from hotline.rtl.absent import Absent
from hotline.rtl.axi import axi_read, axi_write
from hotline.rtl.classifier import LISTS, Classifier
from hotline.rtl.command_processor import results
from hotline.rtl.hot_table import HotTable, Sweep
from hotline.rtl.interfaces import (
    HotOp,
    Status,
    bus_address,
    hot_request,
    key_group,
    list_beat,
    read_beat,
    read_request,
    windows,
    write_beat,
)
from hotline.rtl.interfaces import hot_write as hot_write_layout
from hotline.rtl.interfaces import table_write as table_write_layout
from hotline.rtl.job_decoder import is_command, job
from hotline.rtl.key_stream import KeyStream
from hotline.rtl.learner import Learner
from hotline.rtl.list_writer import ListWriter
from hotline.rtl.read_engine import ReadEngine, read_buffer_beats
from hotline.rtl.register_slice import register_slice
from hotline.rtl.row_list_reader import RowListReader
from hotline.rtl.row_mover import Direction, RowMover
from hotline.rtl.weight_reader import WeightReader
from hotline.rtl.write_engine import WriteEngine

__all__ = ["Datapath", "read_port_depths"]

#: Ports of the read engine. The stream port serves descriptors, indices and key lists in turn.
_STREAM, _LENGTHS, _ROWS, _WEIGHTS = range(4)

#: Channels of the write engine: completion records, the lists of SPLIT, rows.
_CONTROL, _FIRST_LIST = 0, 1


def read_port_depths(config: Config) -> list[int]:
    """Beats of the read buffer of each port."""
    ports = (4 if config.pool else 3) if config.hot_table else 2
    return [read_buffer_beats(config)] * ports


class Datapath(wiring.Component):
    """The blocks of section 2 but registers and command processor.

    Members
    -------
    axi_r, axi_w : Out
        The AXI master.
    windows, table_write, hot_write, gpu_count
        From the registers.
    job, start, list_start, list_base, sweep, sweep_done, results, command_done
        See :class:`~hotline.rtl.command_processor.CommandProcessor`, whose counterparts these
        are; likewise the faults, `halt`, `flush`, `quiet` and `bus_quiet`.
    start_ready : Out(1)
        `start` may come: the store of seen keys is empty.
    fetch_request, fetch_data, fetching, record
        The command processor's own read port and write channel.
    table_busy : Out(1)
        The hot table is being cleared after reset.
    bank_stall : Out(1)
        A lane waits for a bank of the hot table.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "axi_r": Out(axi_read(config)),
                "axi_w": Out(axi_write(config)),
                "windows": In(windows(config)),
                "table_write": In(stream.Signature(table_write_layout(config))),
                "hot_write": In(stream.Signature(hot_write_layout(config))),
                "gpu_count": In(4),
                "job": In(job(config)),
                "start": In(1),
                "start_ready": Out(1),
                "list_start": In(len(LISTS)),
                "list_base": In(bus_address(config)),
                "sweep": In(stream.Signature(Sweep)),
                "sweep_done": Out(1),
                "learner_clear": In(1),
                "results": Out(results()),
                "command_done": Out(1),
                "fetch_request": In(stream.Signature(read_request(config))),
                "fetch_data": Out(stream.Signature(read_beat(config))),
                "fetch_fault_status": Out(Status),
                "fetch_fault_info": Out(64),
                "fetching": In(1),
                "record": In(stream.Signature(write_beat(config))),
                "fault": Out(1),
                "fault_status": Out(Status),
                "fault_info": Out(64),
                "write_idle": Out(1),
                "write_fault": Out(1),
                "write_fault_status": Out(Status),
                "write_fault_info": Out(64),
                "halt": In(1),
                "bus_quiet": Out(1),
                "quiet": Out(1),
                "table_busy": Out(1),
                "bank_stall": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        config, m = self.config, Module()
        flushed = DomainRenamer("flushed")
        self._reads = reads = ReadEngine(config, read_port_depths(config))
        self._list_channels = len(LISTS) if config.hot_table else 0
        self._writes = writes = WriteEngine(config, channels=2 + self._list_channels)
        self._keys, self._table, self._learner = (
            KeyStream(config),
            HotTable(config),
            Learner(config),
        )
        self._classifier, self._mover = Classifier(config), RowMover(config)
        self._list_reader = RowListReader(config)
        self._lists: list[wiring.Component] = [ListWriter(config) for _ in LISTS]
        if not config.hot_table:
            self._keys, self._learner = Absent(self._keys), Absent(self._learner, ["idle"])
            self._table = Absent(self._table, ["idle"])
            self._classifier = Absent(self._classifier, ["ready"])
            self._lists = [Absent(writer) for writer in self._lists]
        m.submodules.read_engine = flushed(reads)
        m.submodules.write_engine = flushed(writes)
        m.submodules.key_stream = flushed(self._keys)
        m.submodules.hot_table = self._table
        m.submodules.learner = self._learner
        m.submodules.classifier = flushed(self._classifier)
        m.submodules.row_mover = flushed(self._mover)
        m.submodules.row_list_reader = flushed(self._list_reader)
        if config.pool:
            self._weights = WeightReader(config)
            m.submodules.weight_reader = flushed(self._weights)
        for name, writer in zip(LISTS, self._lists, strict=True):
            m.submodules[f"{name}_writer"] = flushed(writer)

        opcode = self.job.opcode
        runs = partial(is_command, config, opcode)
        self._split, self._commit, self._learns, self._load, self._fill, self._moves = (
            Signal(name=name) for name in ("split", "commit", "learns", "load", "fill", "moves")
        )
        # It comes late, and goes to all blocks.
        self._start = Signal(name="begin")
        m.d.sync += self._start.eq(self.start)
        # In registers, since all routes hang on them; known long before `start`.
        m.d.sync += [
            self._split.eq(runs(Opcode.SPLIT)),
            self._commit.eq(runs(Opcode.COMMIT)),
            self._learns.eq(runs(Opcode.LEARN, Opcode.LOAD)),
            self._load.eq(runs(Opcode.LOAD)),
            self._fill.eq(runs(Opcode.FILL)),
            self._moves.eq(runs(Opcode.GATHER, Opcode.SCATTER, Opcode.FILL)),
        ]

        m.d.comb += [reads.windows.eq(self.windows), writes.windows.eq(self.windows)]
        m.d.comb += [reads.halt.eq(self.halt), writes.halt.eq(self.halt)]
        wiring.connect(m, reads.axi, wiring.flipped(self.axi_r))
        wiring.connect(m, writes.axi, wiring.flipped(self.axi_w))
        self._connect_reads(m)
        self._connect_keys(m)
        self._connect_rows(m)
        if config.pool:
            self._connect_weights(m)
        self._connect_writes(m)
        self._report(m)
        return m

    def _connect_reads(self, m: Module) -> None:
        """The stream port, to the one who has it; lengths and rows have their own."""
        reads, keys, rows = self._reads, self._keys, self._list_reader
        port, data = reads.request[_STREAM], reads.data[_STREAM]
        fetching, streams, lists = Signal(), Signal(), Signal()
        m.d.sync += [
            fetching.eq(self.fetching),
            streams.eq(~self.fetching & ~self._moves),
            lists.eq(~self.fetching & self._moves),
        ]
        fetch_request = wiring.flipped(self.fetch_request)
        fetch_data = wiring.flipped(self.fetch_data)
        _join(
            m,
            port,
            (streams, keys.index_request),
            (lists, rows.request),
            (fetching, fetch_request),
        )
        _fork(m, data, (streams, keys.index_data), (lists, rows.data), (fetching, fetch_data))
        if self.config.hot_table:
            wiring.connect(m, keys.length_request, reads.request[_LENGTHS])
            wiring.connect(m, reads.data[_LENGTHS], keys.length_data)
            m.d.comb += [
                keys.length_fault_code.eq(reads.fault_code[_LENGTHS]),
                keys.length_fault_addr.eq(reads.fault_addr[_LENGTHS]),
            ]
        # Without lengths, theirs is the last port.
        moved = _ROWS if self.config.hot_table else _LENGTHS
        wiring.connect(m, self._mover.request, reads.request[moved])
        wiring.connect(m, reads.data[moved], self._mover.data)
        m.d.comb += [
            self.fetch_fault_status.eq(reads.fault_code[_STREAM]),
            self.fetch_fault_info.eq(reads.fault_addr[_STREAM]),
            keys.index_fault_code.eq(reads.fault_code[_STREAM]),
            keys.index_fault_addr.eq(reads.fault_addr[_STREAM]),
            self._mover.read_fault_code.eq(reads.fault_code[moved]),
            self._mover.read_fault_addr.eq(reads.fault_addr[moved]),
        ]

    def _connect_keys(self, m: Module) -> None:
        """Key stream -> hot table -> classifier (SPLIT), or learner and hot table (LEARN, LOAD)."""
        config = self.config
        keys, table, learner, classifier = self._keys, self._table, self._learner, self._classifier
        job, load = self.job, self._load
        m.d.comb += [
            keys.start.eq(self._start & (self._split | self._learns)),
            keys.mode.eq(load),
            keys.one_hot.eq(job.one_hot),
            keys.aligned.eq(self._learns),
            keys.count.eq(job.count),
            keys.num_tables.eq(job.num_tables),
            keys.num_keys.eq(job.num_keys),
            keys.indices.eq(Mux(load, job.lists, job.indices)),
            keys.lengths.eq(job.lengths),
            keys.table_valid.eq(self.table_write.valid),
            keys.table_write.eq(self.table_write.payload),
            learner.start.eq(self._start & self._learns),
            learner.mode.eq(load),
            learner.clear.eq(self.learner_clear),
            learner.abort.eq(self.halt),
            classifier.start.eq(self._start & self._split),
            classifier.gather.eq(job.gather),
            classifier.all_rows.eq(job.gather_hot),
            self.start_ready.eq(classifier.ready),
            table.scan.eq(self._start & self._commit),
            table.scan_all.eq(job.scan_all),
            table.scan_fill.eq(job.fill),
            self.sweep_done.eq(table.sweep_done),
            self.bank_stall.eq(table.bank_stall),
        ]
        wiring.connect(m, wiring.flipped(self.sweep), table.sweep)
        groups = stream.Signature(key_group(config)).create()
        lookups = stream.Signature(hot_request(config)).create()
        m.d.comb += [
            lookups.payload.op.eq(HotOp.LOOKUP),
            lookups.payload.group.eq(groups.payload),
            lookups.valid.eq(groups.valid),
            groups.ready.eq(lookups.ready),
        ]
        _fork(m, keys.groups, (self._learns, learner.groups), (self._split, groups))
        # Here end the stall of the table and, for the table, the decisions of the learner.
        requests = register_slice(config, hot_request(config))
        m.submodules.requests = DomainRenamer("flushed")(requests)
        wiring.connect(m, requests.output, table.request)
        _join(
            m,
            requests.input,
            (self._learns, learner.hot_request),
            (self._split & ~self.halt, lookups),
        )
        _fork(
            m,
            table.response,
            (self._learns, learner.hot_response),
            (self._split, classifier.response),
        )
        # After a fault the classifier may have stopped for good; what is in flight is lost.
        with m.If(self._split & self.halt):
            m.d.comb += table.response.ready.eq(1)

    def _connect_rows(self, m: Module) -> None:
        """Row lists, from the classifier, the hot table or memory, to the row mover."""
        mover, reader, job = self._mover, self._list_reader, self.job
        direction, fills = Signal(Direction), Signal()
        m.d.sync += [
            fills.eq(self._commit | self._fill),
            direction.eq(Direction.GATHER),
        ]
        with m.If(job.opcode == Opcode.SCATTER):
            m.d.sync += direction.eq(Direction.SCATTER)
        with m.Elif(fills):
            m.d.sync += direction.eq(Mux(job.back, Direction.BACK, Direction.FILL))
        m.d.comb += [
            mover.start.eq(self._start & (self._moves | job.gather | job.fill)),
            mover.direction.eq(direction),
            mover.hot_rows.eq(job.gather_hot),
            mover.add.eq(job.add),
            mover.row_written.eq(self._writes.row_written),
            mover.gpu_count.eq(self.gpu_count),
            # The slots of hot buffers have their own stride; any table may be named.
            mover.num_tables.eq(Mux(fills, 0, job.num_tables)),
            mover.table_limit.eq(Mux(fills, self.config.max_tables, job.num_tables)),
            mover.rows.eq(job.rows),
            mover.hot_write.valid.eq(self.hot_write.valid if self.config.hot_table else 0),
            mover.hot_write.payload.eq(self.hot_write.payload),
            self.hot_write.ready.eq(1),
            mover.table_write.valid.eq(self.table_write.valid),
            mover.table_write.payload.eq(self.table_write.payload),
            self.table_write.ready.eq(1),
            reader.start.eq(self._start & self._moves),
            reader.addr.eq(job.lists),
            reader.count.eq(job.count),
            reader.records.eq(self._fill),
        ]
        _join(
            m,
            mover.entries,
            (self._split, self._classifier.rows),
            (self._moves, reader.entries),
            (self._commit, self._table.rows),
        )

    def _connect_weights(self, m: Module) -> None:
        """From their region to the row mover, by the choice of the classifier."""
        weights, classifier, mover, job = self._weights, self._classifier, self._mover, self.job
        reads = self._reads
        self._weighted = weighted = Signal()
        m.d.sync += weighted.eq(job.pool & (job.weights != 0))
        m.d.comb += [
            classifier.pool.eq(job.pool),
            classifier.weighted.eq(weighted),
            classifier.num_tables.eq(job.num_tables),
            mover.pool.eq(job.pool),
            mover.weighted.eq(weighted),
            weights.start.eq(self._start & weighted),
            weights.addr.eq(job.weights),
            weights.count.eq(job.num_keys),
        ]
        wiring.connect(m, classifier.picks, weights.picks)
        wiring.connect(m, weights.weights, mover.weights)
        wiring.connect(m, weights.request, reads.request[_WEIGHTS])
        wiring.connect(m, reads.data[_WEIGHTS], weights.data)

    def _connect_writes(self, m: Module) -> None:
        """The lists, the records of COMMIT in the place of the last list, and the rows."""
        writes, table = self._writes, self._table
        # The path of the scan ends here.
        self._records = records = register_slice(self.config, list_beat(self.config))
        m.submodules.records = DomainRenamer("flushed")(records)
        wiring.connect(m, table.records, records.input)
        # Long before the first beat.
        list_start, list_base = Signal.like(self.list_start), Signal.like(self.list_base)
        m.d.sync += [list_start.eq(self.list_start), list_base.eq(self.list_base)]
        for i, (name, writer) in enumerate(zip(LISTS, self._lists, strict=True)):
            source = getattr(self._classifier, name)
            m.d.comb += [writer.start.eq(list_start[i]), writer.base.eq(list_base)]
            if i == len(LISTS) - 1:
                _join(m, writer.input, (~self._commit, source), (self._commit, records.output))
            else:
                wiring.connect(m, source, writer.input)
            if i < self._list_channels:
                wiring.connect(m, writer.output, writes.channel[_FIRST_LIST + i])
        with m.If(self._commit & self.halt):
            m.d.comb += [records.output.ready.eq(1), table.rows.ready.eq(1)]
        wiring.connect(m, self._mover.output, writes.channel[_FIRST_LIST + self._list_channels])
        wiring.connect(m, wiring.flipped(self.record), writes.channel[_CONTROL])

    def _report(self, m: Module) -> None:
        """Done, idle, faults and counts."""
        reads, writes, keys, table = self._reads, self._writes, self._keys, self._table
        learner, classifier, mover = self._learner, self._classifier, self._mover
        reader, opcode = self._list_reader, self.job.opcode

        scanned, ready, finished = Signal(), Signal(), Signal()
        with m.If(table.scan_done):
            m.d.sync += scanned.eq(1)
        with m.If(self._start):
            m.d.sync += scanned.eq(0)
        lists_out = Signal()
        ends = (*(writer.output for writer in self._lists), self._records.output)
        m.d.comb += lists_out.eq(~Cat(end.valid for end in ends).any())
        with m.Switch(opcode):
            with m.Case(Opcode.SPLIT):
                gathered = ~self.job.gather | mover.done
                if self.config.pool:
                    gathered &= self._weights.done | ~self._weighted
                m.d.comb += finished.eq(classifier.done & gathered & lists_out)
            with m.Case(Opcode.COMMIT):
                m.d.comb += finished.eq(scanned & lists_out & (~self.job.fill | mover.done))
            with m.Case(Opcode.LEARN, Opcode.LOAD):
                m.d.comb += finished.eq(learner.done)
            with m.Default():
                m.d.comb += finished.eq(mover.done)

        # The hot table begins with a CLEAR sweep; only that one makes the device busy by itself.
        with m.If(~table.busy & classifier.ready):
            m.d.sync += ready.eq(1)
        # In registers: these come from everywhere and go far. `command_done` is no older than
        # `fault`; who asks whether all is quiet has waited long enough.
        reads_idle, done = Signal(), Signal()
        bus_quiet = reads_idle & self.write_idle
        m.d.sync += [
            done.eq(finished),
            self.command_done.eq(done),
            self.write_idle.eq(writes.idle),
            reads_idle.eq(reads.idle),
            self.bus_quiet.eq(bus_quiet),
            self.quiet.eq(bus_quiet & table.idle & learner.idle),
        ]
        m.d.comb += [
            self.table_busy.eq(~ready),
            self.write_fault.eq(writes.fault),
            self.write_fault_status.eq(writes.fault_code),
            self.write_fault_info.eq(writes.fault_addr),
        ]

        faults = [
            # The learner keeps its error until it is started again.
            (
                (self._split & classifier.error) | (self._learns & learner.error),
                keys.fault_code,
                keys.fault_info,
            ),
            (mover.fault, mover.fault_code, mover.fault_info),
            # A list that cannot be read on is at fault only when the rows before have gone well.
            (reader.fault & mover.done, reads.fault_code[_STREAM], reads.fault_addr[_STREAM]),
            (writes.fault, writes.fault_code, writes.fault_addr),
        ]
        if self.config.pool:
            at = reads.fault_code[_WEIGHTS], reads.fault_addr[_WEIGHTS]
            faults.append((self._weights.fault, *at))
        # Whose fault it is in one cycle, what it says in the next: it stands. And into registers
        # with the counts: `command_done` is later still. A device of rows alone has hardly any
        # choice, so it needs none.
        report = m.d.sync if self.config.hot_table else m.d.comb
        found = Signal(len(faults))
        report += [found.eq(Cat(fault for fault, _, _ in faults)), self.fault.eq(found.any())]
        for bit, (_, code, info) in reversed(list(enumerate(faults))):
            with m.If(found[bit]):
                report += [self.fault_status.eq(code), self.fault_info.eq(info)]

        split, fills = self._split, self._fill
        moves, learning = self._moves & ~fills, self._learns & ~self._load
        sources: dict[str, list[tuple[Value, Value]]] = {
            "popular": [
                (split, classifier.popular_count),
                (self._commit, table.record_count),
                (fills, mover.count),
                (self._load, learner.taken),
            ],
            "nonpopular": [(split, classifier.nonpopular_count)],
            "rows": [
                (split, classifier.num_keys_out),
                ((self._commit & self.job.fill) | fills | moves, mover.count),
            ],
            "hits": [(split, classifier.hits), (learning, learner.hits)],
            "misses": [(split, classifier.misses), (learning, learner.misses)],
            "replacements": [(split, classifier.replacements)],
            "shared": [(split, classifier.shared)],
            "fetched": [(split | moves, mover.count)],
        }
        for name, values in sources.items():
            total: Value = Const(0, 32)
            for enable, value in values:
                total = total | Mux(enable, value, 0)
            report += self.results[name].eq(total)


def _join(m: Module, sink: object, *routes: tuple[Value, object]) -> None:
    """One stream out of several (enable, source), of which at most one is enabled at a time."""
    for enable, source in routes:
        with m.If(enable):
            m.d.comb += [sink.valid.eq(source.valid), sink.payload.eq(source.payload)]
        m.d.comb += source.ready.eq(sink.ready & enable)


def _fork(m: Module, source: object, *routes: tuple[Value, object]) -> None:
    """A stream to one of several (enable, sink). The payload goes to all: no gates in its way."""
    for enable, sink in routes:
        m.d.comb += [sink.valid.eq(source.valid & enable), sink.payload.eq(source.payload)]
        with m.If(enable):
            m.d.comb += source.ready.eq(sink.ready)
