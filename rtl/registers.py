"""The AXI4-Lite register bank, made from :mod:`hotline.gen.register_map` (spec section 8)."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.gen.register_map import Register, register_map
from hotline.rtl.axi_lite import AxiLiteSignature, Response
from hotline.rtl.counters import CounterBank, command_counts, counter_events
from hotline.rtl.interfaces import hot_write, table_write, windows
from hotline.rtl.register_state import RING_BITS, RegisterState
from hotline.rtl.register_store import GPU_BASE, TABLE_BASE, WINDOW_BASE, RegisterStore, failure

__all__ = ["RegisterBank"]


class RegisterBank(wiring.Component):
    """AXI4-Lite slave with all registers of the device.

    A memory holds what was last written to each register, and answers the reads; flip-flops
    exist only for what the device needs at all times. After reset the memory is filled with the
    reset values, which takes 128 + 4 * max_tables cycles; accesses wait until then.

    One access at a time, reads and writes in turn: four cycles each if the host takes the answer
    at once; a counter command waits for its snapshot, up to 300 cycles, and HOT_STRIDE for a look
    at all TABLE_ROW_BYTES. AW and W are taken in any order. B and R hold under back-pressure, and
    nothing else waits for them. An access is refused (SLVERR, no effect, read data 0) as section 8
    says, and beyond its words for a 1 in a bit that a register does not have. The two lowest
    address bits are ignored.

    Members
    -------
    s_axil : In
        The slave port.
    restart : In(1)
        Pulse: resets every register, but not the bus: an access in progress is still answered, and
        takes effect after the reset if it had not yet. To be pulsed when a soft reset is done.
    ready : Out(1)
        The walk is done.
    run : Out(1)
        CONTROL.run.
    soft_reset, resume : Out(1)
        Pulses: written to CONTROL.
    soft_reset_pending, busy, error, dirty, draining : In(1)
        Read as CONTROL[1] and STATUS. `busy` locks registers.
    ring_base, ring_log2, ring_tail : Out
        The ring; bytes, and entries.
    ring_head : In
        Reads as RING_HEAD.
    ring_reset : Out(1)
        Pulse: RING_BASE or RING_LOG2 was written: `ring_tail` is now 0 and so shall the head be.
    windows : Out
        The address windows.
    gpu_count : Out(4)
        GPU_COUNT.
    table_write, hot_write : Out, stream
        Each change of a TABLE_* or HOT_* register, and the zeroes after reset; never both at once.
        They do not wait for `ready`.
    completion_event, error_event : In(1)
        Pulses: set IRQ_STATUS bits.
    irq : Out(1)
        Level, one cycle after its cause.
    failure : In, stream
        New ERROR_STATUS and ERROR_INFO, taken within a few cycles. The host sees them after the
        transfer.
    events, counts : In
        To the performance counters, see :class:`~hotline.rtl.counters.CounterBank`. Without
        `perf_counters` they are ignored, `counts` always taken.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "s_axil": In(AxiLiteSignature()),
                "restart": In(1),
                "ready": Out(1),
                "run": Out(1),
                "soft_reset": Out(1),
                "resume": Out(1),
                "soft_reset_pending": In(1),
                "busy": In(1),
                "error": In(1),
                "dirty": In(1),
                "draining": In(1),
                "ring_base": Out(config.addr_width),
                "ring_log2": Out(4, init=1),
                "ring_tail": Out(RING_BITS),
                "ring_head": In(RING_BITS),
                "ring_reset": Out(1),
                "windows": Out(windows(config)),
                "gpu_count": Out(4, init=config.gpus),
                "table_write": Out(stream.Signature(table_write(config))),
                "hot_write": Out(stream.Signature(hot_write(config))),
                "completion_event": In(1),
                "error_event": In(1),
                "irq": Out(1),
                "failure": In(stream.Signature(failure())),
                "events": In(counter_events()),
                "counts": In(stream.Signature(command_counts())),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.s_axil
        registers = {register.name: register for register in register_map(self.config)}
        m.submodules.store = store = RegisterStore(self.config)

        # W and AW wait in registers; AR is taken only when its access begins.
        has_address, has_data = Signal(), Signal()
        write_address, address = Signal(12), Signal(12)
        value, full_strobe = Signal(32), Signal()
        m.d.comb += [bus.awready.eq(~has_address), bus.wready.eq(~has_data)]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [has_address.eq(1), write_address.eq(bus.awaddr)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [has_data.eq(1), value.eq(bus.wdata), full_strobe.eq(bus.wstrb.all())]

        word = address[2:8]
        is_write, legal, execute, count = Signal(), Signal(), Signal(), Signal()
        known = self._decode(m, registers, word, value)
        live, table, gpu, stride, stride_known = (Signal() for _ in range(5))
        # Two steps: what the map says, then whether it may be.
        readable, writable, allowed, locked, exists = (Signal() for _ in range(5))
        m.d.sync += [
            live.eq(known["live"]),
            table.eq(known["table"]),
            gpu.eq(known["gpu"]),
            stride.eq(is_write & (word == registers["HOT_STRIDE"].word)),
            readable.eq(known["readable"]),
            writable.eq(known["writable"] & full_strobe),
            allowed.eq(known["allowed"]),
            locked.eq(known["locked"]),
            exists.eq(~address[8:].any()),
            legal.eq(exists & Mux(is_write, writable & allowed & ~(locked & self.busy), readable)),
        ]
        commit, granted = Signal(), Signal()
        m.d.comb += [
            granted.eq(legal & ~(stride_known & store.above)),
            commit.eq(
                execute
                & is_write
                & granted
                & ~(stride & ~stride_known)
                & store.ready
                & ~self.restart
            ),
            store.restart.eq(self.restart),
            self.ready.eq(store.ready),
            store.write_data.eq(value),
        ]
        m.d.sync += [
            # A cycle later, as address and value still stand. Live registers answer for
            # themselves, and leave their word of the memory 0.
            store.write.eq(commit & ~live),
            store.changes_table.eq(commit & table),
            store.changes_hot.eq(commit & (gpu | stride)),
        ]
        wiring.connect(m, wiring.flipped(self.failure), store.failure)
        wiring.connect(m, wiring.flipped(self.table_write), store.table_write)
        wiring.connect(m, wiring.flipped(self.hot_write), store.hot_write)
        # The flip-flops take it a cycle later too.
        committed = Signal()
        m.d.sync += committed.eq(commit)
        state = self._state(m, store, known, word, value, committed)
        counted, saturated = self._counters(m, store, value, count)
        live_value = self._live(m, registers, word, state, saturated)

        answer = Signal()  # the write at hand is done
        with m.If(answer):
            m.d.sync += [bus.bvalid.eq(1), has_address.eq(0), has_data.eq(0)]
        with m.FSM():
            with m.State("IDLE"):
                write_waits = has_address & has_data
                # `is_write` still tells what came last: reads and writes take turns.
                m.d.comb += bus.arready.eq(~write_waits | is_write)
                with m.If(bus.arvalid & bus.arready):
                    m.d.sync += [is_write.eq(0), address.eq(bus.araddr)]
                    m.next = "DECODE"
                with m.Elif(write_waits):
                    m.d.sync += [is_write.eq(1), address.eq(write_address)]
                    m.next = "DECODE"
            with m.State("DECODE"):
                m.next = "READ"
            with m.State("READ"):
                m.d.comb += store.read.eq(1)
                with m.If(store.ready):
                    m.next = "EXECUTE"
            with m.State("EXECUTE"):
                m.d.comb += execute.eq(1)
                response = Mux(granted, Response.OKAY, Response.SLVERR)
                m.d.sync += [
                    bus.bresp.eq(response),
                    bus.rresp.eq(response),
                    bus.rdata.eq((store.read_data | live_value) & legal.replicate(32)),
                ]
                with m.If(~store.ready | self.restart):
                    m.next = "DECODE"
                with m.Elif(~is_write):
                    m.d.sync += bus.rvalid.eq(1)
                    m.next = "RESPOND"
                with m.Elif(legal & (word == registers["COUNTERS"].word)):
                    m.next = "COUNT"
                with m.Elif(legal & stride & ~stride_known):
                    m.next = "SCAN"
                with m.Else():
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):
                # The register shows it when the answer is there.
                m.d.comb += answer.eq(1)
                m.next = "RESPOND"
            with m.State("COUNT"):
                m.d.comb += count.eq(1)
                with m.If(counted):
                    m.d.comb += answer.eq(1)
                    m.next = "RESPOND"
            with m.State("SCAN"):
                # HOT_STRIDE must be at least the largest row_bytes of all tables.
                m.d.comb += store.scan.eq(1)
                with m.If(store.scanned):
                    m.d.sync += stride_known.eq(1)
                    m.next = "DECODE"
            with m.State("RESPOND"):
                m.d.sync += stride_known.eq(0)
                with m.If((bus.bvalid & bus.bready) | (bus.rvalid & bus.rready)):
                    m.d.sync += [bus.bvalid.eq(0), bus.rvalid.eq(0)]
                    m.next = "IDLE"
        return m

    def _decode(
        self, m: Module, registers: dict[str, Register], word: Value, value: Signal
    ) -> dict[str, Signal]:
        """What the register map says of the register at `word`, and of writing `value` to it."""
        names = ("readable", "writable", "allowed", "locked", "live", "window", "gpu", "table")
        known = {name: Signal(name=f"register_{name}") for name in names}
        known["piece"] = Signal(2, name="register_piece")
        # The value stands a cycle before the address: what it keeps of the rules is registered.
        beyond_ring = Cat(self.ring_log2 <= bit for bit in range(RING_BITS))
        in_ring = Signal()
        m.d.sync += in_ring.eq(~(value[:RING_BITS] & beyond_ring).any())
        rules: dict[tuple[int, int, int], Signal] = {}
        with m.Switch(word):
            for register in registers.values():
                with m.Case(register.word):
                    m.d.comb += [
                        known["readable"].eq(register.readable),
                        known["writable"].eq(register.writable),
                        known["locked"].eq(register.locked),
                        known["live"].eq(register.live),
                    ]
                    if register.selector is not None:
                        kind = register.selector.removesuffix("_SELECT").lower()
                        first = registers[register.selector].word + 1
                        m.d.comb += [
                            known[kind].eq(1),
                            known["piece"].eq(register.word - first),
                        ]
                    if register.writable:
                        rule = (register.minimum, register.maximum, register.align)
                        if rule not in rules:
                            rules[rule] = Signal(name=f"rule_{register.name.lower()}")
                        also = in_ring if register.name == "RING_TAIL" else 1
                        m.d.comb += known["allowed"].eq(rules[rule] & also)
        for rule, holds in rules.items():
            m.d.sync += holds.eq(_allows(value, *rule))
        return known

    def _state(
        self,
        m: Module,
        store: RegisterStore,
        known: dict[str, Signal],
        word: Value,
        value: Signal,
        commit: Signal,
    ) -> RegisterState:
        """The flip-flops, and from the selectors the place of the access in the store."""
        state = RegisterState(self.config)
        m.submodules.state = ResetInserter(self.restart)(state)
        m.d.comb += [
            state.commit.eq(commit),
            state.word.eq(word),
            state.value.eq(value),
            state.completion_event.eq(self.completion_event),
            state.error_event.eq(self.error_event),
            store.place.eq(word),
        ]
        for name in (
            "run", "soft_reset", "resume", "ring_base", "ring_log2", "ring_tail", "ring_reset",
            "windows", "gpu_count", "irq",
        ):  # fmt: skip
            m.d.comb += getattr(self, name).eq(getattr(state, name))
        for kind, base, selected in (
            ("window", WINDOW_BASE, state.window_select),
            ("gpu", GPU_BASE, state.gpu_select),
            ("table", TABLE_BASE, state.table_select),
        ):
            with m.If(known[kind]):
                m.d.comb += store.place.eq(Cat(known["piece"], selected + base // 4))
        return state

    def _counters(
        self, m: Module, store: RegisterStore, value: Signal, count: Signal
    ) -> tuple[Value, Value]:
        """The performance counters: whether a command to them is done, and which are saturated."""
        if not self.config.perf_counters:
            m.d.comb += self.counts.ready.eq(1)
            return count, C(0, 1)
        counters = CounterBank()
        m.submodules.counters = ResetInserter(self.restart)(counters)
        wiring.connect(m, wiring.flipped(self.counts), counters.counts)
        m.d.comb += [
            counters.events.eq(self.events),
            counters.start.eq(count & store.ready),
            counters.snapshot.eq(value[0]),
            counters.clear.eq(value[1]),
            store.snapshot.eq(counters.write),
            store.snapshot_word.eq(counters.write_word),
            store.snapshot_data.eq(counters.write_data),
        ]
        return counters.done, counters.saturated

    def _live(
        self,
        m: Module,
        registers: dict[str, Register],
        word: Value,
        state: RegisterState,
        saturated: Value,
    ) -> Signal:
        """What a read of a live register shows, one cycle later; 0 for all others.

        Registered, so that the slow memory output passes a single gate.
        """
        live = Signal(RING_BITS)
        values = {
            "CONTROL": Cat(self.run, self.soft_reset_pending),
            "STATUS": Cat(self.busy, self.error, self.dirty, self.draining),
            "IRQ_STATUS": state.irq_status,
            "RING_TAIL": self.ring_tail,
            "RING_HEAD": self.ring_head,
            "COUNTERS_SATURATED": saturated,
        }
        m.d.sync += live.eq(0)
        with m.Switch(word):
            for name, shown in values.items():
                with m.Case(registers[name].word):
                    m.d.sync += live.eq(shown)
        return live


def _allows(value: Signal, minimum: int, maximum: int, align: int) -> Value:
    """Whether `value` keeps the rule of a register, without 32-bit comparators."""
    width = maximum.bit_length()
    terms = [~value[: log2(align)].any(), ~value[width:].any()]
    if maximum > 1 and maximum & (maximum - 1) == 0:
        terms.append(~(value[width - 1] & value[: width - 1].any()))
    elif maximum & (maximum + 1):
        terms.append(value[:width] <= maximum)
    if minimum > align:
        terms.append(value >= minimum)
    elif minimum:
        terms.append(value.any())
    return Cat(terms).all()
