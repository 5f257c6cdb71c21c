"""From a region of indices to groups of checked keys with their sample boundaries."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.group_cutter import GroupCutter, cut
from hotline.rtl.index_gearbox import WORD_BITS, IndexGearbox, word_group
from hotline.rtl.interfaces import (
    Status,
    TableField,
    bus_address,
    key_group,
    read_beat,
    read_request,
    table_write,
)
from hotline.rtl.length_checker import KeyMode, LengthChecker, length_token
from hotline.rtl.linear_reader import LinearReader
from hotline.rtl.register_slice import register_slice
from hotline.rtl.stream_register import StreamRegister
from hotline.rtl.stream_stage import StreamStage
from hotline.rtl.stream_wire import StreamWire

__all__ = ["KeyMode", "KeyStream"]

#: Bits of a region's size, as the linear reader takes it.
SIZE_BITS = 36

#: Row limits of more tables lie in block RAM, which needs a register behind it to be fast.
SMALL_TABLES = 64


class KeyStream(wiring.Component):
    """Reads indices and bag lengths, checks them, and cuts them into groups of up to `lanes` keys.

    One group a cycle: with one-hot samples of at least `lanes` tables, `lanes` keys a group, so one
    bus beat a cycle where lanes = data_words. A bag begins a new group. KEY_LIST gives one
    key every two cycles. The latency from beat to group is at most ten cycles. `groups`
    stalls the stream, never the bus: what was requested is buffered by the read engine.

    The first error of spec section 7 in stream order ends the command with an error group; in a
    sample the bus faults of lengths and LENGTHS come before those of its indices. KEY_LIST
    emits all keys before the bad one. After the error group every beat is taken and dropped,
    and only a reset makes the block ready for the next command.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    start : In(1)
        Begins a command. The next eight members are stable from here to the last group.
    mode : In(KeyMode)
    one_hot : In(1)
        No lengths; `num_keys` = `count` * `num_tables` has been checked.
    aligned : In(1)
        No group has keys of two samples: costs the line rate, and spares the learner work.
    count : In(32)
        Samples, or keys for KEY_LIST. 0 gives one empty group and no reads.
    num_tables : In(range(max_tables + 1))
        1 or more; ignored by KEY_LIST.
    num_keys : In(31)
        Ignored by KEY_LIST.
    indices, lengths : In(addr_width)
        Regions, 64-byte aligned. KEY_LIST reads `indices`.
    index_request, length_request : Out(stream of read_request)
    index_data, length_data : In(stream of read_beat)
    index_fault_code, length_fault_code : In(Status)
    index_fault_addr, length_fault_addr : In(bus_address)
        What the read engine reports of its port, stable from the first beat with `fault` on.
    table_valid : In(1)
    table_write : In(table_write)
        A change of TABLE_ROWS; not while a command runs.
    groups : Out(stream of key_group)
        Bags: at most one a group. KEY_LIST: one key a group, each a sample of its own.
    fault_code : Out(Status)
    fault_info : Out(64)
        Valid with the error group and after it.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        address = config.addr_width
        super().__init__(
            {
                "start": In(1),
                "mode": In(KeyMode),
                "one_hot": In(1),
                "aligned": In(1),
                "count": In(32),
                "num_tables": In(range(config.max_tables + 1)),
                "num_keys": In(31),
                "indices": In(address),
                "lengths": In(address),
                "index_request": Out(stream.Signature(read_request(config))),
                "index_data": In(stream.Signature(read_beat(config))),
                "index_fault_code": In(Status),
                "index_fault_addr": In(bus_address(config)),
                "length_request": Out(stream.Signature(read_request(config))),
                "length_data": In(stream.Signature(read_beat(config))),
                "length_fault_code": In(Status),
                "length_fault_addr": In(bus_address(config)),
                "table_valid": In(1),
                "table_write": In(table_write(config)),
                "groups": Out(stream.Signature(key_group(config))),
                "fault_code": Out(Status),
                "fault_info": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        key_list = self.mode == KeyMode.KEY_LIST
        bags = ~key_list & ~self.one_hot
        words = Mux(key_list, self.count << 1, self.num_keys)

        m.submodules.index_reader = index_reader = LinearReader(config)
        m.submodules.length_reader = length_reader = LinearReader(config)
        m.submodules.checker = checker = LengthChecker(config)
        m.submodules.cutter = cutter = GroupCutter(config)
        m.submodules.gearbox = gearbox = IndexGearbox(config)

        stopped = Signal()
        begin, some = Signal(), Signal()
        m.d.sync += [begin.eq(self.start), some.eq(self.count != 0)]
        # Here ends the stall of the gearbox.
        m.submodules.beats = beats = register_slice(config, read_beat(config))
        wiring.connect(m, wiring.flipped(self.index_data), beats.input)
        # The lengths are summed out of flip-flops; on a narrow bus they come out of some.
        slice_ = StreamWire if config.narrow else StreamStage
        m.submodules.length_beats = lengths = slice_(read_beat(config))
        wiring.connect(m, wiring.flipped(self.length_data), lengths.input)
        m.d.comb += [
            index_reader.start.eq(begin & some),
            index_reader.addr.eq(self.indices),
            index_reader.bytes.eq(words << 2),
            length_reader.addr.eq(self.lengths),
            gearbox.words.eq(words),
            gearbox.beats.payload.eq(beats.output.payload),
            gearbox.beats.valid.eq(beats.output.valid),
            beats.output.ready.eq(gearbox.beats.ready | stopped),
            checker.count.eq(self.count),
            checker.num_keys.eq(self.num_keys),
            checker.data.payload.eq(lengths.output.payload),
            checker.data.valid.eq(lengths.output.valid),
            lengths.output.ready.eq(checker.data.ready | stopped),
        ]
        for part in (checker, cutter):
            m.d.comb += [
                part.mode.eq(self.mode),
                part.one_hot.eq(self.one_hot),
                part.aligned.eq(self.aligned),
                part.num_tables.eq(self.num_tables),
            ]
        for part in (checker, cutter, gearbox):
            m.d.comb += part.start.eq(self.start)
        tokens, groups = checker.tokens, gearbox.groups
        if not config.narrow:
            # The stalls of the cutter, and of the consumer, end here too where the clock is fast.
            m.submodules.tokens = next_token = StreamRegister(length_token(config))
            m.submodules.words = next_words = register_slice(config, word_group(config))
            wiring.connect(m, tokens, next_token.input)
            wiring.connect(m, groups, next_words.input)
            tokens, groups = next_token.output, next_words.output
        wiring.connect(m, tokens, cutter.tokens)
        # Without this register the stall of a group would reach back to the lengths.
        m.submodules.cuts = cuts = StreamRegister(cut(config))
        wiring.connect(m, cutter.cuts, cuts.input)
        wiring.connect(m, cuts.output, gearbox.cuts)
        wiring.connect(m, index_reader.request, wiring.flipped(self.index_request))
        wiring.connect(m, length_reader.request, wiring.flipped(self.length_request))
        self._size_lengths(m, length_reader, begin & some & bags)

        # All stages move together, and the stall of the consumer does not reach them at once.
        m.submodules.out = out = StreamRegister(key_group(config))
        wiring.connect(m, out.output, wiring.flipped(self.groups))
        move = out.input.ready
        m.d.comb += groups.ready.eq(move)
        stage = self._look_up(m, groups, move)
        stage = self._compare(m, stage, move)
        self._deliver(m, stage, out.input, stopped, checker.info)
        return m

    def _size_lengths(self, m: Module, reader: LinearReader, start: Signal) -> None:
        """Starts the reader of the lengths on count * num_tables u16, multiplied bit by bit."""
        bits = len(self.num_tables)
        product = Signal(32 + bits, reset_less=True)
        factor = Signal(bits)
        steps = Signal(range(bits + 1))
        go = Signal()
        with m.If(start):
            m.d.sync += [product.eq(0), factor.eq(self.num_tables), steps.eq(bits)]
        with m.Elif(steps != 0):
            m.d.sync += [
                product.eq((product << 1) + Mux(factor[-1], self.count, 0)),
                factor.eq(factor << 1),
                steps.eq(steps - 1),
            ]
        m.d.sync += go.eq(steps == 1)
        size = product << 1
        # More than the reader can express is more than any memory has: it may end early.
        over = size[SIZE_BITS:].any() if len(size) > SIZE_BITS else Const(0)
        m.d.comb += [reader.start.eq(go), reader.bytes.eq(Mux(over, -64, size))]

    def _lane_layout(self) -> data.StructLayout:
        config = self.config
        return data.StructLayout(
            {
                "row": data.ArrayLayout(WORD_BITS, config.lanes),
                "table": data.ArrayLayout(config.table_bits, config.lanes),
                "fault": config.lanes,
                "no_table": 1,
                "cut": cut(config),
            }
        )

    def _look_up(self, m: Module, groups: stream.Interface, move: Signal) -> dict:
        """Gives each lane its table, and reads the table's row limit."""
        config = self.config
        key_list = self.mode == KeyMode.KEY_LIST
        taken = groups.payload
        lanes = range(config.lanes)
        table = [Signal(config.table_bits, name=f"table_{i}") for i in lanes]
        for i in lanes:
            own = taken.cut.table_a
            if i:
                own = Mux(
                    self.one_hot & (i >= taken.cut.split), taken.cut.table_b, taken.cut.table_a
                ) + Mux(self.one_hot, i, 0)
            m.d.comb += table[i].eq(Mux(key_list, taken.word[0], own) if i == 0 else own)

        # A KEY_LIST entry comes as two groups of one word: the row waits here for its table.
        row, row_fault = Signal(WORD_BITS), Signal()
        no_table, blocked = Signal(), Signal()
        self._table_high = Signal(WORD_BITS - config.table_bits)
        pair_done = groups.valid & move & key_list & ~taken.cut.half
        m.d.comb += no_table.eq(
            key_list & (taken.cut.count != 0) & (taken.word[0] >= config.max_tables)
        )
        with m.If(groups.valid & move & taken.cut.half):
            m.d.sync += [row.eq(taken.word[0]), row_fault.eq(taken.fault[0])]
        with m.If(pair_done & ~blocked):
            # Nothing behind a table that does not exist matters, so its number can wait here.
            m.d.sync += [
                self._table_high.eq(taken.word[0][config.table_bits :]),
                blocked.eq(no_table),
            ]
        stage = Signal(self._lane_layout(), reset_less=True)
        valid = Signal()
        with m.If(move):
            m.d.sync += [
                valid.eq(groups.valid & ~taken.cut.half & ~blocked),
                stage.row.eq(taken.word),
                stage.table.eq(Cat(table)),
                stage.fault.eq(taken.fault),
                stage.no_table.eq(no_table),
                stage.cut.eq(taken.cut),
            ]
            with m.If(key_list):
                m.d.sync += [
                    stage.row[0].eq(row),
                    stage.fault[0].eq(taken.fault[0] | row_fault),
                ]
        limits = self._limits(m, table, move)
        if config.max_tables <= SMALL_TABLES:
            return {"valid": valid, "lanes": stage, "limits": limits}
        late, late_valid = Signal(self._lane_layout(), reset_less=True), Signal()
        late_limits = [Signal(len(limit), name=f"limit_{i}") for i, limit in enumerate(limits)]
        with m.If(move):
            m.d.sync += [late.eq(stage), late_valid.eq(valid), Cat(late_limits).eq(Cat(limits))]
        return {"valid": late_valid, "lanes": late, "limits": late_limits}

    def _limits(self, m: Module, table: list[Signal], move: Signal) -> list:
        """TABLE_ROWS by lane, one move after `table`: a copy of the registers for every lane."""
        config = self.config
        limits = []
        bits = min(32, config.row_bits + 1)
        index = len(range(config.max_tables))
        for i, address in enumerate(table):
            memory = Memory(
                shape=unsigned(bits),
                depth=max(2, config.max_tables),
                init=[],
                attrs={"no_rw_check": 1},
            )
            m.submodules[f"limits_{i}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(self.table_write.table[: max(1, index)]),
                write.data.eq(self.table_write.value),
                write.en.eq(self.table_valid & (self.table_write.field == TableField.ROWS)),
                read.addr.eq(address[: max(1, index)]),
                read.en.eq(move),
            ]
            limits.append(read.data)
        return limits

    def _compare(self, m: Module, stage: dict, move: Signal) -> dict:
        """Finds the lanes whose index is not there."""
        config = self.config
        lanes, cut_now = stage["lanes"], stage["lanes"].cut
        result, valid = Signal(self._lane_layout(), reset_less=True), Signal()
        bad = Signal(config.lanes)
        with m.If(move):
            m.d.sync += [result.eq(lanes), valid.eq(stage["valid"])]
            for i in range(config.lanes):
                wrong = lanes.fault[i] | (lanes.row[i] >= stage["limits"][i])
                if i == 0:
                    wrong |= lanes.no_table
                m.d.sync += bad[i].eq((i < cut_now.count) & wrong)
        return {"valid": valid, "lanes": result, "bad": bad}

    def _deliver(
        self, m: Module, stage: dict, groups: stream.Interface, stopped: Signal, info: Signal
    ) -> None:
        """Emits groups until the first error in stream order, then the error group."""
        config = self.config
        lanes, bad = stage["lanes"], stage["bad"]
        meta = lanes.cut
        bags = (self.mode == KeyMode.SAMPLES) & ~self.one_hot
        out = groups.payload

        pending = Signal()  # a bad index, while its sample's lengths are still being judged
        fault_row = Signal(WORD_BITS, reset_less=True)
        fault_table = Signal(config.table_bits, reset_less=True)
        fault_list = Signal()
        by_bus, by_length = Signal(), Signal()
        # One-hot: the sample that ends before the bad key must still come, or the learner would
        # miss that its group is complete. The error group follows it.
        owed = Signal()
        early = Cat(bad[i] & (i < meta.split) for i in range(config.lanes)).any()
        part = Signal()
        m.d.comb += part.eq(meta.end_a & bad.any() & ~early & ~owed)
        failed = pending | bad.any()
        wrong = owed | meta.error | failed & ~part & (~bags | meta.end_a)
        hold = ~meta.error & failed & ~wrong & ~part

        here = (stage["valid"] | owed) & ~stopped
        m.d.comb += [
            groups.valid.eq(here & ~hold),
            out.meta.count.eq(Mux(wrong, 0, Mux(part, meta.split, meta.count))),
            out.meta.split.eq(Mux(wrong, 0, meta.split)),
            # A wrong total belongs to the last sample, so that one does not end.
            out.meta.end_a.eq(meta.end_a & ~meta.short & ~wrong),
            out.meta.end_b.eq(meta.end_b & ~wrong & ~part),
            out.meta.last.eq((meta.last & ~part) | wrong),
            out.meta.error.eq(wrong),
        ]
        for i in range(config.lanes):
            m.d.comb += out.key[i].eq(Cat(lanes.row[i][: config.row_bits], lanes.table[i]))
        with m.If(groups.ready & here):
            m.d.sync += [stopped.eq(wrong), pending.eq(hold), owed.eq(part)]
            with m.If(meta.error & ~owed):
                m.d.sync += [by_length.eq(1), by_bus.eq(meta.bus)]
            with m.Elif(~pending & ~owed & bad.any()):
                for i in reversed(range(config.lanes)):
                    with m.If(bad[i]):
                        m.d.sync += [
                            fault_row.eq(lanes.row[i]),
                            fault_table.eq(lanes.table[i]),
                            by_bus.eq(lanes.fault[i]),
                        ]
                m.d.sync += fault_list.eq(lanes.no_table)
        high = Mux(fault_list, self._table_high, 0)
        index_info = Cat(fault_row, fault_table, high)
        with m.If(by_length):
            m.d.comb += [
                self.fault_code.eq(Mux(by_bus, self.length_fault_code, Status.LENGTHS)),
                self.fault_info.eq(Mux(by_bus, self.length_fault_addr, info)),
            ]
        with m.Else():
            m.d.comb += [
                self.fault_code.eq(Mux(by_bus, self.index_fault_code, Status.INDEX_RANGE)),
                self.fault_info.eq(Mux(by_bus, self.index_fault_addr, index_info)),
            ]
