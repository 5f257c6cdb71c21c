"""One or two lanes: each owns a port of every bank, so that look-ups never wait."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.crossbar_bank import own_request
from hotline.rtl.feistel import hash_count
from hotline.rtl.hot_bank import RESULT_LATENCY, bank_request
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
from hotline.rtl.stream_pair import StreamPair

__all__ = ["LanePorts"]

#: Groups between dispatch and response; covers the latency of the banks twice.
_GROUPS = 16
#: Groups that may be dispatched after the level of the queue was looked at.
_LATE = 4


class LanePorts(wiring.Component):
    """Dispatch of groups to the banks for `lanes` <= 2.

    A look-up group a cycle. An update group takes a cycle, one more if both keys are of the
    same bank, and what the interlock of the banks adds. A group is dispatched only if there is
    room for its answer, so that back-pressure never reaches the banks. Reset empties it.

    Parameters
    ----------
    config : Config
        Validated configuration; lanes 1 or 2.

    Members
    -------
    request : In(stream of hashed_group)
    response : Out(stream of hot_response)
    own : In(own_request)
        Sweeps and scans: what port A of all banks does, a cycle later, while `serving` is low.
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
                "own": In(own_request(config)),
                "bank": Out(bank_port(config)).array(config.banks),
                "enable": Out(1),
                "stall": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        hold, ready, update = Signal(), Signal(), Signal()
        contexts = SyncFIFOBuffered(width=group_context(config).size, depth=_GROUPS)
        m.submodules.contexts = contexts
        m.d.comb += [
            self.enable.eq(1),
            hold.eq(Cat(bank.hold for bank in self.bank).any()),
        ]

        front = self._placed(m)
        group = front.payload.group
        # Look-ups wait until the last update before them has been written.
        settling = Signal(RESULT_LATENCY)
        room = Signal()
        going = Signal()
        #: Both keys go to port A of the same bank: lane 1 in a second cycle.
        second = Signal()
        half = Signal()
        m.d.comb += [
            update.eq(group.op != HotOp.LOOKUP),
            going.eq(front.valid & room & ~hold & (update | ~settling[0])),
            half.eq(front.payload.clash & ~second),
            ready.eq(going & ~half),
            front.ready.eq(ready),
            self.stall.eq(front.valid & room & group.asked.any() & ~ready),
        ]
        m.d.sync += room.eq(contexts.level < _GROUPS - _LATE)
        with m.If(going):
            m.d.sync += second.eq(half)
        with m.If(~hold):
            wrote = going & update & group.asked.any()
            m.d.sync += settling.eq(Mux(wrote, ~0, settling >> 1))

        b_hash = None
        if config.lanes > 1:
            b_hash = Signal.like(group.hash[1], reset_less=True)
            m.d.sync += b_hash.eq(group.hash[1])
        for number, bank in enumerate(self.bank):
            place = [front.payload.place[lane][number] for lane in range(config.lanes)]
            self._drive_a(m, number, group, place, going, second, half, hold)
            if b_hash is not None:
                looks = going & ~update & place[1]
                b_lanes = Signal(config.lanes, name=f"b_lanes_{number}")
                m.d.sync += b_lanes.eq(Cat(Const(0, 1), looks))
                m.d.comb += [bank.b_hash.eq(b_hash), bank.b_lanes.eq(b_lanes)]

        # By way of a register, since `ready` comes late in the cycle.
        context = Signal(group_context(config), reset_less=True)
        dispatched = Signal()
        m.d.sync += [dispatched.eq(ready), *keep_context(config, context, group)]
        m.d.comb += [contexts.w_data.eq(context), contexts.w_en.eq(dispatched)]
        # A mark follows the last key of a group through the port registers and the banks.
        marks = Signal(RESULT_LATENCY + 1)
        with m.If(~hold):
            m.d.sync += marks[:2].eq(Cat(ready, marks[0]))
        m.d.sync += marks[2:].eq(Cat(marks[1] & ~hold, marks[2:]))
        self._respond(m, contexts, marks[-1])
        return m

    def _placed(self, m: Module) -> stream.Interface:
        """The requests out of a register, with what can be known of their banks beforehand."""
        config = self.config
        shape = data.StructLayout(
            {
                "group": hashed_group(config),
                "place": data.ArrayLayout(config.banks, config.lanes),
                "clash": 1,
            }
        )
        m.submodules.placed = placed = StreamPair(shape)
        group, target = self.request.payload, placed.input.payload
        banks = [bank_of(config, group.z[lane]) for lane in range(config.lanes)]
        m.d.comb += [
            target.group.eq(group),
            placed.input.valid.eq(self.request.valid),
            self.request.ready.eq(placed.input.ready),
        ]
        for lane, bank in enumerate(banks):
            m.d.comb += target.place[lane].eq(
                Cat(group.asked[lane] & (bank == n) for n in range(config.banks))
            )
        if config.lanes > 1:
            both = (group.op != HotOp.LOOKUP) & group.asked.all()
            m.d.comb += target.clash.eq(both & (banks[0] == banks[1]))
        return placed.output

    def _drive_a(
        self,
        m: Module,
        number: int,
        group: data.View,
        place: list[Value],
        going: Value,
        second: Value,
        half: Value,
        hold: Value,
    ) -> None:
        """Port A of a bank, from a register that waits with all banks."""
        config, bank, own = self.config, self.bank[number], self.own
        request = Signal(bank_request(config), name=f"a_{number}", reset_less=True)
        lanes = Signal(config.lanes, name=f"a_lanes_{number}")
        valid = Signal(name=f"a_valid_{number}")
        chosen: Value = request_of(config, group, 0)
        here = place[0]
        wanted = [here]
        if config.lanes > 1:
            update = group.op != HotOp.LOOKUP
            here = place[0] & ~second
            chosen = Mux(update & ~here, request_of(config, group, 1), chosen)
            wanted = [here, update & place[1] & ~half]
        with m.If(~hold):
            m.d.sync += [
                request.eq(chosen),
                lanes.eq(Mux(going, Cat(wanted), 0)),
                valid.eq(going & Cat(wanted).any()),
            ]
            with m.If(~own.serving):
                m.d.sync += [request.op.eq(own.op), lanes.eq(0), valid.eq(own.valid)]
                for n in range(hash_count(config)):
                    m.d.sync += request.hash[n].eq(own.index[: config.index_bits])
        m.d.comb += [
            bank.a.eq(request),
            bank.a_valid.eq(valid & ~hold),
            bank.a_lanes.eq(lanes),
        ]

    def _respond(self, m: Module, contexts: SyncFIFOBuffered, complete: Value) -> None:
        """Collect the outcomes of a group, and pair them up with its context again."""
        config = self.config
        outcomes = SyncFIFOBuffered(width=config.lanes * config.ways, depth=_GROUPS)
        m.submodules.outcomes = outcomes
        # A key that was issued before the last one of its group has its result kept.
        results = []
        for lane in range(config.lanes):
            came = Signal(name=f"came_{lane}")
            now = Signal(config.ways, name=f"now_{lane}", reset_less=True)
            m.d.sync += self._collect(lane, came, now)
            if config.lanes > 1:
                kept = Signal(config.ways, name=f"kept_{lane}", reset_less=True)
                with m.If(came):
                    m.d.sync += kept.eq(now)
                results.append(Mux(came, now, kept))
            else:
                results.append(now)
        collected = Signal()
        m.d.sync += collected.eq(complete)
        m.d.comb += [outcomes.w_data.eq(Cat(results)), outcomes.w_en.eq(collected)]

        # The context of a group is in its queue long before the outcome is.
        front = Signal(group_context(config))
        taken = self.response.valid & self.response.ready
        m.d.comb += [
            front.eq(contexts.r_data),
            self.response.valid.eq(outcomes.r_rdy & contexts.r_rdy),
            contexts.r_en.eq(taken),
            outcomes.r_en.eq(taken),
            *answer(
                config,
                self.response.payload,
                front,
                [outcomes.r_data.word_select(lane, config.ways) for lane in range(config.lanes)],
            ),
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
