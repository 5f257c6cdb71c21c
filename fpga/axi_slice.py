"""Register slices on all five channels between an AXI master and what answers it."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hotline.fpga.axi_channels import (
    FROM_SLAVE,
    READ,
    WRITE,
    read_port,
    sink,
    source,
    write_port,
)
from hotline.gen.config import Config
from hotline.rtl.stream_register import StreamRegister

__all__ = ["AxiSlice"]


class AxiSlice(wiring.Component):
    """Ends every combinational path of an AXI port, so that neither side slows the other down.

    Latency: a cycle on each channel. Throughput: a beat a cycle on each. Reset empties it, so
    both sides must be reset with it.

    Parameters
    ----------
    config : Config
        Of the accelerator.

    Members
    -------
    master_r, master_w : In
        From the master.
    slave_r, slave_w : Out
        To the slave.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "master_r": In(read_port(config)),
                "master_w": In(write_port(config)),
                "slave_r": Out(read_port(config)),
                "slave_w": Out(write_port(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = ((READ, self.master_r, self.slave_r), (WRITE, self.master_w, self.slave_w))
        for channels, master, slave in ports:
            for channel in channels:
                ends = (slave, master) if channel in FROM_SLAVE else (master, slave)
                items = source(m, ends[0], channel)
                m.submodules[channel] = register = StreamRegister(items.payload.shape())
                wiring.connect(m, items, register.input)
                sink(m, ends[1], channel, register.output)
        return m
