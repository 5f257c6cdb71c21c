"""A bank of the hot table with its share of the crossbar."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.feistel import hash_count
from hotline.rtl.hot_bank import HotBank, hash_array
from hotline.rtl.hot_group import bank_of
from hotline.rtl.hot_update import BankOp, entry_layout, index_width
from hotline.rtl.interfaces import HotOp, learn_context
from hotline.rtl.one_hot import one_hot_first

__all__ = ["CrossbarBank", "own_request", "waiting_key"]


def waiting_key(config: Config) -> data.StructLayout:
    """A key at the head of a lane: z, and all its hashes."""
    return data.StructLayout({"z": config.key_bits, "hash": hash_array(config)})


def own_request(config: Config) -> data.StructLayout:
    """What all banks do at once while they do not serve the lanes: a sweep, or the scan."""
    return data.StructLayout({"serving": 1, "valid": 1, "op": BankOp, "index": index_width(config)})


class CrossbarBank(wiring.Component):
    """Chooses among the lanes that want this bank, looks up, and hands the outcome back.

    Port A serves the first lane, port B (look-ups only) the last one that wants another key.
    See :class:`~hotline.rtl.hot_bank.HotBank` for latency and `hold`.

    Parameters
    ----------
    config : Config
        Validated configuration, lanes > 2.

    Members
    -------
    number : In
        Which bank this is.
    heads : In(ArrayLayout(waiting_key, lanes))
    leads : In(lanes)
        Lanes that want something, without those that follow another one.
    followers : In(ArrayLayout(lanes, lanes))
        By lane: which lanes want the same key, itself included.
    updating : In(1)
        The lanes want updates or loads; `op` and `learn` say which.
    own : In(own_request)
    granted : Out(lanes)
        Lanes that are served in this cycle.
    result_lanes : Out(lanes)
        Lanes whose outcome is in `result`.
    result : Out(ArrayLayout(ways, lanes))
        One-hot way or zero; zero where there is no outcome.
    hold, entries : Out
        Of the bank.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        lanes = config.lanes
        super().__init__(
            {
                "number": In(max(1, config.bank_bits)),
                "heads": In(data.ArrayLayout(waiting_key(config), lanes)),
                "leads": In(lanes),
                "followers": In(data.ArrayLayout(lanes, lanes)),
                "updating": In(1),
                "op": In(HotOp),
                "learn": In(learn_context(config)),
                "own": In(own_request(config)),
                "granted": Out(lanes),
                "result_lanes": Out(lanes),
                "result": Out(data.ArrayLayout(config.ways, lanes)),
                "hold": Out(1),
                "entries": Out(data.ArrayLayout(entry_layout(config), config.ways)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        lanes = range(config.lanes)
        m.submodules.bank = bank = HotBank(config)
        asks, first, last = Signal(config.lanes), Signal(config.lanes), Signal(config.lanes)
        second = Signal(config.lanes)
        # From the other end. Signals, since every use of an expression makes it anew.
        backwards = Signal(config.lanes)
        m.d.comb += [
            asks.eq(
                Cat(
                    self.leads[lane]
                    & (
                        bank_of(config, self.heads[lane].z)
                        == (self.number if config.bank_bits else 0)
                    )
                    for lane in lanes
                )
            ),
            first.eq(one_hot_first(asks)),
            backwards.eq(asks[::-1]),
            last.eq(one_hot_first(backwards)),
            second.eq(Mux(self.updating, 0, last[::-1] & ~first)),
        ]
        hashes = [self.heads[lane].hash.as_value() for lane in lanes]
        followers = [self.followers[lane] for lane in lanes]
        a_lanes, b_lanes = Signal(config.lanes), Signal(config.lanes)
        m.d.comb += [
            a_lanes.eq(_choose(first, followers)),
            b_lanes.eq(_choose(second, followers)),
            self.granted.eq(a_lanes | b_lanes),
            bank.a_valid.eq(Mux(self.own.serving, asks.any(), self.own.valid)),
            bank.a_lanes.eq(Mux(self.own.serving, a_lanes, 0)),
            bank.b_lanes.eq(b_lanes),
            bank.b_hash.eq(_choose(second, hashes)),
        ]
        with m.If(self.own.serving):
            m.d.comb += [
                bank.a.op.eq(Mux(self.updating, Cat(self.op, Const(0, 1)), 0)),
                bank.a.hash.eq(_choose(first, hashes)),
            ]
        with m.Else():
            m.d.comb += bank.a.op.eq(self.own.op)
            for number in range(hash_count(config)):
                m.d.comb += bank.a.hash[number].eq(self.own.index[: config.index_bits])
        if config.sample_aware:
            m.d.comb += [
                bank.a.hit.eq((first & self.learn.hit).any()),
                bank.a.x_zero.eq(self.learn.x_zero),
                bank.a.y.eq(self.learn.y),
                bank.a.random.eq(self.learn.random),
            ]
        m.d.comb += [
            self.hold.eq(bank.hold),
            self.entries.eq(bank.entries),
            self.result_lanes.eq(bank.a_result_lanes | bank.b_result_lanes),
        ]
        for lane in lanes:
            m.d.comb += self.result[lane].eq(
                (bank.a_result & bank.a_result_lanes[lane].replicate(config.ways))
                | (bank.b_result & bank.b_result_lanes[lane].replicate(config.ways))
            )
        return m


def _choose(select: Value, values: list[Value]) -> Value:
    """The value whose bit is set: AND-OR of a one-hot choice."""
    chosen: Value = Const(0, len(values[0]))
    for bit, value in zip(select, values, strict=True):
        chosen = chosen | (value & bit.replicate(len(value)))
    return chosen
