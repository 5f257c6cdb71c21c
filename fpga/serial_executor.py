"""Carries out one request that lies in the bridge's buffer."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.fpga.frame_buffer import BASE_WORDS, BUFFER_WORDS, FRAME, SCRATCH
from hotline.fpga.line_mover import LineMover, line_bytes
from hotline.gen.config import Config, log2
from hotline.gen.serial_link import (
    BLOCK_BYTES,
    HEADER_BYTES,
    MAX_BLOCK_LOG2,
    MAX_WORDS,
    REPLY,
    WAIT_CYCLES,
    LinkCommand,
    LinkStatus,
)
from hotline.rtl.axi import axi_read, axi_write
from hotline.rtl.axi_lite import AxiLiteSignature

__all__ = ["SerialExecutor"]

_HEADER_WORDS = HEADER_BYTES // 4
_REGISTER_BITS = 12


class SerialExecutor(wiring.Component):
    """Checks the request in the buffer, carries it out, and leaves the reply in its place.

    A request that changes something and has the sequence number of the one before is not carried
    out again: it gets that one's status. One read or one write is on the way at a time. Reset:
    idle, no request before; what was under way is lost, so reset the bus with it.

    Parameters
    ----------
    config : Config
        Bus width, address width and longest burst.
    memory_bits : int
        What lies beyond so many bits of an address is answered DECODE_ERROR, without a look at
        the bus.

    Members
    -------
    begin : In(1)
        Pulse while `idle`: the buffer holds a frame whose CRC is right.
    last : In
        Where in the buffer it ends; stable until `reply`.
    idle : Out(1)
        The buffer may be filled. `place` is FRAME.
    reply, bare, sent : Out(1), Out(1), In(1)
        Pulse: from the next cycle on, the words below `place` are the reply, or, if it is `bare`,
        only the header. Pulse: it has been sent.
    sum, summed : Out(1), In(1)
        Pulses: feed the line at SCRATCH to the CRC; that was done.
    close, restart : Out(1)
        With `sum`: it is the last line, and the CRC goes to `place`. The CRC begins again.
    place, word : Out, In(32)
        The buffer's read port: the word comes a cycle after its address.
    address, data, store : Out
        The buffer's write port.
    status : Out(8)
        The second byte of the reply; goes to word 0 with `reply`.
    irq : In(1)
        Interrupt.
    axil, axi_r, axi_w : Out
        Masters for registers and memory.
    """

    def __init__(self, config: Config, memory_bits: int = 32) -> None:
        self.config = config
        self.memory_bits = memory_bits
        self.line_words = line_bytes(config) // 4
        place = range(BUFFER_WORDS)
        super().__init__(
            {
                "begin": In(1),
                "last": In(range(BUFFER_WORDS + 1)),
                "idle": Out(1),
                "reply": Out(1),
                "bare": Out(1),
                "sent": In(1),
                "sum": Out(1),
                "summed": In(1),
                "close": Out(1),
                "restart": Out(1),
                "place": Out(place, init=FRAME),
                "word": In(32),
                "address": Out(place),
                "data": Out(32),
                "store": Out(1),
                "status": Out(8),
                "irq": In(1),
                "axil": Out(AxiLiteSignature()),
                "axi_r": Out(axi_read(config)),
                "axi_w": Out(axi_write(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, port = self.config, self.axil
        m.submodules.mover = mover = LineMover(config)
        connect(m, mover.axi_r, flipped(self.axi_r))
        connect(m, mover.axi_w, flipped(self.axi_w))

        # ---- the request ------------------------------------------------------------------------
        command, is_reply, size = Signal(4), Signal(), Signal(range(MAX_BLOCK_LOG2 + 1))
        count, too_many = Signal(range(MAX_WORDS + 1)), Signal()
        # No request has the number that is there after reset.
        number, former, again = Signal(9, init=256), Signal(9), Signal()
        line_bits = log2(line_bytes(config))
        offset = Signal(line_bits)
        # Number of a line; the bit above says that the end of the address space was passed.
        line = Signal(self.memory_bits - line_bits + 1)
        request = Cat(offset, line)
        block_end = self._block_end(line, size)
        status = Signal(range(max(LinkStatus) + 1))
        is_ = {item: command == item for item in LinkCommand}
        registers = is_[LinkCommand.READ_REGISTER] | is_[LinkCommand.WRITE_REGISTER]
        blocks = is_[LinkCommand.FILL] | is_[LinkCommand.DIGEST]
        writes = is_[LinkCommand.WRITE_REGISTER] | is_[LinkCommand.WRITE] | is_[LinkCommand.FILL]
        memory = is_[LinkCommand.READ] | is_[LinkCommand.WRITE]
        fits = Signal()
        misplaced = Signal()
        m.d.comb += misplaced.eq(request[:2].any())
        with m.If(is_[LinkCommand.WRITE]):
            m.d.comb += fits.eq(self.last == count + BASE_WORDS)
        with m.Else():
            m.d.comb += fits.eq(self.last == BASE_WORDS | writes)
        with m.If(registers):
            m.d.comb += misplaced.eq(request[:2].any() | request[_REGISTER_BITS:].any())
        with m.Elif(blocks):
            m.d.comb += misplaced.eq(request[: log2(BLOCK_BYTES)].any())
        problem = Signal.like(status)
        with m.If(is_reply | ~(registers | memory | blocks | is_[LinkCommand.WAIT])):
            m.d.comb += problem.eq(LinkStatus.BAD_COMMAND)
        with m.Elif(~blocks & (size != 0)):
            m.d.comb += problem.eq(LinkStatus.BAD_COMMAND)
        with m.Elif(
            too_many | (count == 0) | (count > MAX_WORDS) | (registers & (count != 1)) | ~fits
        ):
            m.d.comb += problem.eq(LinkStatus.BAD_LENGTH)
        with m.Elif(misplaced & ~is_[LinkCommand.WAIT]):
            m.d.comb += problem.eq(LinkStatus.BAD_ADDRESS)

        # ---- registers and memory ---------------------------------------------------------------
        m.d.comb += [
            port.araddr.eq(request),
            port.awaddr.eq(request),
            port.wdata.eq(self.word),
            port.wstrb.eq(0xF),
            mover.write.eq(writes),
            mover.all.eq(blocks),
            mover.line.eq(line),
            mover.skip.eq(offset[2:]),
            mover.left.eq(count != 0),
            mover.fetched.eq(self.word),
        ]
        for valid, ready in (
            (port.arvalid, port.arready),
            (port.awvalid, port.awready),
            (port.wvalid, port.wready),
        ):
            with m.If(ready):
                m.d.sync += valid.eq(0)
        with m.If(mover.wanted & ~blocks):
            m.d.sync += [self.place.eq(self.place + 1), count.eq(count - 1)]

        # ---- the buffer -------------------------------------------------------------------------
        m.d.comb += [self.address.eq(self.place), self.data.eq(mover.word)]
        with m.If(mover.store):
            m.d.comb += self.store.eq(1)
            with m.If(is_[LinkCommand.DIGEST]):
                m.d.comb += self.address.eq(SCRATCH[0] | mover.index)

        with m.FSM(name="executor"):
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                with m.If(self.begin):
                    m.d.sync += self.place.eq(self.place + 1)
                    m.next = "HEADER"
            with m.State("HEADER"):
                word = self.word
                m.d.sync += [
                    # Not compared at once, because block RAM is slow to answer.
                    number.eq(word[:8]),
                    former.eq(number),
                    Cat(command, size, is_reply, count).eq(word[8:]),
                    too_many.eq(word[16 + len(count) :].any()),
                    self.place.eq(self.place + 1),
                ]
                m.next = "ADDRESS"
            with m.State("ADDRESS"):
                beyond = self.word[self.memory_bits :].any()
                m.d.sync += [
                    request.eq(Cat(self.word[: self.memory_bits], beyond)),
                    again.eq(number == former),
                ]
                m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += [mover.load.eq(1), self.restart.eq(1)]
                m.d.sync += status.eq(LinkStatus.OK)
                with m.If(problem != LinkStatus.OK):
                    m.d.sync += status.eq(problem)
                    m.next = "STATUS"
                with m.Elif(again & writes):
                    m.d.sync += status.eq(status)
                    m.next = "STATUS"
                with m.Elif(is_[LinkCommand.READ_REGISTER]):
                    m.d.sync += port.arvalid.eq(1)
                    m.next = "READ REGISTER"
                with m.Elif(is_[LinkCommand.WRITE_REGISTER]):
                    m.d.sync += [port.awvalid.eq(1), port.wvalid.eq(1)]
                    m.next = "WRITE REGISTER"
                with m.Elif(is_[LinkCommand.WAIT]):
                    m.next = "WAIT"
                with m.Else():
                    m.next = "LINE"
            with m.State("READ REGISTER"):
                m.d.comb += [port.rready.eq(1), self.data.eq(port.rdata)]
                with m.If(port.rvalid):
                    m.d.comb += self.store.eq(1)
                    m.d.sync += [self.place.eq(self.place + 1), status.eq(_status(port.rresp))]
                    m.next = "STATUS"
            with m.State("WRITE REGISTER"):
                m.d.comb += port.bready.eq(1)
                with m.If(port.bvalid):
                    m.d.sync += status.eq(_status(port.bresp))
                    m.next = "STATUS"
            with m.State("WAIT"):
                # The address is of no use here: its register tells the time.
                m.d.sync += line.eq(line + 1)
                with m.If(self.irq):
                    m.next = "STATUS"
                with m.Elif(line[: log2(WAIT_CYCLES)].all()):
                    m.d.sync += count.eq(count - 1)
                    with m.If(count == 1):
                        m.d.sync += status.eq(LinkStatus.NO_INTERRUPT)
                        m.next = "STATUS"
            with m.State("LINE"):
                with m.If(line[-1]):
                    m.d.sync += status.eq(LinkStatus.DECODE_ERROR)
                    m.next = "STATUS"
                with m.Else():
                    m.d.comb += mover.start.eq(1)
                    m.next = "MOVE"
            with m.State("MOVE"), m.If(mover.done):
                m.d.sync += line.eq(line + 1)
                m.d.sync += self.close.eq(block_end)
                m.next = "LINE"
                with m.If(mover.response[1]):
                    m.d.sync += status.eq(_status(mover.response))
                    m.next = "STATUS"
                with m.Elif(is_[LinkCommand.DIGEST]):
                    m.d.comb += self.sum.eq(1)
                    m.next = "SUM"
                with m.Elif(blocks):
                    m.next = "BLOCK"
                with m.Elif(count == 0):
                    m.next = "STATUS"
            with m.State("SUM"), m.If(self.summed):
                m.next = "BLOCK"
            with m.State("BLOCK"):
                m.next = "LINE"
                with m.If(self.close):
                    m.d.comb += self.restart.eq(1)
                    m.d.sync += count.eq(count - 1)
                    with m.If(is_[LinkCommand.DIGEST]):
                        m.d.sync += self.place.eq(self.place + 1)
                    with m.If(count == 1):
                        m.next = "STATUS"
            with m.State("STATUS"):
                m.d.comb += [self.address.eq(FRAME), self.reply.eq(1)]
                m.next = "REPLY"
            with m.State("REPLY"), m.If(self.sent):
                m.d.sync += self.place.eq(FRAME)
                m.next = "IDLE"
        m.d.comb += [
            self.status.eq(status | REPLY),
            self.bare.eq(writes | (status != LinkStatus.OK)),
        ]
        return m

    def _block_end(self, line: Value, size: Value) -> Value:
        """Whether a block of 2**size units ends with this line."""
        units = log2(BLOCK_BYTES // line_bytes(self.config))
        bits = range(units + MAX_BLOCK_LOG2)
        return Cat(line[bit] | (0 if bit < units else size <= bit - units) for bit in bits).all()


def _status(response: Value) -> Value:
    """Status for an AXI response."""
    bits = Value.cast(response)
    return Mux(bits[1], LinkStatus.SLAVE_ERROR | bits[0], LinkStatus.OK)
