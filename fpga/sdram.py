"""Controller of a 16-bit single-data-rate SDRAM.

Sources: datasheets of parts that the ULX3S carries, such as IS42S16160G and AS4C16M16SA (4 banks
of 8192 rows of 512 columns of 16 bits); the times below are those of their slowest grades.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.axi_memory import MemoryPort
from hotline.gen.config import log2

__all__ = ["CAS_LATENCY", "SDRAM_BYTES", "SdramCommand", "SdramController", "SdramPins",
           "SdramTiming"]  # fmt: skip

_COLUMN_BITS, _BANK_BITS, _ROW_BITS = 9, 2, 13
#: 32 MiB.
SDRAM_BYTES = 2 << (_COLUMN_BITS + _BANK_BITS + _ROW_BITS)
#: Cycles from READ to data. The chips know 2 as well, but not at every clock.
CAS_LATENCY = 3
#: Mode register: CAS latency, bursts of one word.
_MODE = CAS_LATENCY << 4
#: A10 of PRECHARGE: all banks.
_ALL_BANKS = 1 << 10
#: Refreshes that the chips want at power-up.
_FIRST_REFRESHES = 8
#: From the decision to READ: command register, pad register, CAS latency, pad register.
_READ_DELAY = CAS_LATENCY + 3


class SdramCommand(enum.Enum, shape=3):
    """RAS, CAS, WE, as levels of the active-low pins (bit 2, 1, 0)."""

    MODE = 0b000
    REFRESH = 0b001
    PRECHARGE = 0b010
    ACTIVATE = 0b011
    WRITE = 0b100
    READ = 0b101
    NOP = 0b111


@dataclass(frozen=True)
class SdramTiming:
    """Times of the chip in cycles of a clock.

    Parameters
    ----------
    clock_mhz : float
        The clock.
    power_up_us : float
        Pause before the first command; simulations make it short.
    """

    clock_mhz: float
    power_up_us: float = 200.0

    def cycles(self, nanoseconds: float) -> int:
        """Fewest cycles that last at least so long."""
        return max(1, ceil(nanoseconds * self.clock_mhz / 1000 - 1e-9))

    @property
    def power_up(self) -> int:
        """Cycles of the first pause."""
        return self.cycles(1000 * self.power_up_us)

    @property
    def precharge(self) -> int:
        """tRP, PRECHARGE to the next command."""
        return self.cycles(21)

    @property
    def activate(self) -> int:
        """tRCD, ACTIVATE to READ or WRITE."""
        return self.cycles(21)

    @property
    def row(self) -> int:
        """tRAS, ACTIVATE to PRECHARGE; with tRP it makes up tRC."""
        return self.cycles(48)

    @property
    def refresh(self) -> int:
        """tRFC, REFRESH to the next command."""
        return self.cycles(70)

    @property
    def write_recovery(self) -> int:
        """tWR, WRITE to PRECHARGE."""
        return max(2, self.cycles(15))

    @property
    def refresh_interval(self) -> int:
        """Cycles between two REFRESH commands: 8192 in 64 ms, with room for an access before."""
        return int(7800 * self.clock_mhz / 1000) - 64


class SdramPins(wiring.Signature):
    """What goes to the chip, as the controller sees it, without the clock.

    Members
    -------
    command : Out(SdramCommand)
        RAS, CAS, WE.
    bank, address : Out
    mask : Out(2)
        1: do not write this byte.
    dq_o, dq_oe : Out
        Data to the chip, and whether to drive it.
    dq_i : In(16)
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "command": Out(SdramCommand, init=SdramCommand.NOP),
                "bank": Out(_BANK_BITS),
                "address": Out(_ROW_BITS),
                "mask": Out(2),
                "dq_o": Out(16),
                "dq_oe": Out(1),
                "dq_i": In(16),
            }
        )


