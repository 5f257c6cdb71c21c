"""Read engine: the AXI read master behind all ports that fetch data."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2, log2
from hotline.rtl.axi import BURST_INCR, CACHE, PROT, axi_read, axi_size
from hotline.rtl.burst import burst_limit
from hotline.rtl.interfaces import (
    BURST_BITS,
    Status,
    bus_address,
    read_beat,
    read_request,
    windows,
)
from hotline.rtl.one_hot import one_hot_select
from hotline.rtl.read_port import ReadPort
from hotline.rtl.round_robin import next_grant
from hotline.rtl.small_fifo import room_after
from hotline.rtl.stream_register import StreamRegister
from hotline.rtl.stream_stage import StreamStage
from hotline.rtl.window_check import WindowCheck

__all__ = ["ReadEngine", "read_buffer_beats"]

#: Cycles from AR to the last R beat that a streaming port's buffer should cover at full rate.
_LATENCY = 256


def read_buffer_beats(config: Config) -> int:
    """Beat-buffer depth of a streaming port, a power of two.

    Enough for one beat per cycle with `_LATENCY` cycles between request and data, unless
    `read_outstanding` is the tighter limit; at least the four bursts that :class:`ReadPort` needs.
    """
    limit = burst_limit(config)
    wanted = min(config.read_outstanding * limit, _LATENCY + 2 * limit)
    return 1 << ceil_log2(max(4 * limit, wanted))


class ReadEngine(wiring.Component):
    """Issues read bursts for several ports and returns their beats in order, port by port.

    Contract: one request accepted, one AR and one R beat per cycle, sustained with single-beat
    bursts as well, at any latency that `read_outstanding` and the port's buffer cover. RREADY is
    constant 1: AR is issued only with buffer space reserved for all its beats, so nothing a
    reader does can stall the bus or another port. Beats appear 9 cycles after the burst's last R
    beat and, whatever the bus reorders between IDs or interleaves, in request order. A port's
    burst also waits for older bursts of the other ports. ARID counts up modulo 2**id_width.

    A request outside the windows is not issued and yields one beat with `fault` and `last` in its
    turn; a burst with SLVERR or DECERR yields all its beats. From a port's first fault on all
    its beats have `fault`, `fault_code` and `fault_addr` keep the first one in request order, and
    further requests are swallowed. After `halt` all requests not yet on AR are swallowed; issued
    bursts complete. Reset (only while `idle`) empties everything; the first AR may come
    2 * read_outstanding (rounded up) cycles later.

    Parameters
    ----------
    config : Config
    ports : list of int
        Beat-buffer depth of each port: a power of two, at least 4 * burst_limit(config).

    Members
    -------
    request[i] : In stream of read_request
    data[i] : Out stream of read_beat
    fault_code[i], fault_addr[i] : Out
        BUS_READ or ADDR_WINDOW with the start address of the burst; OK until then.
    windows : In
        Stable while requests are in the engine.
    halt : In
        Issue nothing more.
    idle : Out
        No request inside, no AR pending, all R beats in.
    axi : Out, axi_read

    Raises
    ------
    ValueError
        A depth that is no power of two or too small.
    """

    def __init__(self, config: Config, ports: list[int]) -> None:
        least = 4 * burst_limit(config)
        for depth in ports:
            if depth < least or depth & (depth - 1):
                raise ValueError(
                    f"a read buffer must be a power of two of at least {least} beats, not {depth}"
                )
        self._config = config
        self._depths = list(ports)
        count = len(ports)
        super().__init__(
            {
                "request": In(stream.Signature(read_request(config))).array(count),
                "data": Out(stream.Signature(read_beat(config))).array(count),
                "fault_code": Out(Status).array(count),
                "fault_addr": Out(bus_address(config)).array(count),
                "windows": In(windows(config)),
                "halt": In(1),
                "idle": Out(1),
                "axi": Out(axi_read(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, count = self._config, len(self._depths)
        # Twice the bursts in flight: those that were overtaken by younger ones keep their place.
        self._slots = max(2, 1 << ceil_log2(2 * config.read_outstanding))
        self._pointer_bits = max(log2(depth) for depth in self._depths) + 1
        self._ports = []
        for i, depth in enumerate(self._depths):
            port = ReadPort(config, depth)
            m.submodules[f"port{i}"] = port
            self._ports.append(port)
            wiring.connect(m, port.data, wiring.flipped(self.data[i]))
            m.d.comb += [
                self.fault_code[i].eq(port.fault_code),
                self.fault_addr[i].eq(port.fault_addr),
            ]
        slot = data.StructLayout({"port": count, "start": self._pointer_bits - 1})
        burst = data.StructLayout({"port": count, "beats": BURST_BITS, "addr": bus_address(config)})
        done = data.StructLayout({"phase": 1, "fault": 1})
        # Of a slot that is being written nothing is used that is read.
        attrs = {"no_rw_check": 1}
        m.submodules.starts = self._starts = Memory(
            shape=slot, depth=self._slots, init=[], attrs=attrs
        )
        m.submodules.bursts = self._bursts = Memory(
            shape=burst, depth=self._slots, init=[], attrs=attrs
        )
        m.submodules.dones = self._dones = Memory(shape=done, depth=self._slots, init=[])
        # Number of the next burst. The bit above the slot number tells the rounds apart.
        self._number_bits = log2(self._slots) + 1
        self._returned = Signal()  # the last R beat of a burst is here
        self._retired = Signal()
        self._clearing = Signal(init=1)
        self._elaborate_issue(m)
        self._elaborate_receive(m)
        self._elaborate_retire(m)
        return m

    def _elaborate_issue(self, m: Module) -> None:
        """Request -> checked by the windows in two stages -> AR register; all move together.

        They begin behind a register slice: so `ready` depends on registers alone, and ARREADY does
        not reach the readers in the same cycle.
        """
        config, count, axi = self._config, len(self._depths), self.axi
        length_bits = (burst_limit(config) - 1).bit_length()
        step, grant = Signal(), Signal(count, init=1)
        open_, want, taken = Signal(count), Signal(count), Signal(count)
        request = Signal(read_request(config))
        start = Signal(self._pointer_bits)
        stage = data.StructLayout(
            {
                "port": count,
                "start": self._pointer_bits,
                "addr": bus_address(config),
                "beats": range(burst_limit(config) + 1),
            }
        )
        m.submodules.entry = entry = (StreamRegister if config.hot_table else StreamStage)(stage)
        new, first = entry.input, entry.output
        second, second_valid = Signal(stage, reset_less=True), Signal()
        third, third_valid = Signal(stage, reset_less=True), Signal()
        beats, length = first.payload.beats, Signal(8)
        second_length = Signal.like(length, reset_less=True)
        third_length = Signal.like(length, reset_less=True)
        for i, port in enumerate(self._ports):
            m.d.comb += [
                port.halt.eq(self.halt),
                open_[i].eq(port.fits | port.blocked),
                want[i].eq(self.request[i].valid & open_[i]),
                self.request[i].ready.eq(grant[i] & open_[i] & new.ready),
                taken[i].eq(grant[i] & want[i] & new.ready),
                port.take.eq(taken[i]),
                port.take_beats.eq(self.request[i].payload.beats),
            ]
            with m.If(grant[i]):
                m.d.comb += [request.eq(self.request[i].payload), start.eq(port.start)]
        m.d.sync += grant.eq(next_grant(grant, want))

        m.submodules.check = check = WindowCheck(config)
        m.d.comb += [
            check.windows.eq(self.windows),
            check.addr.eq(first.payload.addr),
            check.length.eq(length),
            check.enable.eq(step),
            new.valid.eq(taken.any()),
            new.payload.port.eq(grant),
            new.payload.start.eq(start),
            new.payload.addr.eq(request.addr),
            new.payload.beats.eq(request.beats),
            # Less one, without a carry chain before that of the check.
            length.eq(Cat(beats[i] ^ ~beats[:i].any() for i in range(length_bits))),
            first.ready.eq(step),
        ]
        with m.If(step):
            m.d.sync += [
                second.eq(first.payload),
                second_length.eq(length),
                second_valid.eq(first.valid),
                third.eq(second),
                third_length.eq(second_length),
                third_valid.eq(second_valid),
            ]

        drop, refuse, issue, room = Signal(), Signal(), Signal(), Signal()
        blocked = Cat(port.blocked for port in self._ports)
        m.d.comb += [
            drop.eq((blocked & third.port).any()),
            refuse.eq(third_valid & ~drop & ~check.inside),
            issue.eq(third_valid & ~drop & check.inside & room & (~axi.arvalid | axi.arready)),
            step.eq(~third_valid | drop | ~check.inside | issue),
        ]
        for i, port in enumerate(self._ports):
            m.d.comb += [
                port.refuse.eq(refuse & third.port[i]),
                port.refuse_start.eq(third.start),
                port.refuse_addr.eq(third.addr),
            ]

        number = Signal(max(self._number_bits, config.id_width))
        starts, bursts = self._starts.write_port(), self._bursts.write_port()
        m.d.comb += [
            axi.arsize.eq(axi_size(config)),
            axi.arburst.eq(BURST_INCR),
            axi.arcache.eq(CACHE),
            axi.arprot.eq(PROT),
            starts.en.eq(issue),
            starts.addr.eq(number),
            starts.data.port.eq(third.port),
            starts.data.start.eq(third.start),
            bursts.en.eq(issue),
            bursts.addr.eq(number),
            bursts.data.port.eq(third.port),
            bursts.data.beats.eq(third.beats),
            bursts.data.addr.eq(third.addr),
        ]
        with m.If(axi.arready):
            m.d.sync += axi.arvalid.eq(0)
        with m.If(issue):
            m.d.sync += [
                axi.arvalid.eq(1),
                axi.arid.eq(number),
                axi.araddr.eq(third.addr),
                axi.arlen.eq(third_length),
                number.eq(number + 1),
            ]

        # Whether there is room, from what the counters are, so that `issue` need not pass through
        # them. Slots are plenty: there, room may come back a cycle late.
        flying = Signal(range(config.read_outstanding + 1))
        unretired = Signal(range(self._slots + 1))
        issued = Signal()
        m.d.comb += self.idle.eq(
            ~first.valid & ~second_valid & ~third_valid & ~issued & (unretired == 0)
        )
        m.d.sync += [
            # A burst counts a cycle late, too; those that return meanwhile are older.
            flying.eq(flying + issued - self._returned),
            issued.eq(issue),
            unretired.eq(unretired + issued - self._retired),
            room.eq(
                room_after(flying + issued, config.read_outstanding, issue, self._returned)
                & (unretired + issued < self._slots - 1)
                & ~self._clearing
            ),
        ]

    def _elaborate_receive(self, m: Module) -> None:
        """R beat -> oldest burst of its ID -> where that burst's beats go -> port memory."""
        config, axi, count = self._config, self.axi, len(self._depths)
        beat_bits = config.data_width
        valid, last, fault = Signal(3), Signal(3), Signal(3)
        rid = Signal(config.id_width)
        beat = [Signal(beat_bits, name=f"beat{i}", reset_less=True) for i in range(3)]
        number = [Signal(self._number_bits, name=f"number{i}") for i in range(3)]
        m.d.comb += axi.rready.eq(1)
        m.d.sync += [
            valid.eq(Cat(axi.rvalid, valid)),
            last.eq(Cat(axi.rlast, last)),
            rid.eq(axi.rid),
            Cat(*beat).eq(Cat(axi.rdata, *beat)),
            number[1].eq(number[0]),
            number[2].eq(number[1]),
        ]

        # Per ID: how many of its bursts have come back, and where the present one is.
        ids = range(1 << config.id_width)
        round_bits = self._number_bits - config.id_width
        offset_bits = (burst_limit(config) - 1).bit_length()
        here = Signal(1 << config.id_width)  # rid, one-hot
        m.d.sync += here.eq(Cat(axi.rid == i for i in ids))
        first_fault = Signal()
        m.d.sync += first_fault.eq(axi.rresp[1])
        failed = Signal(1 << config.id_width)
        failed_before = failed.bit_select(rid, 1)
        m.d.comb += [
            self._returned.eq(valid[0] & last[0]),
            fault[0].eq(first_fault | failed_before),
        ]
        m.d.sync += fault[1:].eq(fault[:2])
        for i in ids:
            with m.If(valid[0] & here[i]):
                m.d.sync += failed[i].eq(fault[0] & ~last[0])
        if round_bits > 0:
            rounds = [Signal(round_bits, name=f"round{i}") for i in ids]
            m.d.comb += number[0].eq(Cat(rid, one_hot_select(here, rounds)))
            for i in ids:
                m.d.sync += rounds[i].eq(rounds[i] + (self._returned & here[i]))
        else:
            m.d.comb += number[0].eq(rid)
        offset: Value = Signal(max(1, offset_bits))
        if offset_bits > 0:
            offsets = [Signal(offset_bits, name=f"offset{i}") for i in ids]
            m.d.sync += offset.eq(one_hot_select(here, offsets))
            for i in ids:
                with m.If(valid[0] & here[i]):
                    m.d.sync += offsets[i].eq(Mux(last[0], 0, offsets[i] + 1))

        starts = self._starts.read_port()
        target = Signal(count)
        place = Signal(self._pointer_bits - 1)
        m.d.comb += starts.addr.eq(number[0])
        m.d.sync += [
            target.eq(starts.data.port & valid[1].replicate(count)),
            place.eq(starts.data.start + offset),
        ]
        for i, port in enumerate(self._ports):
            m.d.comb += [
                port.fill.eq(target[i]),
                port.fill_addr.eq(place),
                port.fill_data.eq(beat[2]),
                port.fill_last.eq(last[2]),
            ]

        # Phase = round: what a slot held in the round before reads as "not yet".
        clear = Signal(range(self._slots))
        dones = self._dones.write_port()
        m.d.comb += [
            dones.en.eq((valid[2] & last[2]) | self._clearing),
            dones.addr.eq(Mux(self._clearing, clear, number[2])),
            dones.data.phase.eq(~number[2][-1] & ~self._clearing),
            dones.data.fault.eq(fault[2]),
        ]
        with m.If(self._clearing):
            m.d.sync += clear.eq(clear + 1)
            with m.If(clear == self._slots - 1):
                m.d.sync += self._clearing.eq(0)

    def _elaborate_retire(self, m: Module) -> None:
        """Oldest burst complete -> its port and length -> the port's readable end moves."""
        oldest, oldest_next = Signal(self._number_bits), Signal(self._number_bits)
        dones, bursts = self._dones.read_port(), self._bursts.read_port()
        retire, fault = Signal(2), Signal(2)
        # A register of its own: block RAM alone takes half of the cycle.
        burst = Signal(bursts.data.shape(), reset_less=True)
        m.d.comb += [
            self._retired.eq((dones.data.phase != oldest[-1]) & ~self._clearing),
            oldest_next.eq(Mux(self._retired, oldest + 1, oldest)),
            dones.addr.eq(oldest_next),
            bursts.addr.eq(oldest),
        ]
        m.d.sync += [
            oldest.eq(oldest_next),
            retire.eq(Cat(self._retired, retire)),
            fault.eq(Cat(dones.data.fault, fault)),
            burst.eq(bursts.data),
        ]
        for i, port in enumerate(self._ports):
            m.d.comb += [
                port.retire.eq(retire[1] & burst.port[i]),
                port.retire_beats.eq(burst.beats),
                port.retire_addr.eq(burst.addr),
                port.retire_fault.eq(fault[1]),
            ]
