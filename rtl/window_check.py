"""Address windows: the fence around everything the device may touch (spec section 8)."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.burst import PAGE_BYTES, beat_bits
from hotline.rtl.interfaces import bus_address, windows

__all__ = ["WindowCheck"]


class WindowCheck(wiring.Component):
    """Decides whether a burst lies wholly in one enabled window.

    The burst must be bus-aligned and must not cross a 4 KiB boundary. Then its last byte differs
    from its first only in the low 12 bits: nothing overflows, not even at the end of the address
    space.

    Contract: two stages, which move with `enable`: `inside` answers the burst that stood at the
    inputs in the last cycle but one with `enable`. One burst per cycle. A window with lo > hi
    contains nothing by itself. Reset does not matter: `inside` is only read after two `enable`.

    Parameters
    ----------
    config : Config

    Members
    -------
    windows : In
        The windows, bounds inclusive.
    addr, length : In
        First byte of the burst, and its beats less one (as AxLEN).
    enable : In
        Take a new burst, and decide about the one before.
    inside : Out
        The burst may be issued.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "windows": In(windows(config)),
                "addr": In(bus_address(config)),
                "length": In(8),
                "enable": In(1),
                "inside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low, page = beat_bits(self._config), PAGE_BYTES.bit_length() - 1
        # The sum has a cycle of its own, so that no carry chain follows another one.
        addr = Signal(bus_address(self._config), reset_less=True)
        last_beat = Signal(page - low, reset_less=True)
        with m.If(self.enable):
            m.d.sync += [addr.eq(self.addr), last_beat.eq(self.addr[low:page] + self.length)]
        end = Cat(Const((1 << low) - 1, low), last_beat, addr[page:])
        # Both comparisons subtract what all windows share, so that its inversion is shared as well:
        # lo > addr as the carry of lo + ~addr.
        inverted = Signal(len(addr))
        m.d.comb += inverted.eq(~addr)
        inside = Signal(self._config.windows)
        for i in range(self._config.windows):
            window = self.windows[i]
            below = (window.lo + inverted)[-1]
            with m.If(self.enable):
                m.d.sync += inside[i].eq(~below & ~(window.hi < end))
        m.d.comb += self.inside.eq(inside.any())
        return m
