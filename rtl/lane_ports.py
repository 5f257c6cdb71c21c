"""One or two lanes: each owns a port of every bank, so that look-ups never wait."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.hot_bank import RESULT_LATENCY
from hotline.rtl.hot_group import (
    answer,
    bank_of,
    bank_port,
    group_context,
    hashed_group,
    keep_context,
    request_of,
)
from hotline.rtl.interfaces import HotOp, hot_response

__all__ = ["LanePorts"]


class LanePorts(wiring.Component):
    """Dispatch of groups to the banks for `lanes` <= 2, in one rigid pipeline.

    A look-up group a cycle. An update group takes a cycle, one more if both keys are of the
    same bank, and what the interlock of the banks adds. Back-pressure stops the pipeline and,
    through `enable`, the banks. Reset empties it.

    Parameters
    ----------
    config : Config
        Validated configuration; lanes 1 or 2.

    Members
    -------
    request : In(stream of hashed_group)
    response : Out(stream of hot_response)
    bank : Out(bank_port).array(banks)
    enable : Out(1)
        The banks must hold all state while this is low.
    stall : Out(1)
        A lane waits for a bank in this cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "request": In(stream.Signature(hashed_group(config))),
                "response": Out(stream.Signature(hot_response(config))),
                "bank": Out(bank_port(config)).array(config.banks),
                "enable": Out(1),
                "stall": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        lanes = range(config.lanes)
        group = self.request.payload
        hold = Signal()
        move = Signal()
        m.d.comb += [
            hold.eq(Cat(bank.hold for bank in self.bank).any()),
            self.enable.eq(~self.response.valid | self.response.ready),
            move.eq(self.enable & ~hold),
        ]

        # Look-ups wait until the last update before them has been written.
        update = Signal()
        recent = Signal(RESULT_LATENCY)
        ready = Signal()
        m.d.comb += [
            update.eq(group.op != HotOp.LOOKUP),
            ready.eq(move & self.request.valid & (update | ~recent.any())),
        ]
        banks = [bank_of(config, group.z[lane]) for lane in lanes]
        issued = Signal(config.lanes)
        wanted = Signal(config.lanes)
        granted = Signal(config.lanes)
        m.d.comb += [
            wanted.eq(Cat((group.meta.count > lane) & ~issued[lane] for lane in lanes)),
            granted[0].eq(wanted[0]),
            self.request.ready.eq(ready & (granted == wanted)),
            self.stall.eq(self.request.valid & self.enable & (wanted != 0) & ~self.request.ready),
        ]
        if config.lanes == 2:
            clash = update & wanted[0] & (banks[0] == banks[1])
            m.d.comb += granted[1].eq(wanted[1] & ~clash)
        with m.If(ready):
            m.d.sync += issued.eq(Mux(granted == wanted, 0, issued | granted))
        with m.If(move):
            wrote = ready & update & wanted.any()
            m.d.sync += recent.eq(Cat(wrote, recent[:-1]))

        for number, bank in enumerate(self.bank):
            here = [granted[lane] & (banks[lane] == number) for lane in lanes]
            self._drive_bank(m, bank, here, ready, update)

        # The group follows its last key through the bank's stages.
        context = group_context(config)
        stage = Signal(context, name="context_0", reset_less=True)
        valid = Signal(name="valid_0")
        with m.If(move):
            m.d.sync += [valid.eq(self.request.valid & self.request.ready)]
            m.d.sync += keep_context(config, stage, group)
        for number in range(1, RESULT_LATENCY):
            next_stage = Signal(context, name=f"context_{number}", reset_less=True)
            next_valid = Signal(name=f"valid_{number}")
            with m.If(self.enable):
                m.d.sync += next_stage.eq(stage)
                m.d.sync += next_valid.eq(valid & ~hold if number == 1 else valid)
            stage, valid = next_stage, next_valid

        # A key that was issued before the last one of its group has its result kept.
        results = []
        for lane in lanes:
            came = Signal(name=f"came_{lane}")
            now = Signal(config.ways, name=f"now_{lane}")
            kept = Signal(config.ways, name=f"kept_{lane}", reset_less=True)
            m.d.comb += self._collect(lane, came, now)
            if config.lanes > 1:
                with m.If(self.enable & came):
                    m.d.sync += kept.eq(now)
                results.append(Mux(came, now, kept))
            else:
                results.append(now)
        response = Signal(hot_response(config), reset_less=True)
        responding = Signal()
        with m.If(self.enable):
            m.d.sync += responding.eq(valid)
            m.d.sync += answer(config, response, stage, results)
        m.d.comb += [self.response.valid.eq(responding), self.response.payload.eq(response)]
        return m

    def _drive_bank(
        self, m: Module, bank: wiring.PureInterface, here: list[Value], ready: Value, update: Value
    ) -> None:
        config = self.config
        group = self.request.payload
        first = request_of(config, group, 0)
        if config.lanes == 1:
            m.d.comb += [
                bank.a.eq(first),
                bank.a_valid.eq(ready & here[0]),
                bank.a_lanes.eq(here[0]),
            ]
            return
        second = update & ~here[0]
        m.d.comb += [
            bank.a.eq(Mux(second, request_of(config, group, 1), first)),
            bank.a_valid.eq(ready & (here[0] | (update & here[1]))),
            bank.a_lanes.eq(Cat(here[0], second & here[1])),
            bank.b_hash.eq(group.hash[1]),
            bank.b_lanes.eq(Cat(Const(0, 1), ready & ~update & here[1])),
        ]

    def _collect(self, lane: int, came: Signal, now: Signal) -> list:
        """The outcome of a lane's key, from whatever port it leaves in this cycle."""
        config = self.config
        lanes: list[Value] = []
        results: Value = Const(0, config.ways)
        for bank in self.bank:
            ports = [(bank.a_result_lanes, bank.a_result)]
            if config.lanes > 1:
                ports.append((bank.b_result_lanes, bank.b_result))
            for mask, result in ports:
                lanes.append(mask[lane])
                results = results | Mux(mask[lane], result, 0)
        return [came.eq(Cat(lanes).any()), now.eq(results)]
