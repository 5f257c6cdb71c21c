"""The samples of a group that is learned: what phase 1 said of them, and their turn in phase 2."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.interfaces import hot_response, learn_context
from hotline.rtl.register_slice import register_slice
from hotline.rtl.sample_random import SampleRandom
from hotline.rtl.sample_reference import SampleReference, sample_score

__all__ = ["SampleReplay", "group_entries"]


def group_entries(config: Config) -> int:
    """Entries, of up to `lanes` keys of one sample, that a group takes at most."""
    return config.learn_group * -(-config.max_sample_keys // config.lanes)


class SampleReplay(wiring.Component):
    """Notes the hits of each entry and the misses of each sample, then walks the samples.

    Phase 1 (`tracker.md`): the answers to the look-ups come in the order of the entries. Phase 2:
    an entry is fetched in every cycle with `applying` and `free`, once its sample is answered, and
    its score and random word are there; `context` and `void` belong to the entry fetched last.

    Parameters
    ----------
    config : Config
        Validated configuration with `sample_aware`.

    Members
    -------
    clear : In(1)
        R and n begin anew. Only between groups.
    restart : In(1)
        The next group begins.
    lookup : In(1), response : In(hot_response)
        The answer to a look-up.
    summed, ends : In(1), misses : In
        The misses of a look-up have been counted, two cycles after its answer; it ends a sample.
    samples : In
        Samples in the group; stable with `applying`.
    applying : In(1)
        Phase 2: the group is complete, and will be applied.
    free : In(1)
        An entry may be fetched.
    place : In
        Entries fetched so far.
    fetch : Out(1)
        The entry at `place` is fetched in this cycle.
    replayed : Out(1)
        All samples have been walked.
    context : Out(learn_context)
    void : Out(1)
        The update of this entry would change nothing.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        entries = group_entries(config)
        super().__init__(
            {
                "clear": In(1),
                "restart": In(1),
                "lookup": In(1),
                "response": In(hot_response(config)),
                "summed": In(1),
                "ends": In(1),
                "misses": In(range(config.lanes + 1)),
                "samples": In(range(config.learn_group + 1)),
                "applying": In(1),
                "free": In(1),
                "place": In(range(entries + 1)),
                "fetch": Out(1),
                "replayed": Out(1),
                "context": Out(learn_context(config)),
                "void": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        end = self._note_hits(m)
        asked = Signal.like(self.samples)
        record, step, known = self._note_samples(m, end, asked)
        before = Signal.like(end)  # end of the sample before
        scored = self._score(m, record, step, asked, known, before)
        left = Signal.like(self.samples)
        self._walk(m, scored, left)
        with m.If(self.restart):
            m.d.sync += [asked.eq(0), before.eq(0), left.eq(0)]
        return m

    def _note_hits(self, m: Module) -> Signal:
        """Phase 1: the hits by entry, as they come. Phase 2: those of the entry fetched last.

        Returns how many entries there were when what is counted now was answered.
        """
        lanes, response = self.config.lanes, self.response
        answered = Signal.like(self.place)
        m.submodules.hits = hits = Memory(
            shape=data.StructLayout({"hit": lanes, "all": 1}),
            depth=max(2, group_entries(self.config)),
            init=[],
            attrs={"no_rw_check": 1},
        )
        write, read = hits.write_port(), hits.read_port()
        m.d.comb += [
            write.addr.eq(answered[: len(write.addr)]),
            write.data.hit.eq(response.hit),
            write.data.all.eq(
                Cat(response.hit[i] | (response.meta.count <= i) for i in range(lanes)).all()
            ),
            write.en.eq(self.lookup & (response.meta.count != 0)),
            read.addr.eq(self.place[: len(read.addr)]),
            read.en.eq(self.fetch),
            self.context.hit.eq(read.data.hit),
            self.void.eq(read.data.all & ~self.context.x_zero),
        ]
        with m.If(write.en):
            m.d.sync += answered.eq(answered + 1)
        with m.If(self.restart):
            m.d.sync += answered.eq(0)
        ends = [Signal.like(answered, name=f"end_{i}") for i in range(2)]
        m.d.sync += [ends[0].eq(answered + write.en), ends[1].eq(ends[0])]
        return ends[1]

    def _note_samples(
        self, m: Module, end: Signal, asked: Signal
    ) -> tuple[data.View, Signal, Signal]:
        """Phase 1: misses and end of each sample, when its sum is there. Phase 2: one after the
        other; returns the record, when the next one may come, and how many are known.
        """
        config = self.config
        misses = Signal(range(config.max_sample_keys + 1))
        so_far, known = Signal.like(misses), Signal.like(self.samples)
        m.submodules.samples = memory = Memory(
            shape=data.StructLayout({"misses": misses.shape(), "end": end.shape()}),
            depth=max(2, config.learn_group),
            init=[],
            attrs={"no_rw_check": 1},
        )
        write, read = memory.write_port(), memory.read_port()
        step = Signal()
        m.d.comb += [
            so_far.eq(misses + self.misses),
            write.en.eq(self.ends),
            write.addr.eq(known[: len(write.addr)]),
            write.data.misses.eq(so_far),
            write.data.end.eq(end),
            read.addr.eq(asked[: len(read.addr)]),
            read.en.eq(step),
        ]
        with m.If(self.summed):
            m.d.sync += misses.eq(Mux(self.ends, 0, so_far))
            with m.If(self.ends):
                m.d.sync += known.eq(known + 1)
        with m.If(self.restart):
            m.d.sync += [misses.eq(0), known.eq(0)]
        return read.data, step, known

    def _score(
        self,
        m: Module,
        record: data.View,
        step: Signal,
        asked: Signal,
        known: Signal,
        before: Signal,
    ) -> wiring.PureInterface:
        """Records -> scores and random words, the length of the sample beside them."""
        config = self.config
        m.submodules.random = random = SampleRandom(config)
        m.submodules.reference = reference = SampleReference(config)
        read_valid, more = Signal(), Signal()
        end_1, end_2, end_3 = (Signal.like(before, name=f"stop_{i}") for i in range(3))
        m.d.comb += [
            random.clear.eq(self.clear),
            reference.clear.eq(self.clear),
            step.eq(reference.misses.ready),
            more.eq(self.applying & (asked != known)),
            reference.misses.valid.eq(read_valid),
            reference.misses.payload.eq(record.misses),
        ]
        with m.If(step):
            m.d.sync += [
                read_valid.eq(more),
                asked.eq(asked + more),
                end_1.eq(record.end),
                end_2.eq(end_1),
                end_3.eq(end_2),
            ]
        # Here end the decisions of the request register.
        replay = data.StructLayout(
            {"score": sample_score(config), "random": 16, "length": before.shape()}
        )
        m.submodules.scored = scored = register_slice(config, replay)
        into, both = scored.input, Signal()
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
        return scored.output

    def _walk(self, m: Module, scored: wiring.PureInterface, left: Signal) -> None:
        """The sample at hand, with its entries to go: none, or one."""
        sample, valid = Signal(scored.payload.shape()), Signal()
        fetched = Signal(data.StructLayout({"score": sample_score(self.config), "random": 16}))
        none, one, over = Signal(), Signal(), Signal()
        ready = self.applying & self.free & valid
        m.d.comb += [
            self.context.x_zero.eq(fetched.score.x_zero),
            self.context.y.eq(fetched.score.y),
            self.context.random.eq(fetched.random),
            self.fetch.eq(ready & ~none),
            over.eq(ready & (none | one)),
            scored.ready.eq(~valid | over),
            self.replayed.eq(left == self.samples),
        ]
        with m.If(scored.ready):
            length = scored.payload.length
            m.d.sync += [
                valid.eq(scored.valid),
                sample.eq(scored.payload),
                none.eq(length == 0),
                one.eq(length == 1),
            ]
        with m.Elif(self.fetch):
            m.d.sync += [sample.length.eq(sample.length - 1), one.eq(sample.length == 2)]
        with m.If(self.fetch):
            m.d.sync += [fetched.score.eq(sample.score), fetched.random.eq(sample.random)]
        with m.If(over):
            m.d.sync += left.eq(left + 1)
