"""Lists the keys of the rows that are to be fetched."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.rtl.dedup import new_keys
from hotline.rtl.interfaces import list_beat, row_entry
from hotline.rtl.stream_register import StreamRegister
from hotline.rtl.word_packer import WordPacker, word_segment

__all__ = ["KeyLister"]


class KeyLister(wiring.Component):
    """Compacts the new keys of each group into the `keys` list, and hands them to the row mover.

    Latency: about four cycles. Throughput: without `gather` the new keys of a group
    a cycle (with two lanes those of `keys_per_beat` neighbouring lanes), with it one key a cycle
    (the row mover takes no more). Back-pressure: holds two groups. Reset: empty.

    Parameters
    ----------
    config : Config
    buffered : bool
        As in :class:`WordPacker`.

    Members
    -------
    input : In(stream of new_keys)
    gather : In(1)
        Send every key to `rows` too; stable during a command.
    keys : Out(stream of list_beat)
    rows : Out(stream of row_entry)
        Ends with the marker valid = 0, last = 1.
    """

    def __init__(self, config: Config, *, buffered: bool = True) -> None:
        self.config, self._buffered = config, buffered
        super().__init__(
            {
                "input": In(stream.Signature(new_keys(config))),
                "gather": In(1),
                "keys": Out(stream.Signature(list_beat(config))),
                "rows": Out(stream.Signature(row_entry(config))),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        config, lanes = self.config, self.config.lanes
        # Lanes that go together. With many lanes all of them: the store of seen keys cuts a group
        # into passes, and to halve them again would be slower than the bus.
        width = lanes if lanes > 2 else min(lanes, config.keys_per_beat)
        parts = lanes // width
        m.submodules.packer = packer = WordPacker(
            config, inputs=width, word_bits=64, buffered=self._buffered
        )

        # ---- choose keys of the group ----------------------------------------------------------
        group = self.input.payload
        left, begun = Signal(lanes), Signal()
        mask = Signal(lanes)
        chunk, rest = Signal(width), Signal(lanes)
        # The key and, above it, whether its row is hot.
        chosen_bits = config.key_bits + 1
        keys = [Signal(chosen_bits, name=f"chosen_{lane}") for lane in range(width)]
        slot = Signal(config.slot_bits)
        m.d.comb += mask.eq(Mux(begun, left, group.mask))
        for part in reversed(range(parts)):
            lanes_here = mask[part * width : (part + 1) * width]
            chosen = Signal(width, name=f"chunk_{part}")
            lowest = Cat(
                lanes_here[n] & ~lanes_here[:n].any() if n else lanes_here[0] for n in range(width)
            )
            m.d.comb += chosen.eq(Mux(self.gather, lowest, lanes_here))
            # As wide as the mask: the complement of something narrower would clear bits above it.
            above = lanes - (part + 1) * width
            taken = Cat(Const(0, part * width), chosen, Const(0, above))
            # The lowest part with keys left is the last to be assigned here.
            with m.If(lanes_here.any()):
                m.d.comb += [
                    chunk.eq(chosen),
                    rest.eq(mask & ~taken),
                    *(
                        keys[n].eq(Cat(group.key[part * width + n], group.hot[part * width + n]))
                        for n in range(width)
                    ),
                ]
                # Rows go one by one: the slot is that of the only one that is chosen.
                for n in range(width):
                    with m.If(lowest[n]):
                        m.d.comb += slot.eq(group.slot[part * width + n])

        # ---- compact them ----------------------------------------------------------------------
        # Each key moves down by the number of gaps below it, one bit of that number a level;
        # lowest bit first no two keys ever meet.
        row = [
            (keys[n], chunk[n], sum((~chunk[k] for k in range(n)), Const(0, 1)))
            for n in range(width)
        ]
        for level in range(log2(width)):
            moved = []
            for n in range(width):
                source = n + (1 << level)
                stays = row[n][1] & ~self._bit(row[n][2], level)
                if source < width:
                    comes = row[source][1] & self._bit(row[source][2], level)
                    moved.append(
                        (
                            Mux(comes, row[source][0], row[n][0]),
                            comes | stays,
                            Mux(comes, row[source][2], row[n][2]),
                        )
                    )
                else:
                    moved.append((row[n][0], stays, row[n][2]))
            row = moved

        # ---- hand them on ----------------------------------------------------------------------
        free, entry = Signal(), self.rows.payload
        row_slot = Signal(config.slot_bits, reset_less=True)
        key = Signal(data.ArrayLayout(unsigned(chosen_bits), width), reset_less=True)
        count, last = Signal(range(width + 1)), Signal()
        to_list, to_rows = Signal(), Signal()  # not yet taken by
        list_ready = Signal()
        ends, complete = Signal(), Signal()
        m.d.comb += [
            ends.eq(~mask.any()),
            # A closing item of its own ends the list, so that rows and marker never coincide.
            complete.eq(ends | ~(rest.any() | group.last)),
            self.input.ready.eq(free & complete),
            free.eq(
                (~to_list | list_ready) & (~to_rows | self.rows.ready),
            ),
        ]
        with m.If(to_list & list_ready):
            m.d.sync += to_list.eq(0)
        with m.If(to_rows & self.rows.ready):
            m.d.sync += to_rows.eq(0)
        with m.If(free & self.input.valid):
            m.d.sync += [
                begun.eq(~complete),
                left.eq(rest),
                *(key[n].eq(row[n][0]) for n in range(width)),
                row_slot.eq(slot),
                count.eq(sum(chunk[n] for n in range(width))),
                last.eq(ends),
                to_list.eq(1),
                to_rows.eq(self.gather),
            ]

        first = key[0]
        into = packer.input
        if self._buffered:
            # The stall of the packer ends here.
            m.submodules.segments = segments = StreamRegister(word_segment(width, 64))
            wiring.connect(m, segments.output, packer.input)
            into = segments.input
        segment = into.payload
        m.d.comb += [
            into.valid.eq(to_list),
            list_ready.eq(into.ready),
            segment.count.eq(count),
            segment.last.eq(last),
            self.rows.valid.eq(to_rows),
            entry.row.eq(first[: config.row_bits]),
            entry.table.eq(first[config.row_bits : -1]),
            entry.hot.eq(first[-1]),
            entry.slot.eq(row_slot),
            entry.valid.eq(~last),
            entry.last.eq(last),
            self.keys.valid.eq(packer.output.valid),
            self.keys.payload.eq(packer.output.payload),
            packer.output.ready.eq(self.keys.ready),
        ]
        for n in range(width):
            m.d.comb += [
                segment.word[n][:32].eq(key[n][: config.row_bits]),
                segment.word[n][32:63].eq(key[n][config.row_bits : -1]),
                segment.word[n][63].eq(key[n][-1]),
            ]
        return m

    @staticmethod
    def _bit(value, position: int):
        return value[position] if position < len(value) else Const(0, 1)
