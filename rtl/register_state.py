"""The registers whose values the device needs at all times, in flip-flops."""

from __future__ import annotations

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2
from hotline.gen.register_map import register_map
from hotline.rtl.interfaces import windows

__all__ = ["RING_BITS", "RegisterState"]

#: Bits that number the entries of a ring.
RING_BITS = 15


def _window_reset(config: Config) -> data.Const:
    """Window 0 covers everything, the others are off (lo > hi)."""
    off = {"lo": 1, "hi": 0}
    everything = {"lo": 0, "hi": (1 << config.addr_width) - 1}
    return windows(config).const([everything] + [off] * (config.windows - 1))


class RegisterState(wiring.Component):
    """Takes writes that have been found legal; reset gives the reset values.

    Members
    -------
    commit : In(1)
        Write `value` to the register at `word` (of the selected instance).
    word, value : In
        Word address and new value.
    completion_event, error_event : In(1)
        Pulses: set IRQ_STATUS bits; a set wins over a clear in the same cycle.
    irq : Out(1)
        Level, one cycle after its cause.
    soft_reset, resume, ring_reset : Out(1)
        Pulses in the cycle of the write.
    run, irq_status, ring_base, ring_log2, ring_tail, table_select, gpu_select, window_select
        Out: the registers.
    windows, gpu_count
        Out: the registers.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "commit": In(1),
                "word": In(6),
                "value": In(32),
                "completion_event": In(1),
                "error_event": In(1),
                "irq": Out(1),
                "soft_reset": Out(1),
                "resume": Out(1),
                "ring_reset": Out(1),
                "run": Out(1),
                "irq_status": Out(2),
                "ring_base": Out(config.addr_width),
                "ring_log2": Out(4, init=1),
                "ring_tail": Out(RING_BITS),
                "table_select": Out(max(1, ceil_log2(config.max_tables))),
                "gpu_select": Out(max(1, ceil_log2(config.gpus))),
                "window_select": Out(max(1, ceil_log2(config.windows))),
                "windows": Out(windows(config), init=_window_reset(config)),
                "gpu_count": Out(4, init=config.gpus),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        value, status = self.value, self.irq_status
        words = {register.name: register.word for register in register_map(self.config)}

        def written(*names: str) -> Value:
            return self.commit & Cat(self.word == words[name] for name in names).any()

        irq_enable = Signal(2)
        plain: list[tuple[str, Value, Value]] = [
            ("CONTROL", self.run, value),
            ("IRQ_ENABLE", irq_enable, value),
            ("IRQ_STATUS", status, status & ~value[:2]),
            ("RING_BASE_LO", self.ring_base[6:32], value[6:]),
            ("RING_BASE_HI", self.ring_base[32:], value),
            ("RING_LOG2", self.ring_log2, value),
            ("RING_TAIL", self.ring_tail, value),
            ("TABLE_SELECT", self.table_select, value),
            ("GPU_SELECT", self.gpu_select, value),
            ("WINDOW_SELECT", self.window_select, value),
            ("GPU_COUNT", self.gpu_count, value),
        ]
        for number in range(self.config.windows):
            lo, hi = self.windows[number].lo, self.windows[number].hi
            with m.If(self.window_select == number):
                for name, target in (
                    ("WINDOW_LO_LO", lo[:32]),
                    ("WINDOW_LO_HI", lo[32:]),
                    ("WINDOW_HI_LO", hi[:32]),
                    ("WINDOW_HI_HI", hi[32:]),
                ):
                    if len(target):
                        with m.If(written(name)):
                            m.d.sync += target.eq(value)
        for name, target, source in plain:
            if len(target):
                with m.If(written(name)):
                    m.d.sync += target.eq(source)

        m.d.comb += [
            self.soft_reset.eq(written("CONTROL") & value[1]),
            self.resume.eq(written("CONTROL") & value[2]),
            self.ring_reset.eq(written("RING_BASE_LO", "RING_BASE_HI", "RING_LOG2")),
        ]
        with m.If(self.ring_reset):
            m.d.sync += self.ring_tail.eq(0)
        with m.If(self.completion_event):
            m.d.sync += status[0].eq(1)
        with m.If(self.error_event):
            m.d.sync += status[1].eq(1)
        m.d.sync += self.irq.eq((status & irq_enable).any())
        return m
