"""Groups of keys inside the hot table: hashed on the way in, answered on the way out."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.delay_line import DelayLine
from hotline.rtl.feistel import HashPipeline, hash_count
from hotline.rtl.hot_bank import bank_request, hash_array
from hotline.rtl.hot_update import index_width
from hotline.rtl.interfaces import (
    HotOp,
    group_meta,
    hot_request,
    learn_context,
)

__all__ = [
    "GroupHash",
    "answer",
    "bank_of",
    "bank_port",
    "group_context",
    "hashed_group",
    "keep_context",
    "request_of",
]


def hashed_group(config: Config) -> data.StructLayout:
    """A request with the hashes of its keys.

    `asked`: lanes whose keys have to go to a bank; all below count but for some of UPDATE.
    """
    return data.StructLayout(
        {
            "op": HotOp,
            "learn": learn_context(config),
            "meta": group_meta(config),
            "asked": config.lanes,
            "z": data.ArrayLayout(config.key_bits, config.lanes),
            "hash": data.ArrayLayout(hash_array(config), config.lanes),
        }
    )


def group_context(config: Config) -> data.StructLayout:
    """What the answer to a group needs besides the outcome of its look-ups."""
    indices = data.ArrayLayout(index_width(config), hash_count(config))
    return data.StructLayout(
        {
            "op": HotOp,
            "meta": group_meta(config),
            "asked": config.lanes,
            "z": data.ArrayLayout(config.key_bits, config.lanes),
            "index": data.ArrayLayout(indices, config.lanes),
        }
    )


def bank_port(config: Config) -> wiring.Signature:
    """Request and result ports of a bank, from the side that asks."""
    members = {
        "a": Out(bank_request(config)),
        "a_valid": Out(1),
        "a_lanes": Out(config.lanes),
        "a_result": In(config.ways),
        "a_result_lanes": In(config.lanes),
        "hold": In(1),
    }
    if config.lanes > 1:
        members |= {
            "b_hash": Out(hash_array(config)),
            "b_lanes": Out(config.lanes),
            "b_result": In(config.ways),
            "b_result_lanes": In(config.lanes),
        }
    return wiring.Signature(members)


def bank_of(config: Config, z: Value) -> Value:
    """Bank of a key, at least one bit wide."""
    return z[: config.bank_bits] if config.bank_bits else Const(0, 1)


def request_of(config: Config, group: data.View, lane: int) -> Value:
    """Bits of the bank_request that a lane of a group makes."""
    fields = [Cat(group.op, Const(0, 1)), group.hash[lane]]
    if config.sample_aware:
        learn = group.learn
        fields += [learn.hit[lane], learn.x_zero, learn.y, learn.random]
    return Cat(*fields)


def keep_context(config: Config, target: data.View, group: data.View) -> list:
    """Statements that put the context of `group` into `target`."""
    statements = [
        target.op.eq(group.op),
        target.meta.eq(group.meta),
        target.asked.eq(group.asked),
        target.z.eq(group.z),
    ]
    for lane in range(config.lanes):
        for number in range(hash_count(config)):
            index = group.hash[lane][number][: config.index_bits]
            statements.append(target.index[lane][number].eq(index))
    return statements


def answer(config: Config, target: data.View, context: data.View, results: list[Value]) -> list:
    """Statements that make a response of a context and, by lane, a one-hot way or zero."""
    statements = [
        target.op.eq(context.op),
        target.meta.eq(context.meta),
        target.z.eq(context.z),
    ]
    for lane, result in enumerate(results):
        number: Value = Const(0, max(1, config.way_bits))
        index: Value = Const(0, index_width(config))
        for way in range(config.ways):
            number = number | Mux(result[way], way, 0)
            if config.sample_aware:
                index = index | Mux(result[way], context.index[lane][way], 0)
        if not config.sample_aware:
            index = context.index[lane][0]
        bank = context.z[lane][: config.bank_bits]
        slot = Cat(number[: config.way_bits], bank, index[: config.index_bits])
        statements += [
            target.slot[lane].eq(slot),
            target.hit[lane].eq(result.any() & context.asked[lane]),
        ]
    return statements


class GroupHash(wiring.Component):
    """Hashes the keys of each group.

    It also sorts out the keys whose update changes nothing, wherever they are by now: those that
    hit in phase 1, in a sample with x != 0.

    One group a cycle; the pipeline stands still while its last stage waits. Reset empties it.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    input : In(stream of hot_request)
    output : Out(stream of hashed_group)
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "input": In(stream.Signature(hot_request(config))),
                "output": Out(stream.Signature(hashed_group(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        request, group = self.input.payload, self.output.payload
        move = Signal()
        m.d.comb += [move.eq(~self.output.valid | self.output.ready), self.input.ready.eq(move)]

        stages = 0
        for lane in range(config.lanes):
            pipeline = HashPipeline(config)
            m.submodules[f"lane_{lane}"] = pipeline
            stages = pipeline.stages
            m.d.comb += [
                pipeline.enable.eq(move),
                pipeline.key.eq(request.group.key[lane]),
                group.z[lane].eq(pipeline.z),
                group.hash[lane].eq(pipeline.hashes),
            ]
        valid: Value = self.input.valid
        for stage in range(stages):
            next_valid = Signal(name=f"valid_{stage}")
            with m.If(move):
                m.d.sync += next_valid.eq(valid)
            valid = next_valid
        rest = Cat(request.op, request.learn, request.group.meta)
        m.submodules.rest = delay = DelayLine(len(rest), stages)
        m.d.comb += [
            delay.enable.eq(move),
            delay.input.eq(rest),
            self.output.valid.eq(valid),
            Cat(group.op, group.learn, group.meta).eq(delay.output),
        ]
        idle = Signal(config.lanes)
        if config.sample_aware:
            with m.If((group.op == HotOp.UPDATE) & ~group.learn.x_zero):
                m.d.comb += idle.eq(group.learn.hit)
        for lane in range(config.lanes):
            m.d.comb += group.asked[lane].eq((group.meta.count > lane) & ~idle[lane])
        return m
