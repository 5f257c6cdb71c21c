"""Learning: groups of samples, looked up as a whole and then applied key by key."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.interfaces import HotOp, hot_request, hot_response, key_group
from hotline.rtl.sample_packer import SamplePacker
from hotline.rtl.sample_replay import SampleReplay, group_entries

__all__ = ["LearnMode", "Learner"]


class LearnMode(enum.Enum, shape=1):
    """What becomes of the keys."""

    LEARN = 0
    LOAD = 1


class Learner(wiring.Component):
    """Turns a key stream into requests to the hot table, as spec section 5 and `tracker.md` say.

    `learn_group` samples are collected; `sample_aware` looks their keys up on the way (phase 1).
    When the group is complete and free of errors, it is applied as UPDATE requests with one sample
    a request (phase 2), each sample when its look-ups are answered; then the next group begins.
    That these requests see each other is the hot table's order: it answers each as if all before
    it were done. UPDATE requests that cannot change anything are not sent: `sample_aware`, all
    keys hit in phase 1, and x != 0. With one-hot samples and aligned groups each phase takes
    ceil(keys / lanes) cycles a sample (else packing takes another half); between them passes what
    of the hot table's latency phase 1 has not filled. LOAD passes keys through. The hot table's
    `ready` stalls everything, `hot_response` never stalls.

    An error group drops the samples that are not applied. `done` rises when everything that was
    requested is answered, and then holds with the results until the next `start`. R and n stay
    until `clear` or reset.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    start : In(1)
        Begins a command; `mode` is stable from here on. Only while `idle`.
    mode : In(LearnMode)
    clear : In(1)
        The table has been cleared: so are R and n. Only while `idle`.
    abort : In(1)
        Level. A phase 2 that has begun is finished; all else is dropped, without `done`.
    groups : In(stream of key_group)
    hot_request : Out(stream of hot_request)
    hot_response : In(stream of hot_response)
    idle : Out(1)
        No command, and no request unanswered.
    done, error : Out(1)
        The command is over; it was ended by an error group.
    hits, misses : Out(32)
        Keys, as the update used them.
    taken : Out(32)
        Keys that LOAD inserted.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.depth = group_entries(config)
        super().__init__(
            {
                "start": In(1),
                "mode": In(LearnMode),
                "clear": In(1),
                "abort": In(1),
                "groups": In(stream.Signature(key_group(config))),
                "hot_request": Out(stream.Signature(hot_request(config))),
                "hot_response": In(stream.Signature(hot_response(config))),
                "idle": Out(1),
                "done": Out(1),
                "error": Out(1),
                "hits": Out(32),
                "misses": Out(32),
                "taken": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        aware = config.sample_aware
        learn = self.mode == LearnMode.LEARN
        m.submodules.packer = packer = SamplePacker(config)
        wiring.connect(m, wiring.flipped(self.groups), packer.input)
        group = packer.output.payload
        meta = group.meta

        free, send = Signal(), Signal()  # of the request register
        full = Signal()
        void = Signal()  # what it holds changes nothing
        settled = Signal()  # every request is answered and counted
        answer = self._count(m, learn, full, settled)

        # -- the buffer of the group --------------------------------------------------------
        filled = Signal(range(self.depth + 1))
        place = Signal(range(self.depth + 1))
        store, fetch, fetched = Signal(), Signal(), Signal()
        entry = self._entries(m, filled, place, store, fetch)

        # -- collect, apply -----------------------------------------------------------------
        samples = Signal(range(config.learn_group + 1))
        final, failed = Signal(), Signal()
        replayed, restart = Signal(), Signal()
        take, applying = Signal(), Signal()
        request = self.hot_request
        lookup = (~learn | aware) & ((meta.count != 0) | (learn & meta.end_a))
        m.d.comb += [
            request.valid.eq(full & ~void),
            free.eq(~full | void | request.ready),
            packer.output.ready.eq(take),
            store.eq(take & packer.output.valid & learn & (meta.count != 0)),
        ]
        with m.If(free):
            m.d.sync += [full.eq(send), void.eq(0)]
        with m.If(store):
            m.d.sync += filled.eq(filled + 1)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(settled), packer.clear.eq(1)]
                m.d.comb += restart.eq(1)
                with m.If(self.start):
                    m.d.sync += [self.done.eq(0), self.error.eq(0), failed.eq(0), final.eq(0)]
                    m.next = "COLLECT"
            with m.State("COLLECT"):
                with m.If(self.abort):
                    m.next = "DROP"
                with m.Else():
                    m.d.comb += take.eq(free)
                with m.If(take & packer.output.valid):
                    m.d.comb += send.eq(lookup & ~meta.error)
                    m.d.sync += [
                        request.payload.op.eq(Mux(learn, HotOp.LOOKUP, HotOp.LOAD)),
                        request.payload.group.eq(group),
                        final.eq(meta.last),
                        failed.eq(meta.error),
                    ]
                    with m.If(meta.end_a & learn):
                        m.d.sync += samples.eq(samples + 1)
                    with m.If(
                        meta.last | (learn & meta.end_a & (samples == config.learn_group - 1))
                    ):
                        m.next = "SETTLE"
                        with m.If(learn & ~meta.error):
                            m.next = "APPLY"
            with m.State("APPLY"):
                m.d.comb += applying.eq(1)
                with m.If(replayed & ~fetched):
                    m.d.comb += restart.eq(1)
                    m.next = "COLLECT"
                    with m.If(final):
                        m.next = "SETTLE"
                    with m.If(self.abort):
                        m.next = "DROP"
            with m.State("SETTLE"):
                with m.If(self.abort):
                    m.next = "DROP"
                with m.Elif(settled):
                    m.next = "FINISH"
            with m.State("FINISH"):
                with m.If(~self.abort):
                    m.d.sync += [self.done.eq(1), self.error.eq(failed)]
                m.next = "IDLE"
            with m.State("DROP"):
                m.d.comb += packer.clear.eq(1)
                with m.If(settled):
                    m.next = "IDLE"

        with m.If(fetch):
            m.d.sync += place.eq(place + 1)
        with m.If(restart):
            m.d.sync += [filled.eq(0), place.eq(0), samples.eq(0)]
        if aware:
            m.submodules.replay = replay = SampleReplay(config)
            m.d.comb += [
                replay.clear.eq(self.clear),
                replay.restart.eq(restart),
                replay.response.eq(self.hot_response.payload),
                replay.lookup.eq(
                    self.hot_response.valid & (self.hot_response.payload.op == HotOp.LOOKUP)
                ),
                replay.summed.eq(answer["counts"]),
                replay.ends.eq(answer["ends"]),
                replay.misses.eq(answer["misses"]),
                replay.samples.eq(samples),
                replay.applying.eq(applying),
                replay.free.eq(free),
                replay.place.eq(place),
                fetch.eq(replay.fetch),
                replayed.eq(replay.replayed),
            ]
        else:
            m.d.comb += [
                fetch.eq(applying & free & (place != filled)),
                replayed.eq(place == filled),
            ]

        with m.If(applying):
            m.d.comb += send.eq(fetched & free)
            with m.If(free):
                m.d.sync += [
                    fetched.eq(fetch),
                    request.payload.op.eq(HotOp.UPDATE),
                    request.payload.group.eq(0),
                    request.payload.group.key.eq(entry.key),
                    request.payload.group.meta.count.eq(entry.count),
                    request.payload.group.meta.split.eq(entry.count),
                ]
                if aware:
                    m.d.sync += [request.payload.learn.eq(replay.context), void.eq(replay.void)]
        return m

    # ---- answers --------------------------------------------------------------------------

    def _count(self, m: Module, learn: Value, full: Signal, settled: Signal) -> dict[str, Signal]:
        """Counts answers in a pipeline: hits by lane, then their number, then the totals."""
        config = self.config
        response = self.hot_response
        update = response.payload.op == HotOp.UPDATE
        pending = Signal(8)  # as in the hot table
        valid, ends, counts = Signal(), Signal(), Signal()
        hit = Signal(config.lanes)
        number = Signal(range(config.lanes + 1))
        summed = {
            "valid": Signal(name="summed_valid"),
            "counts": Signal(name="summed_counts"),
            "ends": Signal(name="summed_ends"),
            "hits": Signal(range(config.lanes + 1), name="summed_hits"),
            "misses": Signal(range(config.lanes + 1), name="summed_misses"),
        }
        total = sum((hit[i] for i in range(1, config.lanes)), hit[0])
        transfer = self.hot_request.valid & self.hot_request.ready
        none = Signal(init=1)  # pending == 0, from a register
        m.d.comb += [response.ready.eq(1), settled.eq(none & ~full)]
        m.d.sync += [
            pending.eq(pending + transfer - summed["valid"]),
            none.eq(~transfer & ((pending == 0) | ((pending == 1) & summed["valid"]))),
            valid.eq(response.valid),
            hit.eq(response.payload.hit),
            number.eq(response.payload.meta.count),
            ends.eq(response.payload.meta.end_a & ~update),
            counts.eq(~update if config.sample_aware else 1),
            summed["valid"].eq(valid),
            summed["ends"].eq(ends & valid),
            summed["hits"].eq(total),
            summed["misses"].eq(number - total),
            summed["counts"].eq(counts & valid),
        ]
        hits, misses = self.hits, self.misses
        with m.If(summed["counts"]):
            m.d.sync += [
                hits.eq(hits + summed["hits"]),
                misses.eq(misses + summed["misses"]),
            ]
        with m.If(self.start):
            m.d.sync += [hits.eq(0), misses.eq(0)]
        m.d.comb += self.taken.eq(hits)
        return summed

    # ---- buffer ---------------------------------------------------------------------------

    def _entries(
        self, m: Module, filled: Signal, place: Signal, store: Signal, fetch: Signal
    ) -> data.View:
        """The keys of the group."""
        config = self.config
        shape = data.StructLayout(
            {
                "key": data.ArrayLayout(config.key_bits, config.lanes),
                "count": range(config.lanes + 1),
            }
        )
        depth = max(2, self.depth)
        m.submodules.keys = keys = Memory(
            shape=shape, depth=depth, init=[], attrs={"no_rw_check": 1}
        )
        write, read = keys.write_port(), keys.read_port()
        address = range(depth)
        packed = m.submodules.packer.output.payload
        m.d.comb += [
            write.addr.eq(filled[: len(Signal(address))]),
            write.en.eq(store),
            write.data.key.eq(packed.key),
            write.data.count.eq(packed.meta.count),
            read.addr.eq(place[: len(Signal(address))]),
            read.en.eq(fetch),
        ]
        return read.data
