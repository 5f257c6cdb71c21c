"""The memory behind the register bank."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.gen.register_map import COUNTERS, register_map
from hotline.rtl.interfaces import HotField, Status, TableField, hot_write, table_write

__all__ = ["GPU_BASE", "TABLE_BASE", "WINDOW_BASE", "RegisterStore", "failure", "initial_words"]

#: Where the instances of the selected registers start, four words each. Below: the plain
#: registers by word address. The tables come last because their number varies.
WINDOW_BASE, GPU_BASE, TABLE_BASE = 64, 96, 128


def failure() -> data.StructLayout:
    """What ERROR_STATUS and ERROR_INFO show of a failed command."""
    return data.StructLayout({"status": Status, "info": 64})


def initial_words(config: Config) -> dict[int, int]:
    """Words of the memory that are not 0 after reset, by place."""
    registers = register_map(config)
    words = {
        register.word: register.reset
        for register in registers
        if register.selector is None and not register.live and register.reset
    }
    first = next(register.word for register in registers if register.name == "WINDOW_LO_LO")
    for register in registers:
        if register.selector == "WINDOW_SELECT" and register.reset:
            words[WINDOW_BASE + register.word - first] = register.reset
    for window in range(1, config.windows):
        words[WINDOW_BASE + 4 * window] = 1  # lo = 1, hi = 0: off
    return words


class RegisterStore(wiring.Component):
    """One 32-bit word for each register that is not live, with a read and a write port.

    After reset and after `restart` a walk writes the reset values, one word a cycle. Block RAM
    in place of flip-flops and of the read multiplexer of some two hundred registers.

    Members
    -------
    restart : In(1)
        Pulse: walk again.
    ready : Out(1)
        The walk is done. Until then reads and writes have no effect.
    place : In
        Word address of the access, a cycle ahead of it.
    read : In(1), read_data : Out(32)
        The word at where `place` pointed in the cycle before, one cycle later.
    write : In(1), write_data : In(32)
        Write to where `place` pointed in the cycle before.
    scan : In(1)
        Holds until `scanned`: is any TABLE_ROW_BYTES above `write_data`? Takes 4 * max_tables + 3
        cycles.
    scanned, above : Out(1)
        Pulse, and the answer, which holds until the next scan.
    changes_table, changes_hot : In(1)
        The write is one of a TABLE_*, or of a HOT_* register.
    table_write, hot_write : Out, stream
        Such writes, and the zeroes of the walk, a cycle later (in a device of rows alone at once).
        They do not wait for `ready`.
    snapshot, snapshot_word, snapshot_data : In
        Writes of the counter bank; only while `write` is 0.
    failure : In, stream
        Written to ERROR_*; waits for reads and other writes.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.depth = TABLE_BASE + 4 * config.max_tables
        super().__init__(
            {
                "restart": In(1),
                "ready": Out(1),
                "place": In(range(self.depth)),
                "read": In(1),
                "read_data": Out(32),
                "write": In(1),
                "write_data": In(32),
                "scan": In(1),
                "scanned": Out(1),
                "above": Out(1),
                "changes_table": In(1),
                "changes_hot": In(1),
                "table_write": Out(stream.Signature(table_write(config))),
                "hot_write": Out(stream.Signature(hot_write(config))),
                "snapshot": In(1),
                "snapshot_word": In(range(2 * len(COUNTERS))),
                "snapshot_data": In(32),
                "failure": In(stream.Signature(failure())),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = {register.name: register.word for register in register_map(self.config)}
        m.submodules.memory = memory = Memory(
            shape=32, depth=self.depth, init=[], attrs={"no_rw_check": 1}
        )
        read, write = memory.read_port(), memory.write_port()
        place = Signal.like(self.place)
        m.d.sync += place.eq(self.place)
        m.d.comb += self.read_data.eq(read.data)

        walking, scanning = Signal(init=1), Signal()
        walk = Signal(range(self.depth))
        at_end = walk == self.depth - 1
        # What the walk writes, a cycle later.
        walks, walked, initial = Signal(), Signal.like(walk), Signal(32)
        m.d.sync += [walks.eq(walking), walked.eq(walk), initial.eq(0)]
        with m.Switch(walk):
            for position, word in initial_words(self.config).items():
                with m.Case(position):
                    m.d.sync += initial.eq(word)
        with m.If(walking | scanning):
            m.d.sync += walk.eq(walk + 1)
            with m.If(at_end):
                m.d.sync += [walking.eq(0), scanning.eq(0)]

        # The scan reads all table words; what comes back counts if it is a length. It is compared
        # a cycle after the slow memory has delivered it.
        is_length, ending = Signal(2), Signal(2)
        width = self.config.max_row_bytes.bit_length()
        length = Signal(width)
        longer = (length > self.write_data[:width]) & ~self.write_data[width:].any()
        m.d.comb += read.addr.eq(Mux(scanning, walk, place))
        m.d.sync += [
            length.eq(read.data),
            is_length.eq(Cat(scanning & (walk[:2] == TableField.ROW_BYTES.value), is_length)),
            ending.eq(Cat(scanning & at_end, ending)),
            self.scanned.eq(ending[1]),
        ]
        with m.If(is_length[1] & longer):
            m.d.sync += self.above.eq(1)
        with m.If(self.scan & ~(walking | scanning | ending.any() | self.scanned)):
            m.d.sync += [walk.eq(TABLE_BASE), scanning.eq(1), self.above.eq(0)]
        with m.If(self.restart):
            m.d.sync += [walk.eq(0), walking.eq(1), scanning.eq(0), self.above.eq(0)]

        step = Signal(range(3))
        failed = self.failure.payload
        waits = Signal()  # a failure, a cycle late: it comes from far away
        m.d.comb += self.ready.eq(~walking & ~walks)
        m.d.sync += waits.eq(self.failure.valid & ~self.failure.ready)
        with m.If(walks):
            m.d.comb += [write.en.eq(1), write.addr.eq(walked), write.data.eq(initial)]
        with m.Elif(self.write):
            m.d.comb += [
                write.en.eq(1),
                write.addr.eq(place),
                write.data.eq(self.write_data),
            ]
        with m.Elif(self.snapshot):
            m.d.comb += [
                write.en.eq(1),
                write.addr.eq(self.snapshot_word + words["BUSY_CYCLES_LO"]),
                write.data.eq(self.snapshot_data),
            ]
        # Not in the cycle of a read: the memory does not say what that would see.
        with m.Elif(waits & ~self.read):
            m.d.comb += [write.en.eq(1), self.failure.ready.eq(step == 2)]
            m.d.sync += step.eq(Mux(step == 2, 0, step + 1))
            with m.Switch(step):
                with m.Case(0):
                    m.d.comb += write.addr.eq(words["ERROR_STATUS"])
                    m.d.comb += write.data.eq(failed.status)
                with m.Case(1):
                    m.d.comb += write.addr.eq(words["ERROR_INFO_LO"])
                    m.d.comb += write.data.eq(failed.info[:32])
                with m.Default():
                    m.d.comb += write.addr.eq(words["ERROR_INFO_HI"])
                    m.d.comb += write.data.eq(failed.info[32:])
        with m.If(self.restart):
            m.d.sync += step.eq(0)

        # From registers, since it goes to all units, or in a device of rows alone to a single one.
        table = self.table_write.payload
        through = m.d.sync if self.config.hot_table else m.d.comb
        through += [
            self.table_write.valid.eq(Mux(walks, walked >= TABLE_BASE, self.changes_table)),
            table.table.eq(write.addr[2:] - TABLE_BASE // 4),
            table.field.eq(write.addr[:2]),
            table.value.eq(write.data),
        ]
        hot, of_gpu = self.hot_write.payload, Signal()
        walks_hot = (walked == words["HOT_STRIDE"]) | (of_gpu & (walked < TABLE_BASE))
        m.d.comb += of_gpu.eq(write.addr >= GPU_BASE)
        m.d.sync += [
            self.hot_write.valid.eq(Mux(walks, walks_hot, self.changes_hot)),
            hot.gpu.eq(write.addr[2:] - GPU_BASE // 4),
            hot.field.eq(Mux(of_gpu, write.addr[:2], HotField.STRIDE)),
            hot.value.eq(write.data),
        ]
        return m
