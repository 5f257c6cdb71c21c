"""Home addresses of rows, computed serially: the small sibling of :class:`RowAddress`."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import memory, wiring

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.interfaces import HotField, TableField
from hotline.rtl.row_address import row_address_members, row_words_bits
from hotline.rtl.slot_address import SLOT_GRAIN

__all__ = ["SerialRowAddress"]


class SerialRowAddress(wiring.Component):
    """Turns (table, row) into the home address of the row; same ports as :class:`RowAddress`.

    One row in about 7 cycles plus one for each bit of the row length in words, and as much again
    for its slot, with the bits of the slot number; the scan takes 2 cycles a table. All registers
    are in one memory. Else as :class:`RowAddress`.

    Parameters
    ----------
    config : Config
        The configuration.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(row_address_members(config))

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        gpu_bits = max(1, ceil_log2(config.gpus))
        index_bits = max(1, ceil_log2(config.max_tables), gpu_bits)
        words_bits, slot_bits = row_words_bits(config), config.slot_bits
        # Wide enough for any product; what runs over the address space is only "beyond".
        near_bits = config.addr_width - 2
        sum_bits = max(near_bits, config.row_bits + words_bits, 30 + slot_bits) + 1
        routed, out = self.entries.payload, self.rows
        entry = routed.entry

        # ---- table registers and, above them, those of the hot buffers, one field a cycle -----
        m.submodules.registers = registers = memory.Memory(
            shape=32, depth=8 << index_bits, init=[], attrs={"no_rw_check": 1}
        )
        write, read = registers.write_port(), registers.read_port()
        table_write, hot_write = self.table_write.payload, self.hot_write.payload
        field, index, of_gpu = Signal(2), Signal(index_bits), Signal()
        m.d.comb += [
            self.table_write.ready.eq(1),
            self.hot_write.ready.eq(1),
            write.en.eq(self.table_write.valid | self.hot_write.valid),
            write.addr.eq(Cat(table_write.field, table_write.table[:index_bits])),
            write.data.eq(table_write.value),
            read.addr.eq(Cat(field, index, of_gpu)),
        ]
        with m.If(self.hot_write.valid):
            m.d.comb += [
                write.addr.eq(
                    Cat(hot_write.field, hot_write.gpu | Const(0, index_bits), Const(1, 1))
                ),
                write.data.eq(hot_write.value),
            ]

        # ---- a row at a time ------------------------------------------------------------------
        row, number, slot, gpu = (
            Signal(32), Signal(32), Signal(slot_bits), Signal(gpu_bits)
        )  # fmt: skip
        last, hot, bad, counts = Signal(), Signal(), Signal(), Signal()
        zero = Signal()  # only the length is wanted
        position = Signal(range(config.max_tables + 1))
        words = Signal(words_bits)
        # The multiplication at hand: of the slot (`of_gpu`), or of the row.
        bits = Signal(max(words_bits, slot_bits))
        step = Signal(range(len(bits) + 1))
        factor = Signal(32)
        sum_a, sum_b, total = Signal(sum_bits), Signal(sum_bits), Signal(sum_bits)
        wide = near_bits > 30
        fetched_words = read.data[2 : 2 + words_bits]
        address = Cat(total[:near_bits], total[near_bits:].any())
        m.d.comb += [
            index.eq(Mux(of_gpu, gpu, number)),
            factor.eq(Mux(of_gpu, read.data[2:], row[: config.row_bits])),
            # The one adder: doubling and adding the factor, then adding the base.
            sum_a.eq(total << 1),
            sum_b.eq(Mux(bits[-1], factor, 0)),
            self.fault_info.eq(Cat(row, number)),
            out.payload.home.eq(address),
            out.payload.words.eq(words),
            out.payload.last.eq(last),
            out.payload.hot.eq(hot),
        ]

        multiplies_slot = Signal()

        def multiply(by: Value, width: int) -> list:
            """Begin with the highest bit of `by`."""
            return [bits.eq(by << (len(bits) - width)), total.eq(0), step.eq(width)]

        def answer(move: ValueLike, count: ValueLike, fault: int) -> list:
            return [
                out.valid.eq(1),
                out.payload.move.eq(move),
                out.payload.count.eq(count),
                out.payload.fault.eq(fault),
            ]

        with m.FSM(name="state"):
            with m.State("STOPPED"):
                m.d.sync += position.eq(0)
                with m.If(self.start):
                    m.d.sync += self.widest.eq(0)
                    m.next = "SCAN"
            with m.State("SCAN"):
                m.d.comb += [
                    self.scanning.eq(1),
                    index.eq(position),
                    field.eq(TableField.ROW_BYTES.value),
                ]
                with m.If(position == self.num_tables):
                    m.next = "ENTRY"
                with m.Else():
                    m.d.sync += position.eq(position + 1)
                    m.next = "WIDEST"
            with m.State("WIDEST"):
                m.d.comb += self.scanning.eq(1)
                with m.If(fetched_words > self.widest):
                    m.d.sync += self.widest.eq(fetched_words)
                m.next = "SCAN"
            with m.State("ENTRY"):
                m.d.comb += self.entries.ready.eq(1)
                m.d.sync += [
                    row.eq(entry.row),
                    number.eq(entry.table),
                    slot.eq(entry.slot),
                    gpu.eq(routed.gpu),
                    last.eq(entry.last),
                    zero.eq(entry.zero if config.pool else 0),
                    hot.eq(entry.hot),
                    bad.eq(entry.bad),
                    counts.eq(routed.counts),
                ]
                with m.If(self.entries.valid):
                    with m.If(entry.valid & entry.hot & self.hot_rows & config.hot_table):
                        if config.hot_table:
                            m.next = "SLOT"
                    with m.Elif((entry.valid & ~entry.hot) | (entry.zero if config.pool else 0)):
                        m.next = "ROWS"
                    with m.Else():
                        m.d.sync += answer(0, 0, 0)
                        m.next = "ANSWER"
            if config.hot_table:
                with m.State("SLOT"):
                    m.d.comb += [field.eq(HotField.STRIDE.value), index.eq(0)]
                    m.d.comb += of_gpu.eq(1)
                    m.d.sync += [multiplies_slot.eq(1), *multiply(slot, slot_bits)]
                    m.next = "MULTIPLY"
            with m.State("ROWS"):
                m.d.comb += field.eq(TableField.ROWS.value)
                m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += field.eq(TableField.ROW_BYTES.value)
                m.d.sync += answer(0, 0, 1)
                m.next = "ANSWER"
                with m.If(zero | (~bad & (number < self.table_limit) & (row < read.data))):
                    m.d.sync += out.valid.eq(0)
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.sync += [
                    words.eq(fetched_words),
                    multiplies_slot.eq(0),
                    *multiply(fetched_words, words_bits),
                ]
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.comb += [of_gpu.eq(multiplies_slot), field.eq(TableField.BASE_LO.value)]
                with m.If(multiplies_slot & (step > 1)):
                    # The factor stays at the memory's output until the last step.
                    m.d.comb += [field.eq(HotField.STRIDE.value), index.eq(0)]
                with m.If(step == 0):
                    m.d.comb += [
                        sum_a.eq(total),
                        sum_b.eq(read.data[2:]),
                        field.eq(TableField.BASE_HI.value),
                    ]
                    m.next = "HIGH" if wide else "FOUND"
                with m.Else():
                    m.d.sync += step.eq(step - 1)
                m.d.sync += [total.eq(sum_a + sum_b), bits.eq(bits << 1)]
            if wide:
                with m.State("HIGH"):
                    m.d.comb += [sum_a.eq(total), sum_b.eq(read.data << 30)]
                    m.d.sync += total.eq(sum_a + sum_b)
                    m.next = "FOUND"
            with m.State("FOUND"):
                with m.If(multiplies_slot):
                    m.d.sync += out.payload.slot.eq(address >> (SLOT_GRAIN - 2))
                    m.next = "ROWS"
                with m.Else():
                    m.d.sync += answer(words.any() & ~zero, counts & ~zero, 0)
                    m.next = "ANSWER"
            with m.State("ANSWER"), m.If(out.ready):
                m.d.sync += out.valid.eq(0)
                m.next = "ENTRY"
                with m.If(last | out.payload.fault):
                    m.next = "STOPPED"
        return m
