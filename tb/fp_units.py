"""Floating-point units of all latencies side by side, fed with the same operands."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.rtl.fp_adder import FloatAdder
from hotline.rtl.fp_format import FloatFormat
from hotline.rtl.fp_multiplier import FloatMultiplier

__all__ = ["FloatUnits"]


class FloatUnits(wiring.Component):
    """Adders and multipliers under one enable.

    Parameters
    ----------
    format : FloatFormat
    split : int
        Bits at which a third multiplier cuts its significands.

    Members
    -------
    enable : In(1)
    a, b : In(format.width)
    sum_3, sum_4, sum_5, product_4, product_5, product_split : Out(format.width)
        By latency.
    units : dict of str to (str, int)
        Operation of the model and latency, by output.
    """

    def __init__(self, format: FloatFormat, split: int) -> None:
        adders = {f"sum_{n}": FloatAdder(format, n) for n in (3, 4, 5)}
        multipliers = {f"product_{n}": FloatMultiplier(format, n) for n in (4, 5)}
        multipliers["product_split"] = FloatMultiplier(format, multiplier_bits=split)
        self._results = {
            **{name: (unit, unit.sum) for name, unit in adders.items()},
            **{name: (unit, unit.product) for name, unit in multipliers.items()},
        }
        self.units = {
            **{name: ("add", unit.latency) for name, unit in adders.items()},
            **{name: ("multiply", unit.latency) for name, unit in multipliers.items()},
        }
        number = format.width
        outputs = {name: Out(number) for name in self._results}
        super().__init__({"enable": In(1), "a": In(number), "b": In(number), **outputs})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, (unit, result) in self._results.items():
            m.submodules[name] = unit
            m.d.comb += [
                unit.enable.eq(self.enable),
                unit.a.eq(self.a),
                unit.b.eq(self.b),
                getattr(self, name).eq(result),
            ]
        return m
