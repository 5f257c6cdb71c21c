"""AXI4 slave on the single-port RAM of an iCE40 UltraPlus."""

from __future__ import annotations

from amaranth import Cat, ClockSignal, Const, Instance, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from hotline.fpga.axi_channels import read_port, sink, source, stream_for, write_port
from hotline.fpga.axi_memory import DECERR
from hotline.gen.config import Config, ceil_log2, log2

__all__ = ["SPRAM_BYTES", "AxiSpram"]

#: The UP5K has four blocks of 16 Ki words of 16 bits.
SPRAM_BYTES = 128 << 10
_BLOCK_BITS = 14


class AxiSpram(wiring.Component):
    """128 KiB on a 32-bit bus, small: one burst after the other, reads and writes in turns.

    Bursts are INCR, aligned to the bus, and not longer than the configuration says. A burst above
    the memory is answered DECERR and touches nothing.

    Throughput: a beat a cycle, three cycles between bursts. Latency: two cycles from AR to R.
    Back-pressure: R and B wait for any time. Reset: no burst in flight; the contents stay.

    Parameters
    ----------
    config : Config
        Of the accelerator, with a 32-bit bus.
    id_width : int
        Bits of an ID.

    Members
    -------
    axi_r, axi_w : In
        From the masters.
    """

    def __init__(self, config: Config, id_width: int) -> None:
        if config.data_width != 32:
            raise ValueError(f"data_width must be 32 for this memory, not {config.data_width}")
        self.config = config
        super().__init__(
            {"axi_r": In(read_port(config, id_width)), "axi_w": In(write_port(config, id_width))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ar, aw, w = (
            source(m, self.axi_r, "ar"),
            source(m, self.axi_w, "aw"),
            source(m, self.axi_w, "w"),
        )
        r, b = stream_for(self.axi_r, "r"), stream_for(self.axi_w, "b")
        bits = log2(SPRAM_BYTES // 4)
        burst = Signal(data.StructLayout({"addr": bits, "id": len(ar.payload.id), "outside": 1}))
        left = Signal(max(1, ceil_log2(self.config.max_burst_beats)))
        access, write, turn = Signal(), Signal(), Signal()
        m.submodules.storage = storage = _Storage(bits)
        m.d.comb += [
            storage.addr.eq(burst.addr),
            storage.data_in.eq(w.payload.data),
            storage.strobe.eq(w.payload.strb),
            storage.enable.eq(access & ~burst.outside),
            storage.write.eq(write),
            r.payload.data.eq(storage.data_out),
            r.payload.id.eq(burst.id),
            b.payload.id.eq(burst.id),
            r.payload.resp.eq(Mux(burst.outside, DECERR, 0)),
            b.payload.resp.eq(Mux(burst.outside, DECERR, 0)),
        ]
        with m.If(access):
            m.d.sync += [burst.addr.eq(burst.addr + 1), left.eq(left - 1)]
        with m.FSM():
            # First the choice, then the transfer: so `ready` depends on the state alone.
            with m.State("IDLE"):
                # `turn` says what was done last.
                with m.If(aw.valid & ~(ar.valid & turn)):
                    m.d.sync += turn.eq(1)
                    m.next = "TAKE_WRITE"
                with m.Elif(ar.valid):
                    m.d.sync += turn.eq(0)
                    m.next = "TAKE_READ"
            for name, offer in (("READ", ar), ("WRITE", aw)):
                with m.State(f"TAKE_{name}"):
                    m.d.comb += offer.ready.eq(1)
                    m.d.sync += [
                        burst.addr.eq(offer.payload.addr[2 : 2 + bits]),
                        burst.outside.eq(offer.payload.addr[2 + bits :].any()),
                        burst.id.eq(offer.payload.id),
                        left.eq(offer.payload.len),
                    ]
                    m.next = name
            with m.State("READ"):
                m.d.comb += access.eq(~r.valid | r.ready)
                with m.If(access):
                    m.d.sync += [r.valid.eq(1), r.payload.last.eq(left == 0)]
                    with m.If(left == 0):
                        m.next = "LAST"
            with m.State("LAST"), m.If(r.ready):
                m.d.sync += r.valid.eq(0)
                m.next = "IDLE"
            with m.State("WRITE"):
                m.d.comb += [w.ready.eq(1), access.eq(w.valid), write.eq(1)]
                with m.If(w.valid & w.payload.last):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += b.valid.eq(1)
                with m.If(b.ready):
                    m.next = "IDLE"
        sink(m, self.axi_r, "r", r)
        sink(m, self.axi_w, "b", b)
        return m


class _Storage(wiring.Component):
    """Words of 32 bits. `data_out` is what the last read found, a cycle after it."""

    def __init__(self, addr_bits: int) -> None:
        self._addr_bits = addr_bits
        super().__init__(
            {
                "addr": In(addr_bits),
                "enable": In(1),
                "write": In(1),
                "data_in": In(32),
                "strobe": In(4),
                "data_out": wiring.Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if not getattr(platform, "device", "").startswith("iCE40UP"):
            # For simulation.
            m.submodules.words = words = Memory(shape=32, depth=1 << self._addr_bits, init=[])
            write, read = words.write_port(granularity=8), words.read_port()
            m.d.comb += [
                write.addr.eq(self.addr),
                write.data.eq(self.data_in),
                read.addr.eq(self.addr),
                read.en.eq(self.enable & ~self.write),
                self.data_out.eq(read.data),
            ]
            with m.If(self.enable & self.write):
                m.d.comb += write.en.eq(self.strobe)
            return m
        upper = Signal()
        outputs = []
        for half in range(2):
            select = self.addr[_BLOCK_BITS] == half
            for word in range(2):
                output = Signal(16, name=f"output_{half}_{word}")
                outputs.append(output)
                strobe = self.strobe[2 * word : 2 * word + 2]
                m.submodules[f"block_{half}_{word}"] = Instance(
                    "SB_SPRAM256KA",
                    i_ADDRESS=self.addr[:_BLOCK_BITS],
                    i_DATAIN=self.data_in[16 * word : 16 * word + 16],
                    i_MASKWREN=Cat(bit.replicate(2) for bit in strobe),
                    i_WREN=self.write,
                    i_CHIPSELECT=self.enable & select,
                    i_CLOCK=ClockSignal(),
                    i_STANDBY=Const(0),
                    i_SLEEP=Const(0),
                    i_POWEROFF=Const(1),
                    o_DATAOUT=output,
                )
        with m.If(self.enable & ~self.write):
            m.d.sync += upper.eq(self.addr[_BLOCK_BITS])
        m.d.comb += self.data_out.eq(Mux(upper, Cat(*outputs[2:]), Cat(*outputs[:2])))
        return m
