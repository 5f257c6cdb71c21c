"""AXI4 slave in front of a memory that is accessed beat by beat."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.axi_channels import read_port, sink, source, write_port
from hotline.gen.config import Config, log2
from hotline.rtl.small_fifo import SmallFIFO

__all__ = ["DECERR", "AxiMemory", "MemoryPort"]

OKAY, DECERR = 0, 3
#: Reads in flight between request and R.
_DEPTH = 16


class MemoryPort(wiring.Signature):
    """Accesses of one bus beat each, carried out in order; directions as the asking side sees them.

    Parameters
    ----------
    data_width : int
        Bits of a beat.
    addr_width : int
        Bits of the number of a beat.

    Members
    -------
    request : Out(stream of {write, addr, data, strobe})
        `addr` counts beats.
    read : In({valid, data})
        What was read, in order; it must be taken in that cycle.
    """

    def __init__(self, data_width: int, addr_width: int) -> None:
        self.data_width, self.addr_width = data_width, addr_width
        request = data.StructLayout(
            {"write": 1, "addr": addr_width, "data": data_width, "strobe": data_width // 8}
        )
        answer = data.StructLayout({"valid": 1, "data": data_width})
        super().__init__({"request": Out(stream.Signature(request)), "read": In(answer)})


class AxiMemory(wiring.Component):
    """Turns bursts into accesses to a memory, one burst after the other, reads and writes in turns.

    Bursts are INCR, aligned to the bus, and do not cross a 4 KiB boundary. A burst above the
    memory is answered DECERR and touches nothing.

    Throughput: one beat a cycle, with one cycle between bursts, if the memory can. Latency: that
    of the memory and three cycles. B is sent when the last beat has been handed to the memory,
    which keeps the order. Back-pressure: the memory is asked only with space reserved for what it
    will answer, so R may stall for any time. Reset: no burst in flight; the memory must have been
    reset with it.

    Parameters
    ----------
    config : Config
        Of the accelerator.
    id_width : int
        Bits of an ID.
    size : int
        Bytes of the memory, which begins at address 0; a power of two, at least 4096.

    Members
    -------
    axi_r, axi_w : In
        From the masters.
    memory : Out(MemoryPort)
        To the memory.
    """

    def __init__(self, config: Config, id_width: int, size: int) -> None:
        if size < 4096 or size & (size - 1):
            raise ValueError(f"size must be a power of two of at least 4096, not {size}")
        self.config, self.id_width, self.size = config, id_width, size
        self._beat_bits = log2(config.data_bytes)
        self._addr_bits = log2(size // config.data_bytes)
        super().__init__(
            {
                "axi_r": In(read_port(config, id_width)),
                "axi_w": In(write_port(config, id_width)),
                "memory": Out(MemoryPort(config.data_width, self._addr_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ar, aw, w = (
            source(m, self.axi_r, "ar"),
            source(m, self.axi_w, "aw"),
            source(m, self.axi_w, "w"),
        )
        coming = data.StructLayout({"id": self.id_width, "last": 1, "outside": 1})
        m.submodules.coming = expected = SmallFIFO(coming, _DEPTH)
        beat = data.StructLayout({"data": self.config.data_width})
        m.submodules.beats = beats = SmallFIFO(beat, _DEPTH)
        request, answer = self.memory.request, self.memory.read

        addr, left = Signal(self._addr_bits), Signal(8)
        burst = Signal(data.StructLayout({"id": self.id_width, "outside": 1}))
        last, prefer_write = Signal(), Signal()
        m.d.comb += last.eq(left == 0)

        def begin(head: stream.Interface) -> None:
            bits = self._beat_bits + self._addr_bits
            m.d.comb += head.ready.eq(1)
            m.d.sync += [
                addr.eq(head.payload.addr[self._beat_bits : bits]),
                burst.id.eq(head.payload.id),
                burst.outside.eq(head.payload.addr[bits:].any()),
                left.eq(head.payload.len),
            ]

        def step() -> None:
            m.d.sync += [addr.eq(addr + 1), left.eq(left - 1)]

        respond = Signal()
        m.d.comb += [
            request.payload.addr.eq(addr),
            request.payload.data.eq(w.payload.data),
            request.payload.strobe.eq(w.payload.strb),
        ]
        with m.FSM():
            with m.State("IDLE"):
                with m.If(aw.valid & ~respond & (prefer_write | ~ar.valid)):
                    begin(aw)
                    m.next = "WRITE"
                with m.Elif(ar.valid):
                    begin(ar)
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += [
                    expected.input.valid.eq(request.ready | burst.outside),
                    request.valid.eq(expected.input.ready & ~burst.outside),
                ]
                with m.If(expected.input.valid & expected.input.ready):
                    step()
                    with m.If(last):
                        m.d.sync += prefer_write.eq(1)
                        m.next = "IDLE"
            with m.State("WRITE"):
                m.d.comb += [
                    request.payload.write.eq(1),
                    request.valid.eq(w.valid & ~burst.outside),
                    w.ready.eq(request.ready | burst.outside),
                ]
                with m.If(w.valid & w.ready):
                    step()
                    with m.If(last):
                        m.d.sync += [respond.eq(1), prefer_write.eq(0)]
                        m.next = "IDLE"

        # The answer of a write burst; the next one begins when it is on its way.
        m.d.comb += [
            self.axi_w.bvalid.eq(respond),
            self.axi_w.bid.eq(burst_id := Signal(self.id_width, name="answer_id")),
            self.axi_w.bresp.eq(burst_resp := Signal(2, name="answer_resp")),
        ]
        with m.If(respond & self.axi_w.bready):
            m.d.sync += respond.eq(0)
        with m.If(~respond):
            m.d.sync += [burst_id.eq(burst.id), burst_resp.eq(Mux(burst.outside, DECERR, OKAY))]

        head = expected.output.payload
        r = stream.Signature(
            data.StructLayout(
                {"data": self.config.data_width, "id": self.id_width, "resp": 2, "last": 1}
            )
        ).create()
        m.d.comb += [
            expected.input.payload.id.eq(burst.id),
            expected.input.payload.last.eq(last),
            expected.input.payload.outside.eq(burst.outside),
            # There is room: at most as many reads are under way as `expected` holds.
            beats.input.valid.eq(answer.valid),
            beats.input.payload.data.eq(answer.data),
            r.valid.eq(expected.output.valid & (head.outside | beats.output.valid)),
            r.payload.data.eq(beats.output.payload.data),
            r.payload.id.eq(head.id),
            r.payload.last.eq(head.last),
            r.payload.resp.eq(Mux(head.outside, DECERR, OKAY)),
            expected.output.ready.eq(r.valid & r.ready),
            beats.output.ready.eq(r.valid & r.ready & ~head.outside),
        ]
        sink(m, self.axi_r, "r", r)
        return m
