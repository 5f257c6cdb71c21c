"""Write engine: the AXI write master behind all channels that store data."""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2, log2
from hotline.rtl.axi import BURST_INCR, CACHE, PROT, axi_size, axi_write
from hotline.rtl.burst import burst_limit
from hotline.rtl.interfaces import Status, bus_address, windows, write_beat
from hotline.rtl.round_robin import next_grant
from hotline.rtl.small_fifo import SmallFIFO, room_after
from hotline.rtl.stream_register import StreamRegister
from hotline.rtl.window_check import WindowCheck

__all__ = ["WriteEngine", "address_latency", "write_buffer_beats"]

#: Complete bursts that may wait for AW. Enough to hide the pipeline with single-beat bursts.
_QUEUE = 16

#: Beats that may wait on each channel before they go to the common buffer, one a cycle: as many as
#: distributed RAM gives for nothing.
_ENTRY = 16


def address_latency(config: Config) -> int:
    """Cycles from the transfer of a burst's last beat on channel 0 to its AWVALID, when idle."""
    return 5 if config.narrow else 7


def write_buffer_beats(config: Config) -> int:
    """Beats of each channel's part of the buffer, a power of two: two bursts, or the pipeline."""
    return max(_QUEUE, 1 << ceil_log2(2 * burst_limit(config)))


