"""Four lanes and more: look-ups drift in per-lane queues and share the ports of the banks.

The banks are in here, each with its part of the crossbar, as instances of one module.
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.crossbar_bank import CrossbarBank, own_request, waiting_key
from hotline.rtl.hot_bank import RESULT_LATENCY
from hotline.rtl.hot_group import answer, group_context, hashed_group, keep_context
from hotline.rtl.hot_update import entry_layout
from hotline.rtl.interfaces import HotOp, hot_response
from hotline.rtl.shared_module import add_shared

__all__ = ["Crossbar"]

#: Groups that a lane may be behind another one.
_QUEUE = 16
#: Groups between the queues and the response; covers the queues and the latency of the banks.
_GROUPS = 32


class Crossbar(wiring.Component):
    """The banks, and the dispatch of groups to them, for `lanes` > 2.

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
    own : In(own_request)
        Sweeps and scans: all banks do the same.
    scan_bank : In
        Which bank's entries to show on `entries`.
    entries : Out(ArrayLayout(entry, ways))
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
                "scan_bank": In(max(1, config.bank_bits)),
                "entries": Out(data.ArrayLayout(entry_layout(config), config.ways)),
                "stall": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        lanes = range(config.lanes)
        group = self.request.payload
        hold = Signal()
        update = Signal()
        recent = Signal(RESULT_LATENCY)
        m.d.comb += update.eq(group.op != HotOp.LOOKUP)

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
            head = Signal(waiting_key(config), name=f"head_{lane}")
            own = Cat(group.z[lane], group.hash[lane])
            m.d.comb += [
                head.eq(Mux(updating, own, queue.r_data)),
                wanted[lane].eq(
                    ~hold
                    & Mux(
                        updating,
                        group.asked[lane] & ~issued[lane],
                        queue.r_rdy & ~recent.any(),
                    )
                ),
                queue.w_data.eq(own),
                queue.w_en.eq(self.request.valid & ~update & space & group.asked[lane]),
                queue.r_en.eq(granted[lane] & ~updating),
            ]
            heads.append(head)

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
        banks = self._arbitrate(m, platform, heads, wanted, granted, updating)
        m.d.comb += hold.eq(Cat(bank.hold for bank in banks).any())
        self._respond(m, contexts, banks)
        self._read_entries(m, banks)
        return m

    def _arbitrate(
        self,
        m: Module,
        platform: object,
        heads: list[Signal],
        wanted: Signal,
        granted: Signal,
        updating: Signal,
    ) -> list[CrossbarBank]:
        """Find out who wants the same key as whom, and let the banks choose."""
        config = self.config
        lanes = range(config.lanes)
        # followers[i]: the lanes from i on that wait for the same key as lane i.
        followers = Signal(data.ArrayLayout(config.lanes, config.lanes))
        leads = Signal(config.lanes)
        for i in lanes:
            for j in range(i + 1, config.lanes):
                equal = wanted[j] & (heads[i].z == heads[j].z) & ~updating
                m.d.comb += followers[i][j].eq(equal)
            m.d.comb += followers[i][i].eq(1)
        for j in lanes:
            behind = Cat(followers[i][j] & wanted[i] for i in range(j)).any() if j else 0
            m.d.comb += leads[j].eq(wanted[j] & ~behind)

        whole = Signal(data.ArrayLayout(waiting_key(config), config.lanes))
        m.d.comb += Cat(whole[lane] for lane in lanes).eq(Cat(*heads))
        group = self.request.payload
        masks: Value = Const(0, config.lanes)
        banks = []
        for number in range(config.banks):
            bank = CrossbarBank(config)
            add_shared(m, platform, f"bank_{number}", bank, "hot_table_bank")
            m.d.comb += [
                bank.number.eq(number),
                bank.heads.eq(whole),
                bank.leads.eq(leads),
                bank.followers.eq(followers),
                bank.updating.eq(updating),
                bank.op.eq(group.op),
                bank.learn.eq(group.learn),
                bank.own.eq(self.own),
            ]
            masks = masks | bank.granted
            banks.append(bank)
        m.d.comb += granted.eq(masks)
        return banks

    def _respond(self, m: Module, contexts: SyncFIFOBuffered, banks: list[CrossbarBank]) -> None:
        """Collect the outcomes by lane, and pair them up with the groups again."""
        config = self.config
        context = Signal(group_context(config))
        m.d.comb += [
            contexts.w_data.eq(context),
            *keep_context(config, context, self.request.payload),
        ]
        front = Signal(group_context(config))
        m.d.comb += front.eq(contexts.r_data)
        came: Value = Const(0, config.lanes)
        outcomes: Value = Const(0, config.lanes * config.ways)
        for bank in banks:
            came = came | bank.result_lanes
            outcomes = outcomes | bank.result.as_value()
        arrived, arrivals = Signal(config.lanes), Signal(config.lanes * config.ways)
        m.d.comb += [arrived.eq(came), arrivals.eq(outcomes)]
        results, ready = [], []
        for lane in range(config.lanes):
            # Room for the groups in `contexts` and for one that is being issued.
            outcome = SyncFIFOBuffered(width=config.ways, depth=_GROUPS + 2)
            m.submodules[f"outcome_{lane}"] = outcome
            mine = front.asked[lane]
            m.d.comb += [
                outcome.w_en.eq(arrived[lane]),
                outcome.w_data.eq(arrivals.word_select(lane, config.ways)),
                outcome.r_en.eq(mine & contexts.r_rdy & contexts.r_en),
            ]
            results.append(outcome.r_data)
            ready.append(outcome.r_rdy | ~mine)
        m.d.comb += [
            self.response.valid.eq(contexts.r_rdy & Cat(ready).all()),
            contexts.r_en.eq(self.response.valid & self.response.ready),
            *answer(config, self.response.payload, front, results),
        ]

    def _read_entries(self, m: Module, banks: list[CrossbarBank]) -> None:
        """The entries that the scan asked for, out of the bank that it asked."""
        entries: Value = Const(0, len(self.entries.as_value()))
        for number, bank in enumerate(banks):
            here = self.scan_bank == number
            entries = entries | (bank.entries.as_value() & here.replicate(len(entries)))
        m.d.comb += self.entries.eq(entries)
