"""Random AXI4 traffic in Amaranth's simulator, checked against a copy of the memory."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np

__all__ = ["Master"]

_PAGE = 4096
_SAMPLES = (
    "arvalid", "arready", "rvalid", "rready", "rdata", "rid", "rresp", "rlast",
)  # fmt: skip
_WRITE_SAMPLES = ("awvalid", "awready", "wvalid", "wready", "bvalid", "bready", "bid", "bresp")
_OKAY, _DECERR = 0, 3


class Master:
    """One AXI master: rounds of write bursts, then of read bursts, several in flight.

    Parameters
    ----------
    axi_r, axi_w : interfaces
        As the slave sees them.
    first, size : int
        Bytes that this master has for itself.
    outside : int
        An address above the memory, where bursts must get DECERR.
    seed : int
        For everything that is random.
    longest : int
        Beats of the longest burst.
    pause : float
        Probability, per cycle and channel, of offering nothing or not being ready.
    rounds : int
        How much to do.
    """

    def __init__(
        self,
        axi_r: Any,
        axi_w: Any,
        *,
        first: int,
        size: int,
        outside: int,
        seed: int,
        longest: int,
        pause: float,
        rounds: int,
    ) -> None:
        self.axi_r, self.axi_w, self.first, self.outside = axi_r, axi_w, first, outside
        self.rng, self.longest, self.pause, self.rounds = (
            random.Random(seed),
            longest,
            pause,
            rounds,
        )
        self.bytes = len(axi_w.wdata) // 8
        self.ids = 1 << len(axi_w.awid)
        self.copy = np.zeros(size, np.uint8)
        self.known = np.zeros(size, bool)
        self.bursts = self.beats = self.decode_errors = 0
        self.done = False

    async def run(self, ctx: Any) -> None:
        """The process for `Simulator.add_process`."""
        read, write, rng = self.axi_r, self.axi_w, self.rng
        reads: deque[tuple[int, int, int]] = deque()
        asked: dict[int, deque[tuple[int, int]]] = {}
        writes: deque[tuple[int, int, list[tuple[int, int]]]] = deque()
        beats: deque[tuple[int, int, bool]] = deque()
        expected: dict[int, deque[int]] = {}
        flying = 0
        signals = [getattr(read, name) for name in _SAMPLES]
        signals += [getattr(write, name) for name in _WRITE_SAMPLES]
        async for _, _, *values in ctx.tick().sample(*signals):
            now = dict(zip((*_SAMPLES, *_WRITE_SAMPLES), values, strict=True))
            # What went through at this edge.
            if now["arvalid"] and now["arready"]:
                ctx.set(read.arvalid, 0)
                now["arvalid"] = 0
                addr, id_, count = reads.popleft()
                places = [(addr + i * self.bytes, i == count - 1) for i in range(count)]
                asked.setdefault(id_, deque()).extend(places)
            if now["rvalid"] and now["rready"]:
                addr, last = asked[now["rid"]].popleft()
                self._check(addr, now["rdata"], now["rresp"])
                assert now["rlast"] == last
                self.beats += 1
                flying -= last
            if now["awvalid"] and now["awready"]:
                ctx.set(write.awvalid, 0)
                now["awvalid"] = 0
                addr, id_, items = writes.popleft()
                beats.extend((*item, i == len(items) - 1) for i, item in enumerate(items))
                answer = _DECERR if addr >= self.outside else _OKAY
                expected.setdefault(id_, deque()).append(answer)
            if now["wvalid"] and now["wready"]:
                ctx.set(write.wvalid, 0)
                now["wvalid"] = 0
                self.beats += 1
            if now["bvalid"] and now["bready"]:
                assert now["bresp"] == expected[now["bid"]].popleft()
                flying -= 1

            # A new round when nothing is in flight.
            if flying == 0:
                if self.bursts >= self.rounds:
                    self.done = True
                    return
                count = rng.randrange(1, 6)
                flying = count
                self.bursts += count
                for _ in range(count):
                    addr, length = self._burst()
                    id_ = rng.randrange(self.ids)
                    if self.bursts // 5 % 2:
                        reads.append((addr, id_, length))
                    else:
                        writes.append((addr, id_, self._content(addr, length)))

            # What to offer in the next cycle; an offer stands until it is taken.
            if not now["arvalid"] and reads and rng.random() >= self.pause:
                addr, id_, count = reads[0]
                ctx.set(read.araddr, addr)
                ctx.set(read.arid, id_)
                ctx.set(read.arlen, count - 1)
                ctx.set(read.arvalid, 1)
            if not now["awvalid"] and writes and rng.random() >= self.pause:
                addr, id_, items = writes[0]
                ctx.set(write.awaddr, addr)
                ctx.set(write.awid, id_)
                ctx.set(write.awlen, len(items) - 1)
                ctx.set(write.awvalid, 1)
            if not now["wvalid"] and beats and rng.random() >= self.pause:
                value, strobe, last = beats.popleft()
                ctx.set(write.wdata, value)
                ctx.set(write.wstrb, strobe)
                ctx.set(write.wlast, last)
                ctx.set(write.wvalid, 1)
            ctx.set(read.rready, rng.random() >= self.pause)
            ctx.set(write.bready, rng.random() >= self.pause)

    def _burst(self) -> tuple[int, int]:
        """Address and beats of a burst: mostly in the region, sometimes outside the memory."""
        rng, limit = self.rng, len(self.copy) // self.bytes
        beat = rng.randrange(limit)
        if rng.random() < 0.5:
            # Often the same few pages, and often their ends.
            beat = rng.randrange(0, limit, _PAGE // self.bytes // 4) - rng.randrange(3) & limit - 1
        addr = beat * self.bytes
        room = min(_PAGE - addr % _PAGE, len(self.copy) - addr) // self.bytes
        count = min(room, rng.randrange(1, self.longest + 1))
        if rng.random() < 0.1:
            self.decode_errors += 1
            return self.outside + addr, count
        return self.first + addr, count

    def _content(self, addr: int, count: int) -> list[tuple[int, int]]:
        """Random beats and strobes; the copy changes at once, for nothing else is in flight."""
        items = []
        for i in range(count):
            value = self.rng.getrandbits(8 * self.bytes)
            strobe = self.rng.choice(((1 << self.bytes) - 1, self.rng.getrandbits(self.bytes)))
            items.append((value, strobe))
            if addr < self.outside:
                place = addr - self.first + i * self.bytes
                chosen = [bool(strobe >> b & 1) for b in range(self.bytes)]
                data = np.frombuffer(value.to_bytes(self.bytes, "little"), np.uint8)
                self.copy[place : place + self.bytes][chosen] = data[chosen]
                self.known[place : place + self.bytes] |= chosen
        return items

    def _check(self, addr: int, value: int, response: int) -> None:
        if addr >= self.outside:
            assert response == _DECERR
            return
        assert response == _OKAY
        place = slice(addr - self.first, addr - self.first + self.bytes)
        found = np.frombuffer(int(value).to_bytes(self.bytes, "little"), np.uint8)
        known = self.known[place]
        assert (found[known] == self.copy[place][known]).all(), f"wrong data at {addr:#x}"
