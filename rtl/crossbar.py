"""Four lanes and more: look-ups drift in per-lane queues and share the ports of the banks."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
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
from hotline.rtl.hot_update import one_hot_first
from hotline.rtl.interfaces import HotOp, hot_response

__all__ = ["Crossbar"]

#: Groups that a lane may be behind another one.
_QUEUE = 16
#: Groups between the queues and the response; covers the queues and the latency of the banks.
_GROUPS = 32


class Crossbar(wiring.Component):
    """Dispatch of groups to the banks for `lanes` > 2.

    Look-ups: each lane has a queue of keys; a bank takes two different keys a cycle, and equal
    keys at the heads of several queues are one request, answered to all of them. So `lanes`
    keys a cycle but for rare conflicts, which the queues even out. Updates and loads: group by
    group, the keys of a bank in lane order, one a cycle and bank; the first only when all
    look-ups before it are done. Back-pressure fills the queues; the banks never stop. Reset
    empties it.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    request : In(stream of hashed_group)
    response : Out(stream of hot_response)
    bank : Out(bank_port).array(banks)
    enable : Out(1)
        Constant 1.
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
        m.d.comb += self.enable.eq(1)

        hold = Signal()
        update = Signal()
        recent = Signal(RESULT_LATENCY)
        m.d.comb += [
            hold.eq(Cat(bank.hold for bank in self.bank).any()),
            update.eq(group.op != HotOp.LOOKUP),
        ]
        present = [group.meta.count > lane for lane in lanes]

        contexts = SyncFIFOBuffered(
            width=len(Value.cast(Signal(group_context(config)))), depth=_GROUPS
        )
        m.submodules.contexts = contexts
        queues = []
        for lane in lanes:
            queue = SyncFIFOBuffered(
                width=config.key_bits + len(group.hash[lane].as_value()), depth=_QUEUE
            )
            m.submodules[f"queue_{lane}"] = queue
            queues.append(queue)

        # Updates leave from the request itself, when the queues are empty.
        updating = Signal()
        space = Signal()
        m.d.comb += [
            updating.eq(
                self.request.valid
                & update
                & contexts.w_rdy
                & ~Cat(queue.r_rdy | (queue.level != 0) for queue in queues).any()
            ),
            space.eq(Cat(queue.w_rdy for queue in queues).all() & contexts.w_rdy),
        ]
        issued = Signal(config.lanes)
        heads = []
        wanted = Signal(config.lanes)
        granted = Signal(config.lanes)
        for lane, queue in zip(lanes, queues, strict=True):
            z = Signal(config.key_bits, name=f"z_{lane}")
            hashes = Signal(len(queue.r_data) - config.key_bits, name=f"hash_{lane}")
            own = Cat(group.z[lane], group.hash[lane])
            m.d.comb += [
                Cat(z, hashes).eq(Mux(updating, own, queue.r_data)),
                wanted[lane].eq(
                    ~hold
                    & Mux(
                        updating,
                        present[lane] & ~issued[lane],
                        queue.r_rdy & ~recent.any(),
                    )
                ),
                queue.w_data.eq(own),
                queue.w_en.eq(self.request.valid & ~update & space & present[lane]),
                queue.r_en.eq(granted[lane] & ~updating),
            ]
            heads.append((z, hashes))

        finished = Signal()
        m.d.comb += [
            finished.eq(updating & ~hold & (granted == wanted)),
            self.request.ready.eq(Mux(update, finished, space)),
            self.stall.eq((wanted & ~granted).any() | hold),
            contexts.w_en.eq(self.request.valid & self.request.ready),
        ]
        with m.If(updating):
            m.d.sync += issued.eq(Mux(finished, 0, issued | granted))
        with m.If(~hold):
            m.d.sync += recent.eq(Cat(updating & granted.any(), recent[:-1]))
        self._arbitrate(m, heads, wanted, granted, updating)
        self._respond(m, contexts)
        return m

    def _arbitrate(
        self,
        m: Module,
        heads: list[tuple[Signal, Signal]],
        wanted: Signal,
        granted: Signal,
        updating: Signal,
    ) -> None:
        """Who gets which port. Port A serves the first lane, port B the last one that differs."""
        config = self.config
        lanes = range(config.lanes)
        # followers[i]: the lanes from i on that wait for the same key as lane i.
        followers = []
        leads = Signal(config.lanes)
        for i in lanes:
            same = Signal(config.lanes, name=f"same_{i}")
            for j in lanes:
                if j > i:
                    equal = wanted[j] & (heads[i][0] == heads[j][0]) & ~updating
                    m.d.comb += same[j].eq(equal)
            m.d.comb += same[i].eq(1)
            followers.append(same)
        for j in lanes:
            behind = Cat(followers[i][j] & wanted[i] for i in range(j)).any() if j else 0
            m.d.comb += leads[j].eq(wanted[j] & ~behind)

        places = [Signal(config.banks, name=f"bank_{lane}") for lane in lanes]
        for lane, (z, _) in enumerate(heads):
            bank = bank_of(config, z)
            m.d.comb += places[lane].eq(Cat(bank == n for n in range(config.banks)))
        learn = self.request.payload
        masks: Value = Const(0, config.lanes)
        for number, bank in enumerate(self.bank):
            asks = Signal(config.lanes, name=f"asks_{number}")
            first = Signal(config.lanes, name=f"first_{number}")
            second = Signal(config.lanes, name=f"second_{number}")
            # From the other end. Signals, since every use of an expression makes it anew.
            backwards = Signal(config.lanes, name=f"backwards_{number}")
            last = Signal(config.lanes, name=f"last_{number}")
            m.d.comb += [
                backwards.eq(asks[::-1]),
                last.eq(one_hot_first(backwards)),
                asks.eq(Cat(leads[lane] & places[lane][number] for lane in lanes)),
                first.eq(one_hot_first(asks)),
                second.eq(Mux(updating, 0, last[::-1] & ~first)),
                bank.a_valid.eq(asks.any()),
                bank.a_lanes.eq(self._choose(first, followers)),
                bank.b_lanes.eq(self._choose(second, followers)),
                bank.b_hash.eq(self._choose(second, [hashes for _, hashes in heads])),
                bank.a.op.eq(Mux(updating, Cat(learn.op, Const(0, 1)), 0)),
                bank.a.hash.eq(self._choose(first, [hashes for _, hashes in heads])),
            ]
            if config.sample_aware:
                m.d.comb += [
                    bank.a.hit.eq((first & learn.learn.hit).any()),
                    bank.a.x_zero.eq(learn.learn.x_zero),
                    bank.a.y.eq(learn.learn.y),
                    bank.a.random.eq(learn.learn.random),
                ]
            masks = masks | bank.a_lanes | bank.b_lanes
        m.d.comb += granted.eq(masks)

    @staticmethod
    def _choose(select: Value | list[Value], values: list[Signal]) -> Value:
        chosen: Value = Const(0, len(values[0]))
        for lane, value in enumerate(values):
            chosen = chosen | (value & select[lane].replicate(len(value)))
        return chosen

    def _respond(self, m: Module, contexts: SyncFIFOBuffered) -> None:
        """Collect the outcomes by lane, and pair them up with the groups again."""
        config = self.config
        context = Signal(group_context(config))
        m.d.comb += [
            contexts.w_data.eq(context),
            *keep_context(config, context, self.request.payload),
        ]
        front = Signal(group_context(config))
        m.d.comb += front.eq(contexts.r_data)
        results, ready = [], []
        for lane in range(config.lanes):
            # Room for the groups in `contexts` and for one that is being issued.
            outcome = SyncFIFOBuffered(width=config.ways, depth=_GROUPS + 2)
            m.submodules[f"outcome_{lane}"] = outcome
            ports = [(bank.a_result_lanes[lane], bank.a_result) for bank in self.bank]
            ports += [(bank.b_result_lanes[lane], bank.b_result) for bank in self.bank]
            mine = front.meta.count > lane
            m.d.comb += [
                outcome.w_en.eq(Cat(mask for mask, _ in ports).any()),
                outcome.w_data.eq(
                    self._choose([mask for mask, _ in ports], [result for _, result in ports])
                ),
                outcome.r_en.eq(mine & contexts.r_rdy & contexts.r_en),
            ]
            results.append(outcome.r_data)
            ready.append(outcome.r_rdy | ~mine)
        m.d.comb += [
            self.response.valid.eq(contexts.r_rdy & Cat(ready).all()),
            contexts.r_en.eq(self.response.valid & self.response.ready),
            *answer(config, self.response.payload, front, results),
        ]
