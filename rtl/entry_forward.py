"""Entries of the hot table that an update needs before the one ahead of it has written them."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.hot_update import bank_write, entry_layout, index_width

__all__ = ["EntryForward"]


class EntryForward(wiring.Component):
    """Puts what stages S4 and S5 of :class:`~hotline.rtl.hot_bank.HotBank` write in place of what
    the memory says.

    The request in S1 reads what was written before it was in S0. Of what has been decided since,
    the latest counts: S4 in this cycle, S4 in the one before, and S5 in the one before. Where the
    sets are equal is found out a cycle ahead.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    asked : In(ArrayLayout(index, ways))
        Where the request in S0 reads.
    coming : In(ArrayLayout(index, ways))
        Where the request in S3 will write.
    decided, leaving : In(bank_write)
        What S4 and S5 write.
    read : In(ArrayLayout(entry, ways))
        Memory outputs: of the request in S1.
    entries : Out(ArrayLayout(entry, ways))
        The same, up to date.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        indices = data.ArrayLayout(index_width(config), config.ways)
        entries = data.ArrayLayout(entry_layout(config), config.ways)
        super().__init__(
            {
                "asked": In(indices),
                "coming": In(indices),
                "decided": In(bank_write(config)),
                "leaving": In(bank_write(config)),
                "read": In(entries),
                "entries": Out(entries),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        decided, leaving = self.decided, self.leaving
        m.d.comb += self.entries.eq(self.read)
        for way in range(self.config.ways):
            first, second, third = (Signal(name=f"same_{way}_s{stage}") for stage in (3, 4, 5))
            now = Signal(name=f"now_{way}")
            m.d.comb += [
                first.eq(self.asked[way] == self.coming[way]),
                second.eq(self.asked[way] == decided.index[way]),
                third.eq(self.asked[way] == leaving.index[way]),
            ]
            m.d.sync += now.eq(first)
            target = self.entries[way]
            for name, field, enable in (
                ("status", Cat(target.state, target.changed), "change"),
                ("tag", target.tag, "insert"),
            ):
                new, old = Value.cast(decided[name][way]), Value.cast(leaving[name][way])
                writes, wrote = decided[enable][way], leaving[enable][way]
                kept = Signal(len(new), name=f"{name}_{way}", reset_less=True)
                use = Signal(name=f"use_{name}_{way}")
                m.d.sync += [
                    kept.eq(Mux(second & writes, new, old)),
                    use.eq((second & writes) | (third & wrote)),
                ]
                with m.If(now & writes):
                    m.d.comb += field.eq(new)
                with m.Elif(use):
                    m.d.comb += field.eq(kept)
        return m
