"""Bridge from a byte stream to registers and memory."""

from __future__ import annotations

from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.crc import Processor
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.fpga.frame_buffer import BUFFER_WORDS
from hotline.fpga.frame_decoder import FrameDecoder
from hotline.fpga.frame_encoder import FrameEncoder
from hotline.fpga.serial_executor import SerialExecutor
from hotline.gen.config import Config
from hotline.rtl.axi import axi_read, axi_write
from hotline.rtl.axi_lite import AxiLiteSignature

__all__ = ["SerialBridge"]

#: With fewer there are not enough for a register's address, and for the time of WAIT.
_LEAST_BITS = 17


class SerialBridge(wiring.Component):
    """Carries out what frames on a byte stream ask for, and answers each one.

    The frames are those of :mod:`hotline.gen.serial_link`. Nothing is touched before the CRC of
    the whole frame has proved right. A frame that is not right is dropped, without an answer:
    who sent it will send it again. The link is half-duplex, and what comes while a request is
    carried out or answered is dropped too; so one buffer and one CRC unit do for both directions.
    No state waits for the line, except to send a reply, so a frame that breaks off blocks nothing.
    Reset: waits for a flag; a reply that was being sent breaks off.

    Parameters
    ----------
    config : Config
        Width of the bus, and longest burst.
    memory_bits : int
        Addresses of more bits are answered DECODE_ERROR, without a look at the bus. As many as
        the memory has are enough, and take less logic than the default of 32; at least 17.

    Members
    -------
    rx : In(stream)
        From the host; always ready.
    tx : Out(stream)
        To the host.
    irq : In(1)
        Interrupt of the accelerator.
    axil : Out(AXI4-Lite)
        Master for the accelerator's registers.
    axi_r, axi_w : Out(AXI4)
        Master for memory. Aligned bursts of at most 64 bytes and at most `max_burst_beats`, one
        read or one write at a time, ID 0.
    """

    def __init__(self, config: Config, memory_bits: int = 32) -> None:
        if not _LEAST_BITS <= memory_bits <= 32:
            raise ValueError(f"memory_bits must be from {_LEAST_BITS} to 32, not {memory_bits}")
        self.config = config
        self.memory_bits = memory_bits
        super().__init__(
            {
                "rx": In(stream.Signature(8)),
                "tx": Out(stream.Signature(8)),
                "irq": In(1),
                "axil": Out(AxiLiteSignature()),
                "axi_r": Out(axi_read(config)),
                "axi_w": Out(axi_write(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decoder = decoder = FrameDecoder()
        m.submodules.executor = executor = SerialExecutor(self.config, self.memory_bits)
        m.submodules.encoder = encoder = FrameEncoder(executor.line_words)
        crc = Processor(CRC32_ISO_HDLC(data_width=8))
        # Not its input `start`, which would put a multiplexer before every bit.
        restart = Signal()
        m.submodules.crc = ResetInserter(restart)(crc)
        # Read and write meet at no address whose word is used, so no bypass is wanted.
        m.submodules.buffer = buffer = Memory(
            shape=32,
            depth=BUFFER_WORDS,
            init=[],
            attrs={"no_rw_check": 1, "ram_style": "block"},
        )
        write, read = buffer.write_port(granularity=8), buffer.read_port()

        connect(m, flipped(self.rx), decoder.input)
        connect(m, encoder.output, flipped(self.tx))
        connect(m, executor.axil, flipped(self.axil))
        connect(m, executor.axi_r, flipped(self.axi_r))
        connect(m, executor.axi_w, flipped(self.axi_w))
        m.d.comb += [
            decoder.listen.eq(executor.idle),
            decoder.match.eq(crc.match_detected),
            executor.begin.eq(decoder.done),
            executor.last.eq(decoder.place[2:]),
            executor.irq.eq(self.irq),
            executor.word.eq(read.data),
            executor.summed.eq(encoder.done),
            executor.sent.eq(encoder.done),
            encoder.send.eq(executor.reply),
            encoder.end.eq(executor.place),
            encoder.bare.eq(executor.bare),
            encoder.sum.eq(executor.sum),
            encoder.close.eq(executor.close),
            encoder.word.eq(read.data),
            encoder.crc.eq(crc.crc),
            restart.eq(decoder.restart | executor.restart | encoder.restart),
            crc.valid.eq(decoder.valid | encoder.valid),
            crc.data.eq(Mux(executor.idle, decoder.data, encoder.data)),
            read.en.eq(~encoder.busy | encoder.fetch),
            read.addr.eq(Mux(encoder.busy, encoder.address, executor.place)),
        ]
        # Words from the bus, and bytes from the line, of the status and of a CRC.
        byte, single = Signal(8), Signal()
        m.d.comb += [
            byte.eq(Mux(executor.reply, executor.status, ~encoder.data)),
            single.eq(executor.reply | encoder.check),
            write.addr.eq(executor.address),
            write.data.eq(Mux(executor.idle | single, byte.replicate(4), executor.data)),
            write.en.eq(executor.store.replicate(4)),
        ]
        with m.If(executor.idle):
            m.d.comb += [
                byte.eq(decoder.data),
                write.addr.eq(decoder.place[2:]),
                write.en.eq(decoder.valid << decoder.place[:2]),
            ]
        with m.Elif(single):
            m.d.comb += write.en.eq(Mux(executor.reply, 0b0010, 1 << encoder.lane))
        return m
