"""Numbers the rows that the non-popular samples need, each row once."""

from __future__ import annotations

from amaranth import Array, Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.delay_line import DelayLine
from hotline.rtl.pass_splitter import PassSplitter, key_segment, store_banks
from hotline.rtl.seen_bank import SeenBank
from hotline.rtl.small_fifo import SmallFIFO
from hotline.rtl.word_packer import word_segment

__all__ = ["COLD", "NUMBER_BITS", "Dedup", "new_keys"]

#: Bit of a list entry that tells a row number from a slot.
COLD = 31
#: Bits of a row number g; num_keys is below 2**31.
NUMBER_BITS = 31
#: Steps from a pass to the outcome of the look-up in the seen-keys store, by lane.
_LOOKUP_STEPS = 5


def new_keys(config: Config) -> data.StructLayout:
    """Keys that got a number of their own, those in the lanes of `mask`. `last` ends the list.

    `hot` by lane: the row is in the hot table, in `slot`.
    """
    return data.StructLayout(
        {
            "key": data.ArrayLayout(unsigned(config.key_bits), config.lanes),
            "slot": data.ArrayLayout(unsigned(config.slot_bits), config.lanes),
            "hot": config.lanes,
            "mask": config.lanes,
            "last": 1,
        }
    )


def _item(payload: data.StructLayout) -> data.StructLayout:
    """A payload and whether there is one."""
    return data.StructLayout({"valid": 1, "payload": payload})


