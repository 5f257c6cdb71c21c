"""The Feistel permutation of the key hash: forward pipeline with taps, and iterative inverse.

Source: `tracker.md`, section "Hash, banks, ways". Round numbers are absolute: the network of z
takes rounds 0..3, way w of `sample_aware` adds rounds 4..3+2w on the bits above the bank number.
"""

from __future__ import annotations

from amaranth import Cat, Module, Signal, Value
from amaranth.hdl import ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config

__all__ = ["HashPipeline", "InverseHash", "feistel_round", "hash_count"]

#: Rounds of the network that makes z, and rounds between the taps of two ways.
Z_ROUNDS = 4
WAY_ROUNDS = 2


def hash_count(config: Config) -> int:
    """Distinct hashes h_w of a key: one a way for `sample_aware`, one for all in `srrip`."""
    return config.ways if config.sample_aware else 1


def feistel_round(value: ValueLike, width: int, number: int) -> Value:
    """Round `number` of the network on `width` bits, as an expression.

    A round changes one half by a function of the other half, so it is its own inverse.
    """
    value = Value.cast(value)
    a = width // 2
    b = width - a
    low, high = value[:b], value[b:width]
    constant = (0x9E37 * (2 * number + 1)) & 0xFFFF
    if number % 2 == 0:
        mixed = _mix(low, b) ^ constant
        return Cat(low, high ^ mixed[:a])
    wide = high if a == b else Cat(high, high[3 % a] ^ high[9 % a])
    mixed = _mix(wide, b) ^ constant
    return Cat(low ^ mixed[:b], high)


def _mix(x: Value, width: int) -> Value:
    """F(x): rotations by fixed amounts, one AND pair for non-linearity."""

    def left(amount: int) -> Value:
        return x.rotate_left(amount % width)

    return (left(1) & left(8)) ^ left(2) ^ left(7) ^ (left(4) & ~left(11))


class HashPipeline(wiring.Component):
    """Key in, z and all h_w out, two rounds a stage.

    Latency :attr:`stages` enabled cycles, one key a cycle. The pipeline is rigid: it moves when
    `enable` is high and holds otherwise. It has no state that needs a reset.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    enable : In(1)
    key : In(key_bits)
    z : Out(key_bits)
        The key's permutation.
    hashes : Out((key_bits - bank_bits) * hash_count)
        h_0 in the lowest bits, then h_1 and so on.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.count = hash_count(config)
        self.stages = Z_ROUNDS // 2 + (self.count - 1) * WAY_ROUNDS // 2
        width = config.key_bits - config.bank_bits
        super().__init__(
            {
                "enable": In(1),
                "key": In(config.key_bits),
                "z": Out(config.key_bits),
                "hashes": Out(width * self.count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        bits = config.key_bits
        width = bits - config.bank_bits
        z: Value = self.key
        taps: list[Value] = []
        for stage in range(self.stages):
            first = 2 * stage
            if first < Z_ROUNDS:
                mixed = self._two_rounds(m, z, bits, first)
                z = self._register(m, f"z_{stage}", mixed, bits)
                continue
            start = taps[-1] if taps else z[config.bank_bits :]
            mixed = self._two_rounds(m, start, width, first)
            z = self._register(m, f"z_{stage}", z, bits)
            taps = [
                self._register(m, f"tap_{stage}_{n}", tap, width)
                for n, tap in enumerate([*taps, mixed])
            ]
        m.d.comb += [
            self.z.eq(z),
            self.hashes.eq(Cat(z[config.bank_bits :], *taps)),
        ]
        return m

    def _two_rounds(self, m: Module, value: Value, width: int, first: int) -> Signal:
        """Rounds `first` and `first` + 1, with a signal between, lest the expression explode."""
        for number in (first, first + 1):
            result = Signal(width, name=f"round_{number}")
            m.d.comb += result.eq(feistel_round(value, width, number))
            value = result
        return result

    def _register(self, m: Module, name: str, value: Value, width: int) -> Signal:
        register = Signal(width, name=name, reset_less=True)
        with m.If(self.enable):
            m.d.sync += register.eq(value)
        return register


class InverseHash(wiring.Component):
    """From (bank, way, h_w) back to the key, one round a cycle, backwards.

    A pulse on `start` latches the operands; `done` is high, with `key` valid, from
    4 + 2w cycles later (4 for `srrip`) until the next `start`. Reset makes it idle.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    start : In(1)
    way : In(way_bits or 1)
        Which permutation `hash` is of; ignored by `srrip`.
    bank : In(bank_bits or 1)
    hash : In(key_bits - bank_bits)
    done : Out(1)
    key : Out(key_bits)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "way": In(max(1, config.way_bits)),
                "bank": In(max(1, config.bank_bits)),
                "hash": In(config.key_bits - config.bank_bits),
                "done": Out(1),
                "key": Out(config.key_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        bits, beta = config.key_bits, config.bank_bits
        width = bits - beta
        last = Z_ROUNDS + WAY_ROUNDS * (hash_count(config) - 1)
        left = Signal(range(last + 1))
        state = Signal(bits, reset_less=True)

        begin: Value | int = Z_ROUNDS
        if hash_count(config) > 1:
            begin = Z_ROUNDS + WAY_ROUNDS * self.way
        with m.If(self.start):
            m.d.sync += [
                left.eq(begin),
                state.eq(Cat(self.bank[:beta], self.hash)),
            ]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
            with m.Switch(left):
                for number in range(last):
                    with m.Case(number + 1):
                        if number < Z_ROUNDS:
                            m.d.sync += state.eq(feistel_round(state, bits, number))
                        else:
                            undone = feistel_round(state[beta:], width, number)
                            m.d.sync += state[beta:].eq(undone)
        m.d.comb += [self.key.eq(state), self.done.eq(left == 0)]
        return m
