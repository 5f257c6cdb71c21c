"""Descriptor fetch and check: the front of the command processor (spec section 7)."""

from __future__ import annotations

from amaranth import Array, C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.commands import COMMANDS, DESCRIPTOR_BYTES, Flag, Opcode, is_built, known_flags
from hotline.gen.config import Config
from hotline.rtl.interfaces import Status, bus_address, count_bits, read_beat, read_request
from hotline.rtl.job_decoder import is_command
from hotline.rtl.linear_reader import LinearReader

__all__ = ["WORDS", "DescriptorChecker", "DescriptorFetcher", "descriptor_words"]

#: 32-bit words of a descriptor, and which of them are low and high halves of addresses.
WORDS = DESCRIPTOR_BYTES // 4
_LOW_WORDS, _HIGH_WORDS = (4, 6, 8, 10, 12, 14), (5, 7, 9, 11, 13, 15)

#: Bits of an address that must be 0: it is that of a multiple of 64.
_ALIGNED = 6


def descriptor_words() -> data.ArrayLayout:
    """A descriptor or completion record as 16 words of 32 bits."""
    return data.ArrayLayout(32, WORDS)


class DescriptorFetcher(wiring.Component):
    """Reads one descriptor into registers.

    Latency is that of the bus; `words` hold from `done` until the next `start`. Reset drops
    whatever is in progress.

    Members
    -------
    start : In(1)
        Pulse: fetch the descriptor at `addr` (bytes, 64-byte aligned). Ignored while busy.
    request, data
        Read port (see :class:`hotline.rtl.read_engine.ReadEngine`).
    words : Out
        The descriptor, without the bits that a legal one has not got, see `excess`. A `count`
        beyond :func:`~hotline.rtl.interfaces.count_bits` reads as the greatest of so many bits.
    excess : Out(WORDS)
        Bits of this word that read 0 were not: those of an address above `addr_width` or below
        64, and those of `num_tables` above `max_tables`.
    done : Out(1)
        Pulse: `words` or `fault` are valid.
    fault : Out(1)
        A beat of the descriptor could not be read.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "addr": In(bus_address(config)),
                "request": Out(stream.Signature(read_request(config))),
                "data": In(stream.Signature(read_beat(config))),
                "words": Out(descriptor_words()),
                "excess": Out(WORDS),
                "done": Out(1),
                "fault": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        config = self.config
        m = Module()
        m.submodules.reader = reader = LinearReader(config, DESCRIPTOR_BYTES)
        beats = DESCRIPTOR_BYTES // config.data_bytes
        beat = Signal(range(max(2, beats)))
        active = Signal()
        payload = self.data.payload

        m.d.comb += [
            reader.start.eq(self.start),
            reader.addr.eq(self.addr),
            reader.bytes.eq(DESCRIPTOR_BYTES),
            self.data.ready.eq(active),
        ]
        wiring.connect(m, reader.request, wiring.flipped(self.request))
        m.d.sync += self.done.eq(0)
        with m.If(self.start):
            m.d.sync += [active.eq(1), beat.eq(0), self.fault.eq(0)]
        with m.If(self.data.valid & self.data.ready):
            last = payload.fault | (beat == beats - 1)
            # Each beat to its place, so that words which nobody uses cost nothing.
            with m.Switch(beat):
                for place in range(beats):
                    with m.Case(place):
                        for n in range(config.data_words):
                            number = place * config.data_words + n
                            word = payload.data.word_select(n, 32)
                            low, high = self._kept(number)
                            kept, excess = word[low:high], Cat(word[:low], word[high:]).any()
                            if number == 1 and high < 32:
                                kept |= excess.replicate(high)
                            m.d.sync += self.excess[number].eq(excess)
                            if low < high:
                                m.d.sync += self.words[number][low:high].eq(kept)
            m.d.sync += [
                beat.eq(beat + 1),
                self.fault.eq(payload.fault),
                self.done.eq(last),
                active.eq(~last),
            ]
        return m

    def _kept(self, number: int) -> tuple[int, int]:
        """Which bits of a word are kept: from the first one to before the second."""
        config = self.config
        if number == 1:
            return 0, count_bits(config)
        if number == 2:
            return 0, config.max_tables.bit_length()
        if number in _LOW_WORDS:
            return _ALIGNED, min(32, config.addr_width)
        if number in _HIGH_WORDS:
            return 0, max(0, config.addr_width - 32)
        return 0, 32


class DescriptorChecker(wiring.Component):
    """Checks a descriptor in the order of section 7, short of what needs the data.

    Takes 16 cycles: `count` * `num_tables` is formed by shift and add.

    Members
    -------
    start : In(1)
        Pulse: `words` are valid and hold until `done`.
    words, excess : In
        The descriptor, as the fetcher hands it out.
    dirty, last_split : In(1)
        The directory has uncommitted changes; a SPLIT has succeeded that GATHER LAST can follow.
    done : Out(1)
        Pulse: `status` and `info` are valid; they hold until the next `start`.
    status, info : Out
        OK, BAD_OPCODE, BAD_DESCRIPTOR or NOT_COMMITTED, and the error info.
    unrecordable : Out(1)
        The completion address cannot take a record, whatever the status.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "words": In(descriptor_words()),
                "excess": In(WORDS),
                "dirty": In(1),
                "last_split": In(1),
                "done": Out(1),
                "status": Out(Status),
                "info": Out(8),
                "unrecordable": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        config = self.config
        m = Module()
        words = self.words
        opcode, flags = words[0][0:8], words[0][8:16]

        flag_mask = Signal(8)
        known, tables, keys, indices, lists, rows = (
            Signal(name=name) for name in ("known", "tables", "keys", "indices", "lists", "rows")
        )
        missing = Signal()
        with m.Switch(opcode):
            for code, command in COMMANDS.items():
                with m.Case(int(code)):
                    if not is_built(config, code):
                        m.d.comb += [known.eq(1), missing.eq(1)]
                        continue
                    m.d.comb += [
                        known.eq(1),
                        flag_mask.eq(known_flags(config, code)),
                        tables.eq(command.tables),
                        keys.eq(command.keys),
                        indices.eq(command.indices),
                        lists.eq(command.lists),
                        rows.eq(command.rows),
                    ]
                    if code == Opcode.SPLIT:
                        m.d.comb += rows.eq((flags & Flag.SPLIT_GATHER).any())
                    if code == Opcode.GATHER:
                        m.d.comb += lists.eq(~(flags & Flag.GATHER_LAST).any())
        split = is_command(config, opcode, Opcode.SPLIT)
        gather_last = (opcode == Opcode.GATHER) & (flags & Flag.GATHER_LAST).any()
        # What goes with GATHER only.
        alone = (
            split
            & (flags & (Flag.SPLIT_GATHER_HOT | Flag.SPLIT_POOL)).any()
            & ~(flags & Flag.SPLIT_GATHER).any()
        )
        pool = split & (flags & Flag.SPLIT_POOL).any()

        # count * num_tables, least significant bit of num_tables first.
        table_bits = config.max_tables.bit_length()
        product = Signal(32 + table_bits)
        addend = Signal(32 + table_bits)
        multiplier = Signal(table_bits)
        step = Signal(range(table_bits + 1))
        one_hot = (Cat(words[6], words[7]) == 0) & ~self.excess[6] & ~self.excess[7]
        num_tables = words[2][:table_bits]
        no_tables = (num_tables == 0) | (num_tables > config.max_tables) | self.excess[2]

        def unreachable(low: int) -> Value:
            return self.excess[low] | self.excess[low + 1]

        bad = {
            0: missing | (flags & ~flag_mask).any() | alone | (gather_last & ~self.last_split),
            2: tables & no_tables,
            3: keys & (words[3][31] | (one_hot & (product != words[3]))),
            4: indices & unreachable(4),
            6: indices & unreachable(6),
            8: lists & unreachable(8),
            10: rows & unreachable(10),
            **({12: pool & unreachable(12)} if config.pool else {}),
            14: unreachable(14),
        }
        is_bad = Signal(len(bad))
        numbers = Array(C(number, 8) for number in bad)
        first = Signal(range(len(bad)))
        for position in reversed(range(len(bad))):
            with m.If(is_bad[position]):
                m.d.comb += first.eq(position)

        m.d.sync += self.done.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    product.eq(0),
                    addend.eq(words[1]),
                    multiplier.eq(words[2]),
                    step.eq(0),
                ]
                with m.If(self.start):
                    m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.sync += [
                    product.eq(product + Mux(multiplier[0], addend, 0)),
                    addend.eq(addend << 1),
                    multiplier.eq(multiplier >> 1),
                    step.eq(step + 1),
                ]
                with m.If(step == table_bits - 1):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += [is_bad.eq(Cat(bad.values())), self.unrecordable.eq(bad[14])]
                m.next = "REPORT"
            with m.State("REPORT"):
                m.d.sync += [self.done.eq(1), self.status.eq(Status.OK), self.info.eq(0)]
                with m.If(~known):
                    m.d.sync += [self.status.eq(Status.BAD_OPCODE), self.info.eq(opcode)]
                with m.Elif(is_bad.any()):
                    m.d.sync += self.status.eq(Status.BAD_DESCRIPTOR)
                    m.d.sync += self.info.eq(numbers[first])
                with m.Elif(split & self.dirty):
                    m.d.sync += self.status.eq(Status.NOT_COMMITTED)
                m.next = "IDLE"
        return m
