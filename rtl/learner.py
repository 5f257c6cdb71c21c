"""Learning: groups of samples, looked up as a whole and then applied key by key."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.interfaces import HotOp, hot_request, hot_response, key_group
from hotline.rtl.register_slice import register_slice
from hotline.rtl.sample_packer import SamplePacker
from hotline.rtl.sample_random import SampleRandom
from hotline.rtl.sample_reference import SampleReference, sample_score

__all__ = ["LearnMode", "Learner"]


class LearnMode(enum.Enum, shape=1):
    """What becomes of the keys."""

    LEARN = 0
    LOAD = 1


class Learner(wiring.Component):
    """Turns a key stream into requests to the hot table, as spec section 5 and `tracker.md` say.

    `learn_group` samples are collected; `sample_aware` looks their keys up on the way (phase 1).
    When the group is complete and free of errors, and all answers are in, it is applied as UPDATE
    requests with one sample a request (phase 2), and only when all those are answered does the
    next group begin. UPDATE requests that cannot change anything are not sent: `sample_aware`, all
    keys hit in phase 1, and x != 0. With one-hot samples and aligned groups each phase takes
    ceil(keys / lanes) cycles a sample (else packing takes another half), plus the latency of the
    hot table once. LOAD passes keys through. The hot table's `ready` stalls everything,
    `hot_response` never stalls.

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
        self.depth = config.learn_group * -(-config.max_sample_keys // config.lanes)
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
            with m.State("SETTLE"):
                with m.If(self.abort):
                    m.next = "DROP"
                with m.Elif(settled):
                    m.next = "FINISH"
                    with m.If(learn & ~failed):
                        m.next = "APPLY"
            with m.State("APPLY"):
                m.d.comb += applying.eq(1)
                with m.If(replayed & ~fetched & settled):
                    m.d.comb += restart.eq(1)
                    m.next = "COLLECT"
                    with m.If(final):
                        m.next = "FINISH"
                    with m.If(self.abort):
                        m.next = "DROP"
            with m.State("FINISH"):
                with m.If(~self.abort):
                    m.d.sync += [self.done.eq(1), self.error.eq(failed)]
                m.next = "IDLE"
            with m.State("DROP"):
                m.d.comb += packer.clear.eq(1)
                with m.If(settled):
                    m.next = "IDLE"

        context = Signal(request.payload.learn.shape())
        with m.If(restart):
            m.d.sync += [filled.eq(0), place.eq(0), samples.eq(0)]
        if aware:
            self._replay_samples(
                m, answer, samples, place, fetch, replayed, restart, applying, free, context
            )
        else:
            m.d.comb += [
                fetch.eq(applying & free & (place != filled)),
                replayed.eq(place == filled),
            ]
            with m.If(fetch):
                m.d.sync += place.eq(place + 1)

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
                    request.payload.learn.eq(context),
                ]
                if aware:
                    m.d.sync += [
                        request.payload.learn.hit.eq(self._mask),
                        void.eq(self._all_hit & ~context.x_zero),
                    ]
        return m

    # ---- answers --------------------------------------------------------------------------

    def _count(self, m: Module, learn: Value, full: Signal, settled: Signal) -> dict[str, Signal]:
        """Counts answers in a pipeline: hits by lane, then their number, then the totals."""
        config = self.config
        response = self.hot_response
        update = response.payload.op == HotOp.UPDATE
        pending = Signal(range(self.depth + config.learn_group + 8))
        valid, ends, counts = Signal(), Signal(), Signal()
        hit = Signal(config.lanes)
        number = Signal(range(config.lanes + 1))
        summed = {
            "valid": Signal(name="summed_valid"),
            "ends": Signal(name="summed_ends"),
            "hits": Signal(range(config.lanes + 1), name="summed_hits"),
            "misses": Signal(range(config.lanes + 1), name="summed_misses"),
        }
        sum_counts = Signal()
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
            sum_counts.eq(counts & valid),
        ]
        hits, misses = self.hits, self.misses
        with m.If(sum_counts):
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
        """The keys of the group, and the phase-1 hits of the same entries."""
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
        if config.sample_aware:
            m.submodules.hits = hits = Memory(
                shape=data.StructLayout({"hit": config.lanes, "all": 1}),
                depth=depth,
                init=[],
                attrs={"no_rw_check": 1},
            )
            self._hit_write, hit_read = hits.write_port(), hits.read_port()
            m.d.comb += [hit_read.addr.eq(read.addr), hit_read.en.eq(fetch)]
            self._mask, self._all_hit = hit_read.data.hit, hit_read.data.all
        return read.data

    # ---- samples --------------------------------------------------------------------------

    def _replay_samples(
        self,
        m: Module,
        answer: dict[str, Signal],
        samples: Signal,
        place: Signal,
        fetch: Signal,
        replayed: Signal,
        restart: Signal,
        applying: Signal,
        free: Signal,
        context: Signal,
    ) -> None:
        """Notes the misses and the end of each sample in phase 1; walks the samples in phase 2."""
        config = self.config
        response = self.hot_response
        lookup = response.valid & (response.payload.op == HotOp.LOOKUP)

        # Phase 1: hits by entry, as they come; the sample's record when its sum is there.
        answered = Signal(range(self.depth + 1))
        m.d.comb += [
            self._hit_write.addr.eq(answered[: len(self._hit_write.addr)]),
            self._hit_write.data.hit.eq(response.payload.hit),
            self._hit_write.data.all.eq(
                Cat(
                    response.payload.hit[i] | (response.payload.meta.count <= i)
                    for i in range(config.lanes)
                ).all()
            ),
            self._hit_write.en.eq(lookup & (response.payload.meta.count != 0)),
        ]
        with m.If(self._hit_write.en):
            m.d.sync += answered.eq(answered + 1)
        ends = [Signal.like(answered, name=f"end_{i}") for i in range(2)]
        misses = Signal(range(config.max_sample_keys + 1))
        so_far = Signal.like(misses)
        known = Signal.like(samples)
        record = data.StructLayout({"misses": misses.shape(), "end": answered.shape()})
        m.submodules.samples = memory = Memory(
            shape=record, depth=max(2, config.learn_group), init=[], attrs={"no_rw_check": 1}
        )
        write, read = memory.write_port(), memory.read_port()
        m.d.sync += [ends[0].eq(answered + self._hit_write.en), ends[1].eq(ends[0])]
        m.d.comb += [
            so_far.eq(misses + answer["misses"]),
            write.en.eq(answer["ends"]),
            write.addr.eq(known[: len(write.addr)]),
            write.data.misses.eq(so_far),
            write.data.end.eq(ends[1]),
        ]
        with m.If(answer["valid"] & ~applying):
            m.d.sync += misses.eq(Mux(answer["ends"], 0, so_far))
            with m.If(answer["ends"]):
                m.d.sync += known.eq(known + 1)

        # Phase 2: records -> scores and random words, the sample's end beside them.
        m.submodules.random = random = SampleRandom(config)
        m.submodules.reference = reference = SampleReference(config)
        m.d.comb += [random.clear.eq(self.clear), reference.clear.eq(self.clear)]
        asked, left = Signal.like(samples), Signal.like(samples)
        read_valid = Signal()
        step = reference.misses.ready
        m.d.comb += [
            read.addr.eq(asked[: len(read.addr)]),
            read.en.eq(step),
            reference.misses.valid.eq(read_valid),
            reference.misses.payload.eq(read.data.misses),
        ]
        end_1, end_2, end_3 = (Signal.like(answered, name=f"stop_{i}") for i in range(3))
        with m.If(step):
            m.d.sync += [
                read_valid.eq(applying & (asked != samples)),
                end_1.eq(read.data.end),
                end_2.eq(end_1),
                end_3.eq(end_2),
            ]
            with m.If(applying & (asked != samples)):
                m.d.sync += asked.eq(asked + 1)

        # Here end the decisions of the request register.
        replay = data.StructLayout(
            {
                "score": sample_score(config),
                "random": 16,
                "length": answered.shape(),
            }
        )
        m.submodules.scored = scored = register_slice(config, replay)
        into, before = scored.input, Signal.like(answered)  # end of the sample before
        both = Signal()
        m.d.comb += [
            both.eq(reference.scores.valid & random.words.valid),
            into.valid.eq(both),
            into.payload.score.eq(reference.scores.payload),
            into.payload.random.eq(random.words.payload),
            into.payload.length.eq(end_3 - before),
            reference.scores.ready.eq(both & into.ready),
            random.words.ready.eq(both & into.ready),
        ]
        with m.If(both & into.ready):
            m.d.sync += before.eq(end_3)

        # The sample at hand, with its entries to go: none, or one.
        sample, valid = Signal(replay), Signal()
        none, one, over = Signal(), Signal(), Signal()
        ready = applying & free & valid
        m.d.comb += [
            fetch.eq(ready & ~none),
            over.eq(ready & (none | one)),
            scored.output.ready.eq(~valid | over),
            replayed.eq(left == samples),
        ]
        with m.If(scored.output.ready):
            length = scored.output.payload.length
            m.d.sync += [
                valid.eq(scored.output.valid),
                sample.eq(scored.output.payload),
                none.eq(length == 0),
                one.eq(length == 1),
            ]
        with m.Elif(fetch):
            m.d.sync += [sample.length.eq(sample.length - 1), one.eq(sample.length == 2)]
        with m.If(fetch):
            m.d.sync += [
                place.eq(place + 1),
                context.x_zero.eq(sample.score.x_zero),
                context.y.eq(sample.score.y),
                context.random.eq(sample.random),
            ]
        with m.If(over):
            m.d.sync += left.eq(left + 1)
        with m.If(restart):
            m.d.sync += [
                answered.eq(0),
                known.eq(0),
                misses.eq(0),
                asked.eq(0),
                left.eq(0),
                before.eq(0),
            ]
