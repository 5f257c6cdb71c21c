"""The command ring: fetches descriptors, runs them in order, reports (spec sections 7 and 8)."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.commands import Opcode
from hotline.gen.config import Config
from hotline.rtl.classifier import LISTS
from hotline.rtl.completion import CompletionWriter
from hotline.rtl.counters import command_counts
from hotline.rtl.descriptor import DescriptorChecker, DescriptorFetcher
from hotline.rtl.hot_table import Sweep
from hotline.rtl.interfaces import Status, bus_address, read_beat, read_request, write_beat
from hotline.rtl.job_decoder import JobDecoder, job
from hotline.rtl.register_store import failure
from hotline.rtl.write_engine import address_latency

__all__ = ["CommandProcessor", "results"]


def results() -> data.StructLayout:
    """What a command has counted: words 1 to 6 of its record, selected by the opcode, and the
    addends of ROWS_SHARED and ROWS_GATHERED."""
    return data.StructLayout(
        {
            "popular": 32,
            "nonpopular": 32,
            "rows": 32,
            "hits": 32,
            "misses": 32,
            "replacements": 32,
            "shared": 32,
            "fetched": 32,
        }
    )


class CommandProcessor(wiring.Component):
    """Runs the descriptors of the ring strictly in order.

    One descriptor at a time: fetch, check, start the blocks, wait until all of them are done and
    every write is answered, write the record, advance the head. On a fault: `halt` the engines and
    the learner, wait until the bus and the hot table are quiet, `flush` the blocks, then write the
    record and stop until `resume`.

    Members
    -------
    run, resume, soft_reset, ring_reset, ring_base, ring_log2, ring_tail
        From the registers; `resume`, `soft_reset` and `ring_reset` are pulses.
    ring_head, busy, error, dirty, completion_event, error_event, failure, counts
        To the registers; the events are pulses.
    resetting : Out(1)
        A soft reset is under way.
    reset_request : Out(1)
        A soft reset has drained the bus: reset everything in the next cycle. Until that resets
        this component too.
    fetch_request, fetch_data
        The stream read port, for descriptors; `fetching` says that it is ours.
    record : Out
        Write channel for completion records.
    job, results
        The running command, and what the blocks have counted for it.
    start : Out(1)
        Pulse: `job` is valid, start the blocks that its opcode needs.
    start_ready : In(1)
        SPLIT may start: the store of seen keys is empty.
    list_start, list_base : Out
        Pulses that hand each list writer its base address (bytes), in the order of the regions;
        the last writer also takes the records of COMMIT.
    sweep : Out
        Sweeps of the hot table: CLEAR, AGE, UNMARK.
    command_done : In(1)
        Every block that `job` needs has handed over all it writes.
    fault, fault_status, fault_info
        The first fault of the running command, level.
    bus_quiet, quiet : In(1)
        Both engines are idle; and so are the hot table and the learner. Like `write_idle` as of the
        cycle before or earlier; `command_done` and `fault` as of two cycles before.
    write_idle, write_fault, write_fault_status, write_fault_info
        State of the write engine.
    table_busy : In(1)
        The hot table, or the store of seen keys, is being cleared after reset.
    read_last : In(1)
        The last beat of a read burst transfers on the bus in this cycle.
    halt : Out(1)
        See above, one cycle late, since it goes everywhere; also in a soft reset.
    flush : Out(1)
        Pulse: reset the blocks in the next cycle.
    learner_clear : Out(1)
        Pulse: the hot table has been cleared by a command.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "run": In(1),
                "resume": In(1),
                "soft_reset": In(1),
                "ring_reset": In(1),
                "ring_base": In(config.addr_width),
                "ring_log2": In(4),
                "ring_tail": In(15),
                "ring_head": Out(15),
                "busy": Out(1),
                "error": Out(1),
                "dirty": Out(1),
                "completion_event": Out(1),
                "error_event": Out(1),
                "failure": Out(stream.Signature(failure())),
                "counts": Out(stream.Signature(command_counts())),
                "resetting": Out(1),
                "reset_request": Out(1),
                "fetch_request": Out(stream.Signature(read_request(config))),
                "fetch_data": In(stream.Signature(read_beat(config))),
                "fetch_fault_status": In(Status),
                "fetch_fault_info": In(64),
                "fetching": Out(1),
                "record": Out(stream.Signature(write_beat(config))),
                "job": Out(job(config)),
                "results": In(results()),
                "start": Out(1),
                "start_ready": In(1),
                "list_start": Out(len(LISTS)),
                "list_base": Out(bus_address(config)),
                "sweep": Out(stream.Signature(Sweep)),
                "sweep_done": In(1),
                "command_done": In(1),
                "fault": In(1),
                "fault_status": In(Status),
                "fault_info": In(64),
                "bus_quiet": In(1),
                "quiet": In(1),
                "write_idle": In(1),
                "write_fault": In(1),
                "write_fault_status": In(Status),
                "write_fault_info": In(64),
                "table_busy": In(1),
                "read_last": In(1),
                "halt": Out(1),
                "flush": Out(1),
                "learner_clear": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        config = self.config
        m = Module()
        m.submodules.fetcher = fetcher = DescriptorFetcher(config)
        m.submodules.checker = checker = DescriptorChecker(config)
        m.submodules.completion = completion = CompletionWriter(config)
        words = fetcher.words
        opcode = words[0][0:8]

        status = Signal(Status)
        info = Signal(64)
        cycles = Signal(64)
        record_written = Signal()
        recordable = Signal()
        last_split = Signal()
        last_count = Signal(32)
        last_keys = Signal(config.addr_width)
        work_pending = self.run & ~self.error & (self.ring_tail != self.ring_head)
        # As of the cycle before, which holds once the ring stands still.
        pending, rested = Signal(), Signal()
        executing = Signal()
        m.d.sync += [pending.eq(work_pending), rested.eq(~executing)]

        # ---- the running command, decoded -----------------------------------------------------
        m.submodules.decoder = decoder = JobDecoder(config)
        split, gather, empty = decoder.split, decoder.gather, decoder.empty
        m.d.comb += [
            *(decoder.words[n].eq(word) for n, word in enumerate(words)),
            decoder.last_count.eq(last_count),
            decoder.last_keys.eq(last_keys),
            self.job.eq(decoder.job),
        ]
        reported, reports = Signal(), Signal(4)
        m.d.sync += [
            reports.eq(Cat(self.results.popular.word_select(n, 8).any() for n in range(4))),
            reported.eq(reports.any()),
        ]

        # ---- ring -----------------------------------------------------------------------------
        next_head = (self.ring_head + 1) & ((1 << self.ring_log2) - 1)[:15]
        m.d.comb += [
            self.busy.eq(work_pending | executing | self.table_busy),
            fetcher.addr.eq(self.ring_base + (self.ring_head << 6)),
            checker.words.eq(words),
            checker.excess.eq(fetcher.excess),
            checker.dirty.eq(self.dirty),
            checker.last_split.eq(last_split),
        ]
        wiring.connect(m, fetcher.request, wiring.flipped(self.fetch_request))
        wiring.connect(m, wiring.flipped(self.fetch_data), fetcher.data)

        # ---- record ---------------------------------------------------------------------------
        good = status == Status.OK
        record = completion.words
        # A command that ended before its blocks were started has counted nothing.
        counted = Signal(results())
        with m.If(~empty):
            m.d.comb += counted.eq(self.results)
        with m.If(good):
            m.d.comb += [
                record[1].eq(counted.popular),
                record[2].eq(counted.nonpopular),
                record[3].eq(counted.rows),
                record[4].eq(counted.hits),
                record[5].eq(counted.misses),
                record[6].eq(counted.replacements),
            ]
        m.d.comb += [
            record[0].eq(Cat(status, opcode, words[0][16:32])),
            Cat(record[8], record[9]).eq(cycles),
            Cat(record[10], record[11]).eq(info),
            record[15].eq(1),
            completion.addr.eq(Cat(words[14], words[15])),
            completion.engine_idle.eq(self.write_idle),
            completion.engine_fault.eq(self.write_fault),
        ]
        wiring.connect(m, completion.output, wiring.flipped(self.record))

        # Words 8-9 count to the cycle in which the record's AWVALID rises. They are inside the
        # record, so that cycle is predicted: the engine takes one beat a cycle when it is idle,
        # and offers the address a fixed time after it has taken a burst's last beat.
        to_address = CompletionWriter.first_burst(config) + address_latency(config)
        m.d.sync += cycles.eq(cycles + 1)

        m.d.sync += [
            self.completion_event.eq(0),
            self.error_event.eq(0),
        ]
        with m.If(self.resume):
            m.d.sync += self.error.eq(0)
        with m.If(self.ring_reset):
            m.d.sync += self.ring_head.eq(0)
        with m.If(self.soft_reset):
            m.d.sync += self.resetting.eq(1)

        fail = Signal()
        fail_status = Signal(Status)
        fail_info = Signal(64)
        with m.If(fail):
            m.d.sync += [status.eq(fail_status), info.eq(fail_info)]

        # Wide enough for any sum of regions, see `bus_address`.
        base = Signal(max(config.addr_width, 38) + 2)
        region = Signal(range(len(LISTS) + 1))

        # Cycles in a state that waits for others, saturating.
        written = Signal()  # `write_idle`, as old as `command_done`
        m.d.sync += written.eq(self.write_idle)
        waited = Signal(3)
        waited_longer = Mux(waited.all(), waited, waited + 1)
        m.d.sync += [waited.eq(0), self.halt.eq(0)]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += [
                    status.eq(Status.OK),
                    info.eq(0),
                    record_written.eq(0),
                    recordable.eq(0),
                ]
                with m.If(self.resetting):
                    m.next = "DRAIN"
                with m.Elif(pending & rested & ~self.table_busy):
                    m.d.comb += fetcher.start.eq(1)
                    m.next = "FETCH"
            with m.State("FETCH"):
                with m.If(self.read_last):
                    m.d.sync += cycles.eq(1)
                with m.If(fetcher.done):
                    with m.If(fetcher.fault):
                        m.d.comb += [
                            fail.eq(1),
                            fail_status.eq(self.fetch_fault_status),
                            fail_info.eq(self.fetch_fault_info),
                        ]
                        m.next = "ABORT"
                    with m.Else():
                        m.d.comb += checker.start.eq(1)
                        m.d.sync += recordable.eq(1)
                        m.next = "CHECK"
                with m.Elif(self.resetting):
                    m.next = "DRAIN"
            with m.State("CHECK"), m.If(checker.done):
                m.d.comb += [fail_status.eq(checker.status), fail_info.eq(checker.info)]
                with m.If(split):
                    m.d.sync += last_split.eq(0)
                with m.If(checker.status != Status.OK):
                    m.d.comb += fail.eq(1)
                    m.next = "RECORD"
                with m.Elif(empty):
                    m.next = "SUCCESS"
                with m.Else():
                    m.next = "DISPATCH"
            with m.State("DISPATCH"):
                m.d.sync += [base.eq(self.job.lists), region.eq(0)]
                m.next = "START"
                with m.If(decoder.nothing):
                    m.next = "SUCCESS"
                if config.hot_table:
                    with m.If(decoder.sweeps):
                        m.next = "SWEEP"
                    with m.If(split | decoder.commit):
                        m.next = "BASES"
            with m.State("BASES"):
                # The regions of SPLIT follow each other; COMMIT has one, at `lists`.
                beyond = base[config.addr_width :].any()
                m.d.comb += self.list_base.eq(Cat(base[: config.addr_width], beyond))
                m.d.sync += [
                    # popular and nonpopular have a word a sample, the slots a word a key.
                    base.eq(base + Mux(region < 2, decoder.per_sample, decoder.per_key)),
                    region.eq(region + 1),
                ]
                with m.If(decoder.commit):
                    m.d.comb += self.list_start[-1].eq(1)
                    m.next = "START"
                with m.Else():
                    m.d.comb += self.list_start.eq(1 << region)
                    with m.If(region == len(LISTS) - 1):
                        m.d.sync += last_keys.eq(base)
                        m.next = "START"
            with m.State("START"):
                with m.If(~split | self.start_ready):
                    m.d.comb += self.start.eq(1)
                    m.next = "RUN"
                with m.If(decoder.learns):
                    m.d.sync += self.dirty.eq(1)
            with m.State("RUN"):
                m.d.comb += [fail_status.eq(self.fault_status), fail_info.eq(self.fault_info)]
                with m.If(self.resetting):
                    m.next = "DRAIN"
                # What is known of the cycles before the blocks have seen `start` does not count.
                with m.Elif(self.fault & (waited >= 3)):
                    m.d.comb += fail.eq(1)
                    m.next = "ABORT"
                with m.Else():
                    m.d.sync += waited.eq(waited_longer)
                    with m.If(self.command_done & written & (waited >= 5)):
                        m.next = "SUCCESS"
                        with m.If(decoder.commit):
                            # Without a record there is no mark to clear.
                            m.d.sync += self.dirty.eq(0)
                            with m.If(reported):
                                m.next = "SWEEP"
            with m.State("SWEEP"):
                m.d.comb += self.sweep.valid.eq(1)
                with m.Switch(self.job.opcode):
                    with m.Case(Opcode.CLEAR):
                        m.d.comb += self.sweep.payload.eq(Sweep.CLEAR)
                    with m.Case(Opcode.AGE):
                        m.d.comb += self.sweep.payload.eq(Sweep.AGE)
                    with m.Default():
                        m.d.comb += self.sweep.payload.eq(Sweep.UNMARK)
                with m.If(self.sweep.ready):
                    m.next = "SWEEPING"
            with m.State("SWEEPING"), m.If(self.sweep_done):
                with m.If(self.job.opcode != Opcode.AGE):
                    m.d.sync += self.dirty.eq(0)
                m.d.comb += self.learner_clear.eq(self.job.opcode == Opcode.CLEAR)
                m.next = "SUCCESS"
            with m.State("SUCCESS"):
                with m.If(split):
                    m.d.sync += [
                        last_split.eq(~self.job.gather_hot),
                        last_count.eq(counted.rows),
                    ]
                m.next = "RECORD"
            with m.State("ABORT"):
                m.d.sync += [self.halt.eq(1), waited.eq(waited_longer)]
                # Not before `halt` has stopped all that was about to go out.
                with m.If(self.quiet & waited.all()):
                    m.d.comb += self.flush.eq(1)
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                # `halt` ends here, or it would swallow the record.
                with m.If(recordable):
                    m.next = "RECORD"
                with m.Else():
                    m.next = "FAILED"
            with m.State("RECORD"):
                m.d.sync += cycles.eq(cycles + to_address)
                with m.If(self.resetting):
                    m.next = "DRAIN"
                with m.Elif(checker.unrecordable):
                    m.next = "FAILED"
                with m.Else():
                    m.d.comb += completion.start.eq(1)
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                # The record is being sent: its words must not change.
                m.d.sync += cycles.eq(cycles)
                m.d.comb += [
                    fail_status.eq(self.write_fault_status),
                    fail_info.eq(self.write_fault_info),
                ]
                with m.If(self.resetting):
                    m.next = "DRAIN"
                with m.Elif(completion.done):
                    m.d.sync += record_written.eq(~self.write_fault)
                    m.next = "COUNT"
                    with m.If(~good):
                        m.next = "FAILED"
                    with m.If(self.write_fault):
                        # The first error of a descriptor stays: a record that fails after it
                        # changes neither ERROR_STATUS nor ERROR_INFO.
                        m.d.comb += fail.eq(good)
                        m.d.sync += recordable.eq(0)
                        m.next = "ABORT"
            with m.State("COUNT"):
                m.d.comb += self.counts.valid.eq(split | gather)
                with m.If(~self.counts.valid | self.counts.ready):
                    m.next = "ADVANCE"
            with m.State("FAILED"):
                m.d.comb += self.failure.valid.eq(1)
                with m.If(self.failure.ready):
                    m.d.sync += [self.error.eq(1), self.error_event.eq(1)]
                    m.next = "ADVANCE"
            with m.State("ADVANCE"):
                m.d.sync += [
                    self.ring_head.eq(next_head),
                    self.completion_event.eq(record_written),
                ]
                m.next = "IDLE"
            with m.State("DRAIN"):
                m.d.sync += [self.halt.eq(1), waited.eq(waited_longer)]
                m.d.comb += self.reset_request.eq(self.bus_quiet & waited.all())

        m.d.sync += self.fetching.eq(fsm.ongoing("FETCH"))
        m.d.comb += [
            executing.eq(~fsm.ongoing("IDLE")),
            self.failure.payload.status.eq(status),
            self.failure.payload.info.eq(info),
        ]
        tally = self.counts.payload
        with m.If(split):
            m.d.comb += [
                tally.samples.eq(self.job.count),
                tally.popular.eq(counted.popular),
                tally.keys.eq(self.job.num_keys),
                tally.hits.eq(counted.hits),
                tally.rows_shared.eq(counted.shared),
            ]
        with m.If(self.job.gather | gather):
            m.d.comb += tally.rows_gathered.eq(counted.fetched)
        return m
