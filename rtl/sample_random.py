"""The random word of every learned sample: L = perm((31 << 28) | n, 33, 0, 10) of `tracker.md`."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.feistel import feistel_round

__all__ = ["SampleRandom"]

SAMPLE_BITS = 28
WIDTH = 33
ROUNDS = 10
STEPS = ROUNDS // 2

#: What is above the number of the sample.
_TAG = 31


class SampleRandom(wiring.Component):
    """Bits 23..8 of L, for n = 0, 1, 2 and so on: a word for each item taken.

    It works ahead. One word in six cycles with up to two lanes, which is faster than such a hot
    table learns a sample of a dozen keys; else one a cycle. `clear` and reset go back to n = 0.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    clear : In(1)
    words : Out(stream of 16 bits)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"clear": In(1), "words": Out(stream.Signature(16))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number = Signal(SAMPLE_BITS)
        free = Signal()
        m.d.comb += free.eq(~self.words.valid | self.words.ready)

        if self.config.lanes <= 2:
            state = Signal(WIDTH, init=_TAG << SAMPLE_BITS)
            step = Signal(range(STEPS))
            # What the round needs of the step, a cycle ahead: the rounds alone fill a cycle.
            constants = [Signal(16, name=f"constant_{parity}") for parity in range(2)]
            result = _two_rounds(state, constants)
            final = step == STEPS - 1
            with m.If(free):
                m.d.sync += self.words.valid.eq(final)
            with m.If(~final):
                m.d.sync += [state.eq(result), step.eq(step + 1)]
                for parity, constant in enumerate(constants):
                    m.d.sync += constant.eq(_constants(step + 1, parity))
            with m.Elif(free):
                m.d.sync += [
                    self.words.payload.eq(result[8:24]),
                    number.eq(number + 1),
                    state.eq(_begin(number + 1)),
                    step.eq(0),
                    *(constant.eq(0) for constant in constants),
                ]
            with m.If(self.clear):
                m.d.sync += [
                    state.eq(_TAG << SAMPLE_BITS),
                    step.eq(0),
                    *(constant.eq(0) for constant in constants),
                ]
        else:
            valid = Signal(STEPS - 1)
            state = _begin(number)
            with m.If(free):
                m.d.sync += [
                    number.eq(number + 1),
                    Cat(valid, self.words.valid).eq(Cat(Const(1, 1), valid)),
                ]
            for step in range(STEPS):
                now = Const(step, range(STEPS))
                result = _two_rounds(state, [_constants(now, parity) for parity in range(2)])
                state = Signal(WIDTH, name=f"state_{step}")
                if step == STEPS - 1:
                    with m.If(free):
                        m.d.sync += self.words.payload.eq(result[8:24])
                else:
                    with m.If(free):
                        m.d.sync += state.eq(result)
            with m.If(self.clear):
                m.d.sync += valid.eq(0)
        with m.If(self.clear):
            m.d.sync += [number.eq(0), self.words.valid.eq(0)]
        return m


def _begin(number: Value) -> Value:
    """What is permuted for sample `number`."""
    return Cat(number[:SAMPLE_BITS], Const(_TAG, WIDTH - SAMPLE_BITS))


def _two_rounds(value: Value, constants: list[Value]) -> Value:
    """A round of either parity.

    Rounds of the same parity differ by a constant that is added last, so one pair serves all.
    """
    low = WIDTH - WIDTH // 2
    value = feistel_round(value, WIDTH, 0) ^ (constants[0][: WIDTH // 2] << low)
    return (feistel_round(value, WIDTH, 1) ^ constants[1])[:WIDTH]


def _constants(step: Value, parity: int) -> Value:
    """What the constant of round 2 * step + parity has more than that of round `parity`."""

    def constant(number: int) -> int:
        return (0x9E37 * (2 * number + 1)) & 0xFFFF

    result: Value = Const(0, 16)
    for i in range(1, STEPS):
        difference = constant(2 * i + parity) ^ constant(parity)
        result = Mux(step == i, difference, result)
    return result
