"""Moves aligned lines between a buffer of 32-bit words and memory."""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, log2
from hotline.gen.serial_link import BLOCK_BYTES
from hotline.rtl.axi import BURST_INCR, CACHE, PROT, axi_read, axi_size, axi_write
from hotline.rtl.burst import aligned_beats

__all__ = ["LineMover", "line_bytes"]


def line_bytes(config: Config) -> int:
    """Bytes of a line: a burst as long as allowed, at most a block."""
    return min(BLOCK_BYTES, aligned_beats(config) * config.data_bytes)


class LineMover(wiring.Component):
    """Reads or writes one line, which is one AXI burst, for each `start`.

    A line is aligned to its size, so no burst crosses a 4 KiB boundary. Words that are not wanted
    are read all the same, and written with strobes of 0. A read takes a cycle a word beside the
    latency of the memory, a write two. Reset: idle; a burst on the way is lost.

    Parameters
    ----------
    config : Config
        Bus width and longest burst. A line must have at least one beat, so the bus is at most 64
        bytes wide.

    Members
    -------
    start : In(1)
        Pulse while idle.
    write, all : In(1)
        Write instead of read; every word is wanted. Stable until `done`.
    line : In
        Number of the line. Stable until `done`.
    load, skip : In(1), In
        Pulse: so many words from now on are not wanted, unless `all`.
    left : In(1)
        More words are wanted.
    wanted : Out(1)
        Pulse: a word that is wanted was read, or is being written.
    index : Out
        Number of the word within the line.
    store, word : Out(1), Out(32)
        A word that was read, together with `wanted` if it is.
    fetched : In(32)
        The next word to write. It may change a cycle after `wanted`, and is looked at from the
        second cycle after that on.
    done, response : Out(1), Out(2)
        Pulse at the end of the line, and the worst AXI response.
    axi_r, axi_w : Out
        AXI4 master.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.words = line_bytes(config) // 4
        index = range(self.words)
        super().__init__(
            {
                "start": In(1),
                "write": In(1),
                "all": In(1),
                "line": In(32 - log2(line_bytes(config))),
                "load": In(1),
                "skip": In(index),
                "left": In(1),
                "wanted": Out(1),
                "index": Out(index),
                "store": Out(1),
                "word": Out(32),
                "fetched": In(32),
                "done": Out(1),
                "response": Out(2),
                "axi_r": Out(axi_read(config)),
                "axi_w": Out(axi_write(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, read, write = self.config, self.axi_r, self.axi_w
        bus_words = config.data_words
        beats = self.words // bus_words
        skip = Signal(range(max(2, self.words)))
        response = Signal(2)
        step, active, last, beat_end = Signal(), Signal(), Signal(), Signal()
        lane = self.index[: log2(bus_words)]
        m.d.comb += [
            active.eq(self.all | ((skip == 0) & self.left)),
            last.eq(self.index == self.words - 1),
            beat_end.eq(lane == bus_words - 1),
            self.wanted.eq(step & active),
            self.response.eq(response),
        ]
        with m.If(step):
            m.d.sync += self.index.eq(self.index + 1)
            with m.If(skip != 0):
                m.d.sync += skip.eq(skip - 1)
        with m.If(self.load):
            m.d.sync += skip.eq(self.skip)

        for name, value in (
            ("addr", self.line << log2(line_bytes(config))),
            ("len", beats - 1),
            ("size", axi_size(config)),
            ("burst", BURST_INCR),
            ("cache", CACHE),
            ("prot", PROT),
        ):
            m.d.comb += [
                getattr(read, f"ar{name}").eq(value),
                getattr(write, f"aw{name}").eq(value),
            ]

        # A beat of more than one word is put together in a register, which then also ends the path
        # from the buffer; the registers of a single one would only take room.
        held = Signal(config.data_width if bus_words > 1 else 0)
        held_active = Signal(bus_words if bus_words > 1 else 0)
        m.d.comb += [
            write.wdata.eq(held if bus_words > 1 else self.fetched),
            write.wstrb.eq(
                Cat(bit.replicate(4) for bit in (held_active if bus_words > 1 else [active]))
            ),
            write.wlast.eq(self.index == 0 if bus_words > 1 else last),
            self.word.eq(read.rdata.word_select(lane, 32)),
        ]
        with m.If(write.awready):
            m.d.sync += write.awvalid.eq(0)
        with m.FSM(name="mover"):
            with m.State("IDLE"):
                m.d.sync += [self.index.eq(0), response.eq(0)]
                with m.If(self.start & self.write):
                    m.d.sync += write.awvalid.eq(1)
                    m.next = "FETCH"
                with m.Elif(self.start):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.d.comb += read.arvalid.eq(1)
                with m.If(read.arready):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += [
                    step.eq(read.rvalid),
                    self.store.eq(self.wanted),
                    read.rready.eq(beat_end),
                ]
                with m.If(step):
                    m.d.sync += response.eq(response | read.rresp)
                    with m.If(last):
                        m.next = "DONE"
            with m.State("FETCH"):
                # The buffer's read port is a cycle behind its address.
                m.next = "WRITE"
            with m.State("WRITE"):
                if bus_words > 1:
                    m.d.comb += step.eq(1)
                    m.d.sync += [
                        held.eq(Cat(held, self.fetched)[32:]),
                        held_active.eq(Cat(held_active, active)[1:]),
                    ]
                    m.next = "FETCH"
                    with m.If(beat_end):
                        m.next = "SEND"
                else:
                    m.d.comb += [write.wvalid.eq(1), step.eq(write.wready)]
                    with m.If(step):
                        m.next = "FETCH"
                        with m.If(last):
                            m.next = "ANSWER"
            if bus_words > 1:
                with m.State("SEND"):
                    m.d.comb += write.wvalid.eq(1)
                    with m.If(write.wready):
                        m.next = "FETCH"
                        with m.If(write.wlast):
                            m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += write.bready.eq(1)
                m.d.sync += response.eq(write.bresp)
                with m.If(write.bvalid):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                m.next = "IDLE"
        return m