class SdramController(wiring.Component):
    """A bus beat after the other, each as consecutive words of one row, which stays open.

    Throughput: a word of 16 bits a cycle while the row stays the same. Latency of a read in the
    open row: 7 cycles and those of its words; another row costs tRP + tRCD more, and tRAS if it
    was just opened. After reads a write waits until their data is here. A refresh comes between
    two beats. Back-pressure: a beat waits in `port.request`; what is read must be taken at once.
    Reset: begins with the pause and the initialisation of the chip; the contents are lost.

    Between these ports and the pins there must be one register in each direction.

    Parameters
    ----------
    data_width : int
        Bits of a beat.
    timing : SdramTiming
        For the clock that it runs with.

    Members
    -------
    port : In(MemoryPort)
        `addr` counts beats.
    pins : Out(SdramPins)
        All outputs come from registers.
    """

    def __init__(self, data_width: int, timing: SdramTiming) -> None:
        self.data_width, self.timing = data_width, timing
        self._words = data_width // 16
        beats = SDRAM_BYTES // (data_width // 8)
        super().__init__(
            {"port": In(MemoryPort(data_width, log2(beats))), "pins": Out(SdramPins())}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing, pins, request = self.timing, self.pins, self.port.request
        word_bits = log2(self._words)
        column_bits = _COLUMN_BITS - word_bits
        beat = request.payload
        place = Signal(_BANK_BITS + _ROW_BITS)
        column, bank, row = (
            beat.addr[:column_bits],
            place[:_BANK_BITS],
            place[_BANK_BITS:],
        )
        m.d.comb += place.eq(beat.addr[column_bits:])

        open_place, is_open = Signal.like(place), Signal()
        word = Signal(word_bits)
        pause = Signal(range(timing.power_up), init=timing.power_up - 1)
        paused = Signal(init=1)
        row_time = Signal(range(timing.row))
        recovery = Signal(range(timing.write_recovery))
        refresh_time = Signal(range(timing.refresh_interval), init=timing.refresh_interval - 1)
        refresh_due = Signal()
        refreshes = Signal(range(_FIRST_REFRESHES), init=_FIRST_REFRESHES - 1)

        def wait(cycles: int) -> None:
            """The next command comes `cycles` after this one."""
            if cycles > 1:
                m.d.sync += [pause.eq(cycles - 2), paused.eq(1)]

        def command(name: Any) -> None:
            m.d.sync += pins.command.eq(name)

        with m.If(paused):
            m.d.sync += [pause.eq(pause - 1), paused.eq(pause != 0)]
        for timer in (row_time, recovery):
            with m.If(timer != 0):
                m.d.sync += timer.eq(timer - 1)
        with m.If(refresh_time == 0):
            m.d.sync += [refresh_time.eq(timing.refresh_interval - 1), refresh_due.eq(1)]
        with m.Else():
            m.d.sync += refresh_time.eq(refresh_time - 1)

        reading = Signal(_READ_DELAY)
        lasts = Signal(_READ_DELAY)
        read_word, last_word = Signal(), Signal()
        m.d.sync += [
            pins.command.eq(SdramCommand.NOP),
            pins.dq_oe.eq(0),
            pins.mask.eq(0),
            pins.bank.eq(bank),
            pins.dq_o.eq(beat.data.word_select(word, 16)),
            reading.eq(Cat(read_word, reading)),
            lasts.eq(Cat(last_word, lasts)),
        ]
        hit = is_open & (place == open_place)
        with m.FSM():
            with m.State("POWER_UP"), m.If(~paused):
                command(SdramCommand.PRECHARGE)
                m.d.sync += pins.address.eq(_ALL_BANKS)
                wait(timing.precharge)
                m.next = "FIRST_REFRESHES"
            with m.State("FIRST_REFRESHES"), m.If(~paused):
                command(SdramCommand.REFRESH)
                m.d.sync += refreshes.eq(refreshes - 1)
                wait(timing.refresh)
                with m.If(refreshes == 0):
                    m.next = "MODE"
            with m.State("MODE"), m.If(~paused):
                command(SdramCommand.MODE)
                m.d.sync += [pins.address.eq(_MODE), pins.bank.eq(0)]
                wait(3)
                m.next = "RUN"
            with m.State("RUN"), m.If(~paused):
                m.d.sync += pins.address.eq(Cat(word, column))
                with m.If(refresh_due & (word == 0)):
                    m.next = "CLOSE"
                with m.Elif(request.valid & ~hit):
                    m.next = "CLOSE"
                # Data of reads must have left the bus before a write drives it.
                with m.Elif(request.valid & ~(beat.write & reading[:-1].any())):
                    m.d.comb += [
                        read_word.eq(~beat.write),
                        last_word.eq(~beat.write & word.all()),
                        request.ready.eq(word.all()),
                    ]
                    m.d.sync += [
                        word.eq(word + 1),
                        pins.dq_oe.eq(beat.write),
                        pins.command.eq(Mux(beat.write, SdramCommand.WRITE, SdramCommand.READ)),
                    ]
                    with m.If(beat.write):
                        m.d.sync += [
                            pins.mask.eq(~beat.strobe.word_select(word, 2)),
                            recovery.eq(timing.write_recovery - 1),
                        ]
            with m.State("CLOSE"), m.If(~paused):
                with m.If(is_open), m.If((row_time == 0) & (recovery == 0)):
                    command(SdramCommand.PRECHARGE)
                    m.d.sync += [pins.address.eq(_ALL_BANKS), is_open.eq(0)]
                    wait(timing.precharge)
                with m.Elif(refresh_due):
                    command(SdramCommand.REFRESH)
                    m.d.sync += refresh_due.eq(0)
                    wait(timing.refresh)
                with m.Elif(request.valid):
                    command(SdramCommand.ACTIVATE)
                    m.d.sync += [
                        pins.address.eq(row),
                        open_place.eq(place),
                        is_open.eq(1),
                        row_time.eq(timing.row - 1),
                    ]
                    wait(timing.activate)
                    m.next = "RUN"
                with m.Else():
                    m.next = "RUN"

        # Words that come back, the first of a beat lowest.
        words = Signal(self.data_width)
        m.d.sync += self.port.read.valid.eq(reading[-1] & lasts[-1])
        with m.If(reading[-1]):
            m.d.sync += words.eq(Cat(words[16:], pins.dq_i))
        m.d.comb += self.port.read.data.eq(words)
        return m
