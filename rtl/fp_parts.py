"""Parts that the floating-point units share: stage registers, leading zeros, a sticky shifter."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import ValueLike

from hotline.gen.config import ceil_log2

__all__ = ["StageRegisters", "leading_zeros", "shift_right", "shift_right_sticky"]

#: Bits that leading zeros are first counted in: two levels of 4-input tables.
_GROUP = 4


class StageRegisters:
    """Names what passes from stage to stage, in registers where the pipeline is to be cut.

    Parameters
    ----------
    m : Module
        Where the registers go; in its `sync` domain, without a reset.
    enable : Value
        All registers load while it is high, and hold while it is low.
    cuts : collection of str
        Stages that end in registers. Where others end there is only wire.
    """

    def __init__(self, m: Module, enable: Value, cuts: Collection[str]) -> None:
        self._m, self._enable, self._cuts = m, enable, cuts

    def end(self, stage: str, **values: ValueLike) -> SimpleNamespace:
        """`values` as they are after `stage`, by the same names."""
        passed = {}
        for name, value in values.items():
            value = Value.cast(value)
            passed[name] = signal = Signal(value.shape(), name=f"{stage}_{name}", reset_less=True)
            if stage in self._cuts:
                with self._m.If(self._enable):
                    self._m.d.sync += signal.eq(value)
            else:
                self._m.d.comb += signal.eq(value)
        return SimpleNamespace(**passed)


def leading_zeros(m: Module, value: Value, limit: Value | None = None) -> Value:
    """Zeros above the highest 1 of `value`, or `limit` if that is less.

    Parameters
    ----------
    m : Module
        Takes the signals in between.
    value : Value
        At least 3 bits. If all are 0 and there is no limit, the count is not defined.
    limit : Value, optional
        As wide as the result.

    Returns
    -------
    Value
        Of ``ceil_log2(len(value))`` bits.
    """
    levels = ceil_log2(len(value))
    padded = Cat(Const(0, (1 << levels) - len(value)), value)
    groups = [padded[i : i + _GROUP] for i in reversed(range(0, 1 << levels, _GROUP))]
    # Of each group: is there a 1, is there none in the upper half, and for either half, is there
    # none in its upper bit. The groups are narrowed down to the one that counts while its own
    # zeros are counted already.
    rows = [
        [group.any() for group in groups],
        [~group[2:].any() for group in groups],
        [~group[1] for group in groups],
        [~group[3] for group in groups],
    ]
    bits: list[Value] = [Const(0)] * levels
    # From the top bit down, the count takes a bit of the limit if there are as many zeros. Once
    # there are fewer, the limit does not matter any more.
    free: Value = Const(limit is None)

    def take(level: int, zeros: Value) -> Value:
        nonlocal free
        bit, now_free = Signal(name=f"count_{level}"), Signal(name=f"free_{level}")
        allowed = Const(0) if limit is None else limit[level]
        m.d.comb += [
            bit.eq(zeros & (allowed | free)),
            now_free.eq(free | (allowed & ~zeros)),
        ]
        bits[level], free = bit, now_free
        return bit

    for level in reversed(range(2, levels)):
        half = len(rows[0]) // 2
        bit = take(level, ~Cat(*rows[0][:half]).any())
        rows = [[_named(m, Mux(bit, row[i + half], row[i])) for i in range(half)] for row in rows]
    bit = take(1, rows[1][0])
    take(0, Mux(bit, rows[2][0], rows[3][0]))
    return Cat(*bits)


def shift_right(value: Value, places: int) -> Value:
    """`value` shifted right by a fixed number of places, as wide as it was."""
    return Cat(value[places:], Const(0, places))


def shift_right_sticky(
    m: Module, value: Value, places: Value, lowest: int = 0
) -> tuple[Value, Value]:
    """`value` shifted right by 2**`lowest` * `places`, and whether a 1 was shifted out.

    The long shifts come first, so that each level tells what it drops for good.

    Parameters
    ----------
    m : Module
        Takes the signals in between.
    value, places : Value
    lowest : int
        Weight of the lowest bit of `places`.

    Returns
    -------
    (Value, Value)
        As wide as `value`, and one bit.
    """
    sticky: Value = Const(0)
    for level in reversed(range(len(places))):
        distance = min(1 << (level + lowest), len(value))
        sticky = _named(m, sticky | (places[level] & value[:distance].any()))
        value = _named(m, Mux(places[level], shift_right(value, distance), value))
    return value, sticky


def _named(m: Module, value: ValueLike) -> Signal:
    """A signal for `value`: expressions of expressions would be written out again and again."""
    value = Value.cast(value)
    signal = Signal(value.shape(), name="part")
    m.d.comb += signal.eq(value)
    return signal