class Dedup(wiring.Component):
    """Gives each key that needs a row its number g, the same one as long as the store remembers it.

    The store is direct-mapped by z mod `dedup_entries` and works as if the keys came one by one
    (spec section 7). It is banked on the low bits of z.

    Latency: 11 cycles (2 without a store, 1 if there is but one lane). Throughput: `lanes` keys
    a cycle; a segment takes an extra cycle for each conflict of different such keys on a bank.
    Back-pressure: the pipeline stops as a whole when one of the small output FIFOs is full.
    Reset: nothing in flight; the store is cleared, which takes entries / banks cycles.

    Parameters
    ----------
    config : Config

    Members
    -------
    start : In(1)
        Pulse: numbers begin at 0, counts too.
    clear : In(1)
        Pulse: empty the store. Only while nothing is in flight.
    busy : Out(1)
        The store is being cleared.
    all_rows : In(1)
        Hot keys get numbers too, not only cold ones. Stable during a command.
    input : In(stream of key_segment)
    words : Out(stream of word_segment)
        By key: the slot, or g with bit 31 set.
    new : Out(stream of new_keys)
        Items without keys appear only with `last`.
    num_keys, replacements : Out(32)
        Numbers given, and valid entries that were replaced. Exact once `words` has ended.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "clear": In(1),
                "busy": Out(1),
                "all_rows": In(1),
                "input": In(stream.Signature(key_segment(config))),
                "words": Out(stream.Signature(word_segment(config.lanes, 32))),
                "new": Out(stream.Signature(new_keys(config))),
                "num_keys": Out(32),
                "replacements": Out(32),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        config, lanes = self.config, self.config.lanes
        m.submodules.splitter = splitter = PassSplitter(config)
        wiring.connect(m, wiring.flipped(self.input), splitter.input)
        m.d.comb += splitter.all_rows.eq(self.all_rows)
        # Everything between the splitter and the outputs moves in step.
        advance = Signal()
        m.d.comb += splitter.output.ready.eq(advance)
        pipelined = lanes > 1 or config.dedup_entries > 0
        words, new = (self._queues if pipelined else self._fork)(m, advance)

        info, valid = splitter.output.payload, splitter.output.valid
        fresh = Signal(lanes, name="fresh")
        banks: list[SeenBank] = []
        if config.dedup_entries:
            info, valid = self._steps(m, advance, info, valid, 1, "pass")
            banks = self._look_up(m, advance, info, valid, fresh)
            info, valid = self._steps(m, advance, info, valid, _LOOKUP_STEPS, "lookup")
        else:
            m.d.comb += [fresh.eq(info.numbered), self.replacements.eq(self.num_keys)]

        # ---- new keys --------------------------------------------------------------------------
        mask = Signal(lanes)
        m.d.comb += [
            mask.eq(fresh & info.leads & info.numbered),
            new.valid.eq(valid & (mask.any() | info.last)),
            new.payload.mask.eq(mask),
            new.payload.last.eq(info.last),
            new.payload.key.eq(info.key),
            new.payload.slot.eq(info.slot),
            new.payload.hot.eq(info.hit),
        ]

        # ---- numbers ---------------------------------------------------------------------------
        ranks = [sum((mask[n] for n in range(lane)), Const(0)) for lane in range(lanes)]
        rank = Signal(data.ArrayLayout(range(lanes), lanes))
        amount = Signal(range(lanes + 1))
        total = sum(mask[lane] for lane in range(lanes))
        if lanes > 1:
            # A key that repeats within the pass has the rank of its leader.
            taken = [Array(ranks)[info.leader[lane]] for lane in range(lanes)]
            with m.If(advance):
                m.d.sync += [rank[lane].eq(taken[lane]) for lane in range(lanes)]
                m.d.sync += amount.eq(total)
            fresh = self._delayed(m, advance, fresh, 1, "ranked")
            info, valid = self._steps(m, advance, info, valid, 1, "rank")
        else:
            m.d.comb += amount.eq(total)
        number = Signal(data.ArrayLayout(unsigned(NUMBER_BITS), lanes))
        if pipelined:
            with m.If(advance):
                m.d.sync += [number[n].eq(self.num_keys + rank[n]) for n in range(lanes)]
        else:
            m.d.comb += number[0].eq(self.num_keys)
        with m.If(valid & advance):
            m.d.sync += self.num_keys.eq(self.num_keys + amount)
        with m.If(self.start):
            m.d.sync += self.num_keys.eq(0)
        if pipelined:
            fresh = self._delayed(m, advance, fresh, 1, "numbered")
            info, valid = self._steps(m, advance, info, valid, 1, "number")
        known = [number[lane] for lane in range(lanes)]
        if banks:
            self._access_numbers(m, advance, info, valid, fresh, number, banks)
            info, valid = self._steps(m, advance, info, valid, 2, "access")
            # A step of its own for what block RAM gives.
            found = Signal(data.ArrayLayout(unsigned(NUMBER_BITS), len(banks)), reset_less=True)
            with m.If(advance):
                m.d.sync += [found[n].eq(bank.number_found) for n, bank in enumerate(banks)]
            info, valid = self._steps(m, advance, info, valid, 1, "seen")
            fresh = self._delayed(m, advance, fresh, 3, "accessed")
            own = self._delayed(m, advance, number, 3, "own")
            known = [
                Mux(fresh[lane], own[lane], found[self._bank_of(info.z[lane])])
                for lane in range(lanes)
            ]

        # ---- slots and numbers -----------------------------------------------------------------
        payload = words.payload
        m.d.comb += [
            words.valid.eq(valid),
            payload.first.eq(info.first),
            payload.count.eq(info.count),
            payload.last.eq(info.last),
        ]
        for lane in range(lanes):
            m.d.comb += payload.word[lane].eq(
                Mux(info.numbered[lane], Cat(known[lane], Const(1, 1)), info.slot[lane])
            )
        return m

    # ---- the store ------------------------------------------------------------------------------

    def _bank_of(self, z):
        bits = log2(store_banks(self.config))
        return z[:bits] if bits else Const(0, 1)

    def _look_up(self, m, advance, info, valid, fresh) -> list[SeenBank]:
        """Ask the banks for the leaders' keys; sets `fresh` by lane, _LOOKUP_STEPS later."""
        config, lanes = self.config, self.config.lanes
        count = store_banks(config)
        low, high = log2(count), log2(config.dedup_entries)
        depth = max(2, config.dedup_entries // count)
        index_bits, tag_bits = log2(depth), max(1, config.key_bits - high)

        sweep = Signal(index_bits)
        clearing = Signal(init=1)
        m.d.comb += self.busy.eq(clearing)
        with m.If(clearing):
            m.d.sync += [sweep.eq(sweep + 1), clearing.eq(sweep != depth - 1)]
        with m.Elif(self.clear):
            m.d.sync += clearing.eq(1)

        select = [
            [
                info.numbered[lane] & info.leads[lane] & (self._bank_of(info.z[lane]) == number)
                for lane in range(lanes)
            ]
            for number in range(count)
        ]
        banks = []
        for number in range(count):
            bank = SeenBank(depth, index_bits, tag_bits, NUMBER_BITS)
            m.submodules[f"bank_{number}"] = bank
            banks.append(bank)
            asks = Signal(lanes, name=f"asks_{number}")
            z = Signal(config.key_bits, name=f"z_{number}")
            picked = 0
            for lane in range(lanes):
                picked |= Mux(asks[lane], info.z[lane], 0)
            m.d.comb += [
                asks.eq(Cat(select[number])),
                z.eq(picked if lanes > 1 else info.z[0]),
                bank.advance.eq(advance),
                bank.request.eq(valid & asks.any()),
                bank.index.eq(z[low:high]),
                bank.tag.eq(z[high:]),
                bank.clear.eq(clearing),
                bank.clear_index.eq(sweep),
            ]

        results = Array(bank.fresh for bank in banks)
        asked = Signal(data.ArrayLayout(range(max(2, count)), lanes))
        m.d.comb += [asked[lane].eq(self._bank_of(info.z[lane])) for lane in range(lanes)]
        asked = self._delayed(m, advance, asked, _LOOKUP_STEPS - 1, "asked")
        replaced = Signal(range(count + 1))
        with m.If(advance):
            m.d.sync += [
                fresh.eq(Cat(results[asked[lane]] for lane in range(lanes))),
                replaced.eq(sum(bank.replaced for bank in banks)),
                self.replacements.eq(self.replacements + replaced),
            ]
        with m.If(self.start):
            m.d.sync += self.replacements.eq(0)
        return banks

    def _access_numbers(self, m, advance, info, valid, fresh, number, banks) -> None:
        """Write the numbers of new keys, read those of keys seen before."""
        lanes = self.config.lanes
        for n, bank in enumerate(banks):
            mine = Signal(lanes, name=f"mine_{n}")
            value = 0
            for lane in range(lanes):
                value |= Mux(mine[lane], number[lane], 0)
            m.d.comb += [
                mine.eq(
                    Cat(
                        info.numbered[lane] & info.leads[lane] & (self._bank_of(info.z[lane]) == n)
                        for lane in range(lanes)
                    )
                ),
                bank.number_access.eq(valid & mine.any()),
                bank.number_write.eq((mine & fresh).any()),
                bank.number.eq(value if lanes > 1 else number[0]),
            ]
            steps = 3 if lanes > 1 else 2
            index = self._delayed(m, advance, bank.index_out, steps, f"index_{n}")
            m.d.comb += bank.number_index.eq(index)

    # ---- outputs --------------------------------------------------------------------------------

    def _queues(self, m, advance):
        """Small FIFOs at the outputs; the pipeline moves while both have room."""
        depth = 4 if self.config.lanes > 1 else 2
        inputs = []
        for name, output in (("words", self.words), ("new", self.new)):
            queue = SmallFIFO(output.payload.shape(), depth)
            m.submodules[f"{name}_queue"] = queue
            wiring.connect(m, queue.output, wiring.flipped(output))
            item = Signal(_item(output.payload.shape()), name=f"{name}_item")
            m.d.comb += [
                queue.input.valid.eq(item.valid & advance),
                queue.input.payload.eq(item.payload),
            ]
            inputs.append((queue.input.ready, item))
        m.d.comb += advance.eq(inputs[0][0] & inputs[1][0])
        return inputs[0][1], inputs[1][1]

    def _fork(self, m, advance):
        """Without any pipeline: both outputs straight from the splitter, each taken once."""
        items, done = [], []
        for name, output in (("words", self.words), ("new", self.new)):
            item = Signal(_item(output.payload.shape()), name=f"{name}_item")
            sent = Signal(name=f"{name}_sent")
            m.d.comb += [
                output.valid.eq(item.valid & ~sent),
                output.payload.eq(item.payload),
            ]
            with m.If(advance):
                m.d.sync += sent.eq(0)
            with m.Elif(output.valid & output.ready):
                m.d.sync += sent.eq(1)
            items.append(item)
            done.append(sent | ~item.valid | output.ready)
        m.d.comb += advance.eq(done[0] & done[1])
        return items[0], items[1]

    # ---- helpers --------------------------------------------------------------------------------

    @staticmethod
    def _delayed(m, advance, value, steps: int, name: str):
        """`value`, so many steps later."""
        m.submodules[f"{name}_line"] = line = DelayLine(value.shape(), steps)
        m.d.comb += [line.enable.eq(advance), line.input.eq(value)]
        return line.output

    def _steps(self, m, advance, info, valid, steps: int, name: str):
        """A pass and its valid bit, so many steps later."""
        info = self._delayed(m, advance, info, steps, name)
        for step in range(steps):
            later = Signal(name=f"{name}_valid_{step}")
            with m.If(advance):
                m.d.sync += later.eq(valid)
            valid = later
        return info, valid