class WriteEngine(wiring.Component):
    """Collects bursts from several channels and writes them, each when it is complete.

    Contract: one beat accepted, one AW and one W beat per cycle, sustained with single-beat
    bursts as well. A burst is queued when its `last` beat arrives; AW is issued only then, so W
    never waits for a channel, and WVALID does not wait for AWREADY. Bursts go out in the order
    in which they became complete, with AWID 0, so B comes in the same order. A channel that
    stalls within a burst holds up nobody else.

    The first burst outside the windows or answered by SLVERR or DECERR sets `fault` and stops
    the engine, as `halt` does: bursts whose AW has not been issued are dropped, everything that
    still arrives is swallowed, issued bursts complete. Reset (only while `idle`) empties it.

    Parameters
    ----------
    config : Config
    channels : int

    Members
    -------
    channel[i] : In stream of write_beat
    windows : In
        Stable while bursts are in the engine.
    halt : In
        Issue nothing more.
    idle : Out
        Nothing buffered (unless stopped) and all B in. A fault stands not later than this.
    row_written : Out
        Pulse: a burst with `row_end` has been answered.
    fault : Out
        Sticky; `fault_code` (BUS_WRITE or ADDR_WINDOW) and `fault_addr`, the start address of
        the burst, go with it.
    axi : Out, axi_write
    """

    def __init__(self, config: Config, channels: int = 7) -> None:
        self._config = config
        self._channels = channels
        self._depth = write_buffer_beats(config)
        super().__init__(
            {
                "channel": In(stream.Signature(write_beat(config))).array(channels),
                "windows": In(windows(config)),
                "halt": In(1),
                "idle": Out(1),
                "row_written": Out(1),
                "fault": Out(1),
                "fault_code": Out(Status),
                "fault_addr": Out(bus_address(config)),
                "axi": Out(axi_write(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        self._select_bits = max(1, ceil_log2(self._channels))
        place_bits = self._select_bits + log2(self._depth)
        self._burst = data.StructLayout(
            {"place": place_bits, "length": 8, "addr": bus_address(config), "row_end": 1}
        )
        # All beats of all channels; the channel number is the upper part of a place.
        m.submodules.beats = self._beats = Memory(
            shape=data.StructLayout({"data": config.data_width, "strobe": config.data_words}),
            depth=1 << place_bits,
            init=[],
            attrs={"no_rw_check": 1},
        )
        m.submodules.queue = self._queue = SyncFIFOBuffered(
            width=data.Layout.cast(self._burst).size, depth=_QUEUE
        )
        # The burst that goes next.
        self._head = queued = stream.Signature(self._burst).create()
        if not config.narrow:
            # The decision to issue does not reach into the queue.
            m.submodules.head = head = StreamRegister(self._burst)
            self._head, queued = head.output, head.input
        m.d.comb += [
            queued.valid.eq(self._queue.r_rdy),
            queued.payload.eq(self._queue.r_data),
            self._queue.r_en.eq(queued.ready),
        ]
        self._stop = Signal()
        self._freed = Signal(self._channels)
        self._issue, self._issued = Signal(), Signal()
        self._occupied = Signal()
        self._outside = Signal()
        self._outside_addr = Signal(bus_address(config), reset_less=True)
        m.d.comb += self._stop.eq(self.halt | self.fault)
        # Whether there is an issue is known late: bursts are counted a cycle later.
        m.d.sync += self._issued.eq(self._issue)
        self._elaborate_input(m)
        self._elaborate_output(m)
        self._elaborate_response(m)
        return m

    def _elaborate_input(self, m: Module) -> None:
        """Chosen channel -> beat memory; on `last` -> burst queue and window check.

        A channel keeps the grant until its burst ends, as long as it can use it: W waits for whole
        bursts, and bursts that grow side by side would all be complete late. That takes a look
        ahead, so beats wait in a FIFO on each channel (on a narrow bus there is none, nor that).
        """
        config, count, depth = self._config, self._channels, self._depth
        grant = Signal(count, init=1)
        room, want, take, stay = Signal(count), Signal(count), Signal(count), Signal(count)
        queue_open = Signal(init=1)
        chosen = Signal(write_beat(config))
        # A cycle late, so that `ready` comes from registers: what is taken meanwhile is not issued.
        swallow = Signal()
        m.d.sync += swallow.eq(self._stop)
        for i, port in enumerate(self.channel):
            channel, more = port, Const(0)
            if not config.narrow:
                entry = SmallFIFO(write_beat(config), _ENTRY)
                m.submodules[f"entry{i}"] = entry
                wiring.connect(m, wiring.flipped(port), entry.input)
                channel, more = entry.output, entry.more
                with m.If(channel.valid):
                    m.d.comb += self._occupied.eq(1)
            open_ = (room[i] & queue_open) | swallow
            m.d.comb += [
                want[i].eq(channel.valid & open_),
                channel.ready.eq(grant[i] & open_),
                take[i].eq(channel.valid & channel.ready & ~swallow),
                stay[i].eq(grant[i] & more & open_ & ~channel.payload.last),
            ]
            with m.If(grant[i]):
                m.d.comb += chosen.eq(channel.payload)
            level = Signal(range(depth + 1), name=f"level{i}")
            m.d.sync += [
                level.eq(level + take[i] - self._freed[i]),
                room[i].eq(room_after(level, depth, take[i], self._freed[i])),
            ]
            with m.If(level != 0):
                m.d.comb += self._occupied.eq(1)
        queued = Signal(range(_QUEUE + 1))
        valid, source = Signal(), Signal(count)
        beat = Signal(write_beat(config), reset_less=True)
        # Bursts are counted two cycles late, so three may come that `queue_open` does not know of.
        at_rest = Signal()
        going_on = Mux(stay.any(), grant, next_grant(grant, want))
        m.d.sync += [
            # At rest the grant goes to channel 0, so that the time from the first beat to AWVALID
            # is always the same there: completion records state it (spec section 7).
            at_rest.eq(self.idle),
            grant.eq(Mux(at_rest & ~want.any(), 1, going_on)),
            queued.eq(queued + (valid & beat.last) - self._issued),
            queue_open.eq(queued <= _QUEUE - 3),
        ]

        m.d.sync += [valid.eq(take.any()), source.eq(grant), beat.eq(chosen)]
        select = Signal(self._select_bits)
        place, first = Signal(log2(depth)), Signal(log2(depth))
        for i in range(count):
            # Where the channel's next beat goes, and where its present burst began.
            next_place = Signal(log2(depth), name=f"place{i}")
            burst_place = Signal(log2(depth), name=f"first{i}")
            with m.If(source[i]):
                m.d.comb += [select.eq(i), place.eq(next_place), first.eq(burst_place)]
            with m.If(valid & source[i]):
                m.d.sync += next_place.eq(place + 1)
                with m.If(beat.last):
                    m.d.sync += burst_place.eq(place + 1)
        write = self._beats.write_port()
        m.d.comb += [
            write.en.eq(valid),
            write.addr.eq(Cat(place, select)),
            write.data.data.eq(beat.data),
            write.data.strobe.eq(beat.strobe),
        ]

        complete, burst = Signal(), Signal(self._burst, reset_less=True)
        length = Signal(log2(depth))  # beats less one, modulo the buffer
        m.d.comb += length.eq(place - first)
        m.d.sync += [
            complete.eq(valid & beat.last),
            burst.place.eq(Cat(first, select)),
            burst.length.eq(length),
            burst.addr.eq(beat.addr),
            burst.row_end.eq(beat.row_end),
        ]
        # The verdict comes two cycles after the burst has entered the queue, when it can leave at
        # the earliest; a bad burst stops the engine.
        m.submodules.check = check = WindowCheck(config)
        checked, outside_addr = Signal(2), Signal(bus_address(config), reset_less=True)
        m.d.comb += [
            self._queue.w_en.eq(complete),
            self._queue.w_data.eq(burst),
            check.windows.eq(self.windows),
            check.addr.eq(burst.addr),
            check.length.eq(burst.length),
            check.enable.eq(1),
            self._outside.eq(checked[1] & ~check.inside),
        ]
        m.d.sync += [
            checked.eq(Cat(complete, checked)),
            outside_addr.eq(burst.addr),
            self._outside_addr.eq(outside_addr),
        ]

    def _elaborate_output(self, m: Module) -> None:
        """Burst queue -> AW register and beat reader -> W register."""
        config, axi = self._config, self.axi
        burst = self._head.payload
        self._room = Signal(init=1)
        reading, fetched, fetched_last = Signal(), Signal(), Signal()
        place, left = Signal(self._burst["place"].shape), Signal(8)
        move_out, move_fetched, read, ends = Signal(), Signal(), Signal(), Signal()
        beats = self._beats.read_port()
        m.d.comb += [
            axi.awsize.eq(axi_size(config)),
            axi.awburst.eq(BURST_INCR),
            axi.awcache.eq(CACHE),
            axi.awprot.eq(PROT),
            move_out.eq(~axi.wvalid | axi.wready),
            move_fetched.eq(~fetched | move_out),
            read.eq(reading & move_fetched),
            ends.eq(left == 0),
            self._issue.eq(
                self._head.valid
                & ~self._stop
                & ~self._outside
                & self._room
                & (~axi.awvalid | axi.awready)
                & (~reading | (move_fetched & ends))
            ),
            self._head.ready.eq(self._issue),
            beats.en.eq(move_fetched),
            beats.addr.eq(place),
        ]
        with m.If(axi.awready):
            m.d.sync += axi.awvalid.eq(0)
        with m.If(read):
            # Only the part of this channel wraps round.
            offset_bits = log2(self._depth)
            m.d.sync += [
                place[:offset_bits].eq(place[:offset_bits] + 1),
                left.eq(left - 1),
                reading.eq(~ends),
            ]
        with m.If(self._issue):
            m.d.sync += [
                axi.awvalid.eq(1),
                axi.awaddr.eq(burst.addr),
                axi.awlen.eq(burst.length),
                reading.eq(1),
                place.eq(burst.place),
                left.eq(burst.length),
            ]
        for i in range(self._channels):
            m.d.sync += self._freed[i].eq(read & (place[-self._select_bits :] == i))
        with m.If(move_fetched):
            m.d.sync += [fetched.eq(read), fetched_last.eq(ends)]
        with m.If(move_out):
            m.d.sync += [
                axi.wvalid.eq(fetched),
                axi.wdata.eq(beats.data.data),
                axi.wstrb.eq(Cat(bit.replicate(4) for bit in beats.data.strobe)),
                axi.wlast.eq(fetched_last),
            ]

    def _elaborate_response(self, m: Module) -> None:
        """B -> the address of its burst, should it have failed."""
        config, axi, limit = self._config, self.axi, self._config.write_outstanding
        m.submodules.flying = flying = Memory(
            shape=data.StructLayout({"addr": config.addr_width, "row_end": 1}),
            depth=max(2, 1 << ceil_log2(limit)),
            init=[],
        )
        write, read = flying.write_port(), flying.read_port()
        burst = self._head.payload
        newest, oldest = Signal(len(write.addr)), Signal(len(write.addr))
        answered, failed = Signal(2), Signal(2)
        outstanding = Signal(range(limit + 1))
        m.d.comb += [
            axi.bready.eq(1),
            write.en.eq(self._issue),
            write.addr.eq(newest),
            write.data.addr.eq(burst.addr),
            write.data.row_end.eq(burst.row_end),
            read.addr.eq(oldest),
            self.row_written.eq(answered[1] & read.data.row_end),
            self.idle.eq((outstanding == 0) & ~self._issued & (self._stop | ~self._occupied)),
        ]
        m.d.sync += [
            newest.eq(newest + self._issue),
            oldest.eq(oldest + answered[0]),
            answered.eq(Cat(axi.bvalid, answered)),
            failed.eq(Cat(axi.bresp[1], failed)),
            outstanding.eq(outstanding + self._issued - answered[1]),
            self._room.eq(room_after(outstanding + self._issued, limit, self._issue, answered[1])),
        ]
        with m.If(~self.fault):
            with m.If(answered[1] & failed[1]):
                m.d.sync += [
                    self.fault.eq(1),
                    self.fault_code.eq(Status.BUS_WRITE),
                    self.fault_addr.eq(read.data.addr),
                ]
            with m.Elif(self._outside):
                m.d.sync += [
                    self.fault.eq(1),
                    self.fault_code.eq(Status.ADDR_WINDOW),
                    self.fault_addr.eq(self._outside_addr),
                ]
