"""Reads rows that lie anywhere, and delivers them aligned for their destination."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hotline.gen.config import Config, ceil_log2, log2
from hotline.rtl.aligner import Aligner, aligned_beat, offset_bits, row_shape
from hotline.rtl.block_fifo import BlockFIFO
from hotline.rtl.interfaces import bus_address, read_beat, read_request
from hotline.rtl.register_slice import register_slice
from hotline.rtl.row_bursts import RowBursts

__all__ = ["RowReader", "row_read", "rows_in_flight"]


def rows_in_flight(config: Config) -> int:
    """Rows between request and data: twice the bursts in flight, so that reads never wait."""
    return max(4, 1 << ceil_log2(2 * config.read_outstanding))


def row_read(config: Config) -> data.StructLayout:
    """A row to read: `words` (at least 1) from word address `source` on; perhaps up to a beat more
    than the longest row.

    `dest`: position of its first word within its first destination beat. Without `move` there is
    nothing to read, but the end of the list (`last`) or a bad entry (`fault`) to pass on in order.
    """
    return data.StructLayout(
        {
            "source": bus_address(config).width - 2,
            "dest": offset_bits(config),
            "words": (config.max_row_bytes // 4 + config.data_words - 1).bit_length(),
            "move": 1,
            "last": 1,
            "fault": 1,
        }
    )


class RowReader(wiring.Component):
    """Requests the beats that rows occupy, and realigns the data.

    One row a cycle where a row is one beat; else one beat a cycle. The requests run ahead of the
    data by up to :func:`rows_in_flight` rows. Reset empties it; it must then not get the data of
    earlier requests.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    early : In
        The sources of all rows are aligned to the bus; else their `dest` is 0. Stable while there
        are rows inside.
    rows : In
        Rows to read.
    request : Out
        Bursts for the read engine.
    data : In
        Their data.
    output : Out
        Destination beats.
    read_fault, index_fault : Out
        As for :class:`Aligner`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "early": In(1),
                "rows": In(stream.Signature(row_read(config))),
                "request": Out(stream.Signature(read_request(config))),
                "data": In(stream.Signature(read_beat(config))),
                "output": Out(stream.Signature(aligned_beat(config))),
                "read_fault": Out(1),
                "index_fault": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        words = config.data_words
        shift = log2(words)
        layout = row_shape(config)
        m.submodules.bursts = bursts = RowBursts(config)
        m.submodules.aligner = aligner = Aligner(config)
        m.submodules.shapes = shapes = BlockFIFO(layout, rows_in_flight(config))

        row = self.rows.payload
        source = row.source[:shift]
        dest = row.dest[:shift]
        final = Signal(len(row.words) + 1)
        source_beats, dest_beats = (Signal(layout["beats"].shape), Signal(layout["beats"].shape))
        m.d.comb += [
            final.eq(dest + row.words - 1),
            source_beats.eq(((source + row.words - 1) >> shift) + 1),
            dest_beats.eq((final >> shift) + 1),
        ]
        # One register stage: the sums above, then the two queues.
        valid, go = Signal(), Signal()
        shape = Signal(layout, reset_less=True)
        start = Signal(len(bursts.spans.payload.start), reset_less=True)
        m.d.comb += self.rows.ready.eq(~valid | go)
        with m.If(self.rows.ready):
            m.d.sync += [
                valid.eq(self.rows.valid),
                start.eq(row.source >> shift),
                shape.source.eq(source),
                shape.dest.eq(dest),
                shape.final.eq(final[:shift]),
                shape.beats.eq(source_beats),
                shape.tail.eq((source_beats != dest_beats) == self.early),
                shape.move.eq(row.move),
                shape.last.eq(row.last),
                shape.fault.eq(row.fault),
            ]
        m.d.comb += [
            bursts.spans.valid.eq(valid & shape.move & shapes.input.ready),
            bursts.spans.payload.start.eq(start),
            bursts.spans.payload.beats.eq(shape.beats),
            go.eq(shapes.input.ready & (~shape.move | bursts.spans.ready)),
            shapes.input.valid.eq(valid & go),
            shapes.input.payload.eq(shape),
        ]
        connect(m, bursts.requests, flipped(self.request))
        m.d.comb += [
            self.read_fault.eq(aligner.read_fault),
            self.index_fault.eq(aligner.index_fault),
        ]
        # The read of block RAM ends in this slice, and the stall of the aligner.
        m.submodules.next_shape = next_shape = register_slice(config, layout)
        connect(m, shapes.output, next_shape.input)
        connect(m, next_shape.output, aligner.shapes)
        connect(m, flipped(self.data), aligner.beats)
        m.d.comb += aligner.early.eq(self.early)
        # And here the stall of whoever takes the beats.
        m.submodules.next_beat = next_beat = register_slice(config, aligned_beat(config))
        connect(m, aligner.output, next_beat.input)
        connect(m, next_beat.output, flipped(self.output))
        return m
