"""Home addresses of rows, computed serially: the small sibling of :class:`RowAddress`."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.interfaces import TableField
from hotline.rtl.row_address import row_address_members, row_words_bits

__all__ = ["SerialRowAddress"]


class SerialRowAddress(wiring.Component):
    """Turns (table, row) into the home address of the row; same ports as :class:`RowAddress`.

    One row in about 7 cycles plus one for each bit of the row length in words; the scan takes 2
    cycles a table. All table registers are in one memory. Else as :class:`RowAddress`.

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
        index_bits = max(1, ceil_log2(config.max_tables))
        # Wide enough for any product; what runs over the address space is only "beyond".
        near_bits = config.addr_width - 2
        home_bits = max(near_bits, config.row_bits + row_words_bits(config)) + 1
        entry, out = self.entries.payload, self.rows
        words_bits = row_words_bits(config)

        # ---- table registers, one field a cycle -----------------------------------------------
        m.submodules.tables = tables = memory.Memory(
            shape=32, depth=4 << index_bits, init=[], attrs={"no_rw_check": 1}
        )
        write, read = tables.write_port(), tables.read_port()
        written = self.table_write.payload
        field, table = Signal(TableField), Signal(index_bits)
        m.d.comb += [
            self.table_write.ready.eq(1),
            write.addr.eq(Cat(written.field, written.table[:index_bits])),
            write.data.eq(written.value),
            write.en.eq(self.table_write.valid),
            read.addr.eq(Cat(field, table)),
            read.en.eq(1),
        ]

        # ---- a row at a time ------------------------------------------------------------------
        row, number = Signal(32), Signal(31)
        last = Signal()
        position = Signal(range(config.max_tables + 1))
        words, bits = Signal(words_bits), Signal(words_bits)
        step = Signal(range(words_bits + 1))
        sum_a, sum_b, home = Signal(home_bits), Signal(home_bits), Signal(home_bits)
        wide = near_bits > 30
        fetched_words = read.data[2 : 2 + words_bits]
        m.d.comb += [
            table.eq(number),
            # The one adder: doubling and adding the row, then adding the base.
            sum_a.eq(home << 1),
            sum_b.eq(Mux(bits[-1], row[: config.row_bits], 0)),
            self.fault_info.eq(Cat(row, number)),
            out.payload.home.eq(Cat(home[:near_bits], home[near_bits:].any())),
            out.payload.words.eq(words),
            out.payload.last.eq(last),
        ]

        def answer(move: int, count: int, fault: int) -> list:
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
                    table.eq(position),
                    field.eq(TableField.ROW_BYTES),
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
                m.d.sync += [row.eq(entry.row), number.eq(entry.table), last.eq(entry.last)]
                with m.If(self.entries.valid):
                    with m.If(entry.valid & ~entry.hot):
                        m.next = "ROWS"
                    with m.Else():
                        m.d.sync += answer(0, 0, 0)
                        m.next = "ANSWER"
            with m.State("ROWS"):
                m.d.comb += field.eq(TableField.ROWS)
                m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += field.eq(TableField.ROW_BYTES)
                m.d.sync += answer(0, 0, 1)
                m.next = "ANSWER"
                with m.If((number < self.table_limit) & (row < read.data)):
                    m.d.sync += out.valid.eq(0)
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.sync += [
                    words.eq(fetched_words),
                    bits.eq(fetched_words),
                    home.eq(0),
                    step.eq(words_bits),
                ]
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.comb += field.eq(TableField.BASE_LO)
                with m.If(step == 0):
                    m.d.comb += [
                        sum_a.eq(home),
                        sum_b.eq(read.data[2:]),
                        field.eq(TableField.BASE_HI),
                    ]
                    if wide:
                        m.next = "HIGH"
                    else:
                        m.d.sync += answer(words.any(), 1, 0)
                        m.next = "ANSWER"
                with m.Else():
                    m.d.sync += step.eq(step - 1)
                m.d.sync += [home.eq(sum_a + sum_b), bits.eq(bits << 1)]
            if wide:
                with m.State("HIGH"):
                    m.d.comb += [sum_a.eq(home), sum_b.eq(read.data << 30)]
                    m.d.sync += [home.eq(sum_a + sum_b), *answer(words.any(), 1, 0)]
                    m.next = "ANSWER"
            with m.State("ANSWER"), m.If(out.ready):
                m.d.sync += out.valid.eq(0)
                m.next = "ENTRY"
                with m.If(last | out.payload.fault):
                    m.next = "STOPPED"
        return m
