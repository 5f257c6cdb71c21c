"""The hot table: which keys are hot, and in which slots.

Source: spec section 5 and `tracker.md`.
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.commit_scan import CommitScan
from hotline.rtl.crossbar import Crossbar
from hotline.rtl.crossbar_bank import own_request
from hotline.rtl.hot_bank import READ_LATENCY, RESULT_LATENCY, HotBank
from hotline.rtl.hot_group import GroupHash
from hotline.rtl.hot_update import BankOp
from hotline.rtl.interfaces import hot_request, hot_response, list_beat, row_entry
from hotline.rtl.lane_ports import LanePorts
from hotline.rtl.register_slice import register_slice

__all__ = ["HotTable", "Sweep"]

#: Groups between request and answer; more than the pipelines and queues hold.
_MOST_IN_FLIGHT = 64


class Sweep(enum.Enum, shape=2):
    """What a sweep does to every entry."""

    CLEAR = 0
    AGE = 1
    UNMARK = 2


class HotTable(wiring.Component):
    """Look-ups, updates, loads, sweeps and the scan of COMMIT.

    Requests are answered in order, all of them, at `lanes` keys a cycle for look-ups but for
    bank conflicts (none up to 2 lanes). Updates: see :class:`LanePorts` and :class:`Crossbar`.
    A sweep takes sets / banks + 10 cycles; it waits for the requests that are in flight, and
    requests wait for it. Back-pressure on `response` stops requests; on `records`, the scan.
    Reset empties all pipelines and starts a CLEAR sweep.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    request : In(stream of hot_request)
    response : Out(stream of hot_response)
    sweep : In(stream of Sweep)
    sweep_done : Out(1)
        Pulse: the sweep that was accepted has been written. None for the CLEAR after reset.
    scan : In(1)
        Pulse: report slots on `records`, when all that came before is done.
    scan_all : In(1)
        Every valid slot, not only the changed ones. Stable during the scan.
    scan_fill : In(1)
        Hand the rows of the records to `rows` too. Stable during the scan.
    records : Out(stream of list_beat)
        One region of 16-byte records {slot, table, row, 0}, ascending slots.
    rows : Out(stream of row_entry)
        With `scan_fill`: each row, then a marker with valid = 0 and last = 1.
    record_count : Out(32)
        Records of the last scan; valid from `scan_done` until the next `scan`.
    scan_done : Out(1)
        Pulse: the last beat of `records`, and the marker, have been taken.
    busy : Out(1)
        A sweep or a scan is running or waiting.
    idle : Out(1)
        Not busy, and no request is in flight.
    bank_stall : Out(1)
        A lane waits for a bank in this cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "request": In(stream.Signature(hot_request(config))),
                "response": Out(stream.Signature(hot_response(config))),
                "sweep": In(stream.Signature(Sweep)),
                "sweep_done": Out(1),
                "scan": In(1),
                "scan_all": In(1),
                "scan_fill": In(1),
                "records": Out(stream.Signature(list_beat(config))),
                "rows": Out(stream.Signature(row_entry(config))),
                "record_count": Out(32),
                "scan_done": Out(1),
                "busy": Out(1),
                "idle": Out(1),
                "bank_stall": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.hash = hashes = GroupHash(config)
        dispatch = LanePorts(config) if config.lanes <= 2 else Crossbar(config)
        m.submodules.dispatch = dispatch
        m.submodules.scanner = scanner = CommitScan(config)
        # With more lanes the banks are in the crossbar.
        banks = [HotBank(config) for _ in range(config.banks if config.lanes <= 2 else 0)]
        for number, bank in enumerate(banks):
            m.submodules[f"bank_{number}"] = bank

        # The keys wait in block RAM for their answers: cheaper than to carry them along.
        m.submodules.keys = keys = BlockFIFO(
            data.ArrayLayout(config.key_bits, config.lanes), _MOST_IN_FLIGHT
        )
        wiring.connect(m, hashes.output, dispatch.request)
        answers = dispatch.response
        if config.lanes > 1:
            m.submodules.output = output = register_slice(config, hot_response(config))
            wiring.connect(m, dispatch.response, output.input)
            answers = output.output
        m.d.comb += [
            self.response.payload.eq(answers.payload),
            self.response.payload.key.eq(keys.output.payload),
            self.response.valid.eq(answers.valid & keys.output.valid),
            answers.ready.eq(self.response.ready & keys.output.valid),
            keys.output.ready.eq(self.response.ready & answers.valid),
            keys.input.payload.eq(self.request.payload.group.key),
            keys.input.valid.eq(self.request.valid & self.request.ready),
        ]

        open_ = Signal()
        in_flight = Signal(8)
        quiet = Signal()
        # Counted a cycle later; `quiet` takes care of that.
        accepted = Signal()
        answered = Signal()
        m.d.sync += [
            accepted.eq(self.request.valid & self.request.ready),
            answered.eq(self.response.valid & self.response.ready),
        ]
        m.d.comb += [
            hashes.input.payload.eq(self.request.payload),
            hashes.input.valid.eq(self.request.valid & open_ & keys.input.ready),
            self.request.ready.eq(hashes.input.ready & open_ & keys.input.ready),
            self.bank_stall.eq(dispatch.stall),
        ]
        m.d.sync += in_flight.eq(in_flight + accepted - answered)
        m.d.comb += quiet.eq((in_flight == 0) & ~accepted)
        self._control(m, dispatch, banks, scanner, open_, quiet)
        wiring.connect(m, scanner.records, wiring.flipped(self.records))
        wiring.connect(m, scanner.rows, wiring.flipped(self.rows))
        return m

    def _control(
        self,
        m: Module,
        dispatch: LanePorts | Crossbar,
        banks: list[HotBank],
        scanner: CommitScan,
        open_: Signal,
        quiet: Signal,
    ) -> None:
        """Sweeps and scans, and the wires of the banks."""
        config = self.config
        serving = Signal()
        pending = Signal()
        requested = Signal()
        operation = Signal(BankOp, init=BankOp.CLEAR)
        index = Signal(max(1, config.index_bits))
        pause = Signal(range(RESULT_LATENCY + 4))
        sweeping = Signal()
        # A cycle late, so that a sweep does not reach through `request.ready` into the sources; it
        # begins when this register has closed the table.
        sweep_waits = Signal()
        scan_starts = Signal()
        m.d.sync += [
            sweep_waits.eq(self.sweep.valid & ~self.sweep.ready),
            scan_starts.eq(0),
        ]
        m.d.comb += [
            open_.eq(serving & ~sweep_waits & ~pending),
            self.busy.eq(~serving | pending),
            self.idle.eq(serving & ~pending & quiet),
            self.scan_done.eq(scanner.done),
            self.record_count.eq(scanner.count),
            scanner.start.eq(scan_starts),
            scanner.all.eq(self.scan_all),
            scanner.fill.eq(self.scan_fill),
        ]
        with m.If(self.scan):
            m.d.sync += pending.eq(1)
        with m.FSM(init="SWEEP", name="control"):
            with m.State("SWEEP"):
                m.d.comb += sweeping.eq(1)
                m.d.sync += index.eq(index + 1)
                with m.If(index == config.bank_depth - 1):
                    m.d.sync += [index.eq(0), pause.eq(RESULT_LATENCY + 3)]
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += pause.eq(pause - 1)
                with m.If(pause == 0):
                    m.d.comb += self.sweep_done.eq(requested)
                    m.next = "SERVE"
            with m.State("SERVE"):
                m.d.comb += serving.eq(1)
                with m.If(quiet & sweep_waits):
                    m.d.comb += self.sweep.ready.eq(1)
                    m.d.sync += requested.eq(1)
                    with m.Switch(self.sweep.payload):
                        for sweep in Sweep:
                            with m.Case(sweep):
                                m.d.sync += operation.eq(BankOp[sweep.name])
                    m.next = "SWEEP"
                with m.Elif(quiet & pending):
                    m.d.sync += [scan_starts.eq(1), pending.eq(0)]
                    m.next = "SCAN"
            with m.State("SCAN"), m.If(scanner.done):
                m.next = "SERVE"

        own_index = Signal(max(1, config.index_bits))
        own_operation = Signal(BankOp)
        scanned = scanner.read_set[config.bank_bits : config.set_bits]
        m.d.comb += [
            own_index.eq(Mux(sweeping, index, scanned)),
            own_operation.eq(Mux(sweeping, operation, BankOp.READ)),
        ]
        own = Signal(own_request(config))
        m.d.comb += [
            own.serving.eq(serving),
            own.valid.eq(sweeping | scanner.read),
            own.op.eq(own_operation),
            own.index.eq(own_index),
        ]
        if config.lanes > 2:
            # As far from the banks as through the port registers of LanePorts.
            m.d.sync += dispatch.own.eq(own)
        else:
            m.d.comb += dispatch.own.eq(own)
        for bank, port in zip(banks, () if config.lanes > 2 else dispatch.bank, strict=True):
            m.d.comb += [
                bank.a.eq(port.a),
                bank.a_valid.eq(port.a_valid),
                bank.a_lanes.eq(port.a_lanes),
                port.a_result.eq(bank.a_result),
                port.a_result_lanes.eq(bank.a_result_lanes),
                port.hold.eq(bank.hold),
            ]
            if config.lanes > 1:
                m.d.comb += [
                    bank.b_hash.eq(port.b_hash),
                    bank.b_lanes.eq(port.b_lanes),
                    port.b_result.eq(bank.b_result),
                    port.b_result_lanes.eq(bank.b_result_lanes),
                ]
        self._read_entries(m, dispatch, banks, scanner)

    def _read_entries(
        self,
        m: Module,
        dispatch: LanePorts | Crossbar,
        banks: list[HotBank],
        scanner: CommitScan,
    ) -> None:
        """The entries that the scan asked for, out of the bank that it asked."""
        config = self.config
        chosen: Value = scanner.read_set[: config.bank_bits]
        for stage in range(READ_LATENCY + 1):
            delayed = Signal(max(1, config.bank_bits), name=f"scan_bank_{stage}")
            m.d.sync += delayed.eq(chosen)
            chosen = delayed
        width = len(scanner.entries.as_value())
        entries: Value = Const(0, width)
        if config.lanes > 2:
            m.d.comb += dispatch.scan_bank.eq(chosen)
            entries = dispatch.entries.as_value()
        for number, bank in enumerate(banks):
            here = (chosen == number) if config.bank_bits else Const(1, 1)
            entries = entries | (Cat(bank.entries) & here.replicate(width))
        register = Signal(width, reset_less=True, name="scan_entries")
        m.d.sync += register.eq(entries)
        m.d.comb += scanner.entries.eq(register)
