"""Asynchronous serial port, 8 data bits, no parity, 1 stop bit."""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["MIN_DIVISOR", "Uart"]

#: Fewest cycles for each bit.
MIN_DIVISOR = 4

_DATA_BITS = 8


class Uart(wiring.Component):
    """Serial port of 8N1 characters.

    Bits are looked at in their middle. A start bit that is gone by its middle is taken for noise;
    a character whose stop bit is low is dropped, and the next one begins after the line has been
    high. The far end's clock may be 2 % off. Characters are sent without a gap as long as
    `transmit` offers one in the cycle in which it is ready. Reset: the line is idle, what was
    under way is lost.

    Parameters
    ----------
    divisor : int
        Cycles for each bit, at least 4.

    Members
    -------
    rx : In(1)
        The line, asynchronous; high when idle.
    tx : Out(1)
        The line, high when idle.
    received : Out(stream)
        Characters; one that is not taken before the next one ends is lost.
    transmit : In(stream)
        Characters to send.

    Raises
    ------
    ValueError
        The divisor is too small.
    """

    def __init__(self, divisor: int) -> None:
        if divisor < MIN_DIVISOR:
            raise ValueError(
                f"a bit must last at least {MIN_DIVISOR} cycles, not {divisor}: choose a lower "
                f"baud rate"
            )
        self.divisor = divisor
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "received": Out(stream.Signature(_DATA_BITS)),
                "transmit": In(stream.Signature(_DATA_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._receive(m)
        self._transmit(m)
        return m

    def _receive(self, m: Module) -> None:
        line = Signal(init=1)
        m.submodules.synchroniser = FFSynchronizer(self.rx, line, init=1)
        timer = Signal(range(self.divisor))
        # Start bit, data bits; the bit that falls out at the bottom says that all are in.
        bits = Signal(_DATA_BITS + 1)
        output = self.received
        with m.If(output.ready):
            m.d.sync += output.valid.eq(0)
        m.d.sync += timer.eq(timer - 1)
        with m.FSM(name="receiver"):
            # Also after a stop bit that was low: a broken line is no row of start bits.
            with m.State("QUIET"), m.If(line):
                m.next = "IDLE"
            with m.State("IDLE"):
                # The edge was seen up to a cycle late: this is the middle, or just before.
                m.d.sync += timer.eq((self.divisor - 1) // 2 - 1)
                with m.If(~line):
                    m.next = "START"
            with m.State("START"), m.If(timer == 0):
                m.d.sync += [timer.eq(self.divisor - 1), bits.eq(1 << _DATA_BITS)]
                m.next = "DATA"
                with m.If(line):
                    m.next = "IDLE"
            with m.State("DATA"), m.If(timer == 0):
                m.d.sync += [timer.eq(self.divisor - 1), bits.eq(Cat(bits[1:], line))]
                with m.If(bits[0]):
                    m.d.sync += [output.payload.eq(bits[1:]), output.valid.eq(line)]
                    m.next = "QUIET"

    def _transmit(self, m: Module) -> None:
        timer = Signal(range(self.divisor))
        # What is still to be sent, lowest bit first; above it one 1, which says where it ends.
        bits = Signal(_DATA_BITS + 2, init=1)
        busy = Signal()
        m.d.comb += [busy.eq(bits[1:].any()), self.transmit.ready.eq(~busy & (timer == 0))]
        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Elif(busy):
            m.d.sync += [self.tx.eq(bits[0]), bits.eq(bits >> 1), timer.eq(self.divisor - 1)]
        with m.Elif(self.transmit.valid):
            # The start bit goes out at once.
            m.d.sync += [
                self.tx.eq(0),
                bits.eq(Cat(self.transmit.payload, 1, 1)),
                timer.eq(self.divisor - 1),
            ]
