"""One bank of the store of the keys that a SPLIT has already numbered."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["SeenBank"]


class SeenBank(wiring.Component):
    """Direct-mapped tags, and the number of the key in each entry.

    A request looks its entry up and leaves its own tag there, so an entry's content never
    depends on the outcome of a request in flight: the only hazard is the request just ahead, and
    comparing with that one resolves it. Numbers come later, in the same order, and are accessed
    in a single stage, so they have no hazard at all.

    Latency in steps: 3 from `request` to `fresh` and `replaced`, 2 from `number_access` to
    `number_found`. A step is a cycle with `advance`. Throughput: one request a step. Reset:
    requests in flight vanish; entries stay until cleared.

    Parameters
    ----------
    depth : int
        Entries.
    index_bits, tag_bits : int
        Widths, each at least 1; ``2**index_bits >= depth``.
    number_bits : int

    Members
    -------
    advance : In(1)
    request, index, tag : In
        Look `tag` up in entry `index`.
    fresh : Out(1)
        The key was not in the store.
    replaced : Out(1)
        The entry held another key.
    index_out : Out
        The index of the request that `fresh` belongs to.
    number_access, number_index, number_write, number : In
        Read, or write, the number of an entry.
    number_found : Out
        The number that was read.
    clear, clear_index : In
        Invalidates an entry. Only while no request is in flight.
    """

    def __init__(self, depth: int, index_bits: int, tag_bits: int, number_bits: int) -> None:
        self._depth, self._number_bits = depth, number_bits
        self._tag_bits = tag_bits
        super().__init__(
            {
                "advance": In(1),
                "request": In(1),
                "index": In(index_bits),
                "tag": In(tag_bits),
                "fresh": Out(1),
                "replaced": Out(1),
                "index_out": Out(index_bits),
                "number_access": In(1),
                "number_index": In(index_bits),
                "number_write": In(1),
                "number": In(number_bits),
                "number_found": Out(number_bits),
                "clear": In(1),
                "clear_index": In(index_bits),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        entry = data.StructLayout({"valid": 1, "tag": unsigned(self._tag_bits)})
        attrs = {"no_rw_check": 1}
        m.submodules.tags = tags = Memory(shape=entry, depth=self._depth, init=[], attrs=attrs)
        read, write = tags.read_port(), tags.write_port()

        asked = [Signal(name=f"asked_{n}") for n in range(1, 4)]
        index = [Signal(self.index.shape(), name=f"index_{n}") for n in range(1, 5)]
        tag = [Signal(self._tag_bits, name=f"tag_{n}") for n in range(1, 4)]
        found = Signal(entry)
        ahead, same = [Signal(), Signal()], [Signal(), Signal()]
        with m.If(self.advance):
            m.d.sync += [
                asked[0].eq(self.request),
                index[0].eq(self.index),
                tag[0].eq(self.tag),
                *(asked[n].eq(asked[n - 1]) for n in range(1, 3)),
                *(index[n].eq(index[n - 1]) for n in range(1, 4)),
                *(tag[n].eq(tag[n - 1]) for n in range(1, 3)),
                # The request ahead writes while this one reads.
                ahead[0].eq(asked[1] & (index[0] == index[1])),
                same[0].eq(tag[0] == tag[1]),
                ahead[1].eq(ahead[0]),
                same[1].eq(same[0]),
                found.eq(read.data),
            ]
        equal, occupied = Signal(), Signal()
        m.d.comb += [
            read.addr.eq(index[0]),
            read.en.eq(self.advance),
            write.addr.eq(Mux(self.clear, self.clear_index, index[1])),
            write.data.valid.eq(~self.clear),
            write.data.tag.eq(tag[1]),
            write.en.eq(self.clear | asked[1]),
            occupied.eq(ahead[1] | found.valid),
            equal.eq(Mux(ahead[1], same[1], found.tag == tag[2])),
        ]
        with m.If(self.advance):
            m.d.sync += [
                self.fresh.eq(asked[2] & ~(occupied & equal)),
                self.replaced.eq(asked[2] & occupied & ~equal),
            ]
        m.d.comb += self.index_out.eq(index[3])

        m.submodules.numbers = numbers = Memory(
            shape=self._number_bits, depth=self._depth, init=[], attrs=attrs
        )
        read, write = numbers.read_port(), numbers.write_port()
        access, wanted = Signal(), Signal()
        place, number = Signal(self.index.shape()), Signal(self._number_bits)
        with m.If(self.advance):
            m.d.sync += [
                access.eq(self.number_access),
                wanted.eq(self.number_write),
                place.eq(self.number_index),
                number.eq(self.number),
            ]
        m.d.comb += [
            read.addr.eq(place),
            read.en.eq(self.advance),
            write.addr.eq(place),
            write.data.eq(number),
            write.en.eq(access & wanted),
            self.number_found.eq(read.data),
        ]
        return m
