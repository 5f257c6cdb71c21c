"""Serial bridge against its golden model: random traffic, and frames that are not right."""

from __future__ import annotations

import numpy as np
import pytest
from bridge_rig import BridgeRig
from golden_bridge import GoldenBridge
from serial_traffic import bad_request, good_request, rubbish

from hotline.fpga.line_mover import line_bytes
from hotline.gen.config import Config
from hotline.gen.presets import preset
from hotline.gen.serial_link import FLAG, LinkCommand, LinkStatus
from hotline.golden.memory import Memory
from hotline.host.bus_timing import BusTiming
from hotline.host.serial_frames import FrameReader, Reply, Request, encode_frame

BASE, SIZE = 0x2_0000, 0x4000
#: Every write is seen at once: cycles for the longest request that could have slipped in.
SETTLED = 2000

CONFIGS = {
    "tiny": preset("tiny"),
    "ecp5": preset("ecp5"),
    "512": preset("datacenter"),
    "one_beat": preset("tiny").replace(max_burst_beats=1),
}


class _Peer:
    """The registers of the rig, in Python."""

    def __init__(self) -> None:
        self.values = np.zeros(1024, np.uint32)
        self.writes: list[tuple[int, int]] = []

    @staticmethod
    def _response(offset: int) -> int:
        return 3 if offset >= 0xC00 else 2 if offset >= 0x800 else 0

    def read_register(self, offset: int) -> tuple[int, int]:
        return int(self.values[offset // 4]), self._response(offset)

    def write_register(self, offset: int, value: int) -> int:
        self.writes.append((offset, value))
        if self._response(offset) == 0:
            self.values[offset // 4] = value
        return self._response(offset)


class _Pair:
    """Bridge and golden bridge, each over memory and registers of its own."""

    def __init__(self, config: Config, rng: np.random.Generator, seed: int, **options: object):
        content = rng.integers(0, 256, SIZE, np.uint8)
        errors = [
            (BASE + 0x1204, BASE + 0x1204, True, True),
            (BASE + 0x2800, BASE + 0x2900, False, True),
        ]
        self.memories = []
        for _ in range(2):
            memory = Memory([(BASE, content.copy())])
            if options.get("memory_bits", 32) == 32:
                # The top of the address space, where a request may run over the end.
                memory.allocate((1 << 32) - 1024, 1024)
            for first, last, read, write in errors:
                memory.add_error(first, last, read=read, write=write)
            self.memories.append(memory)
        self.peer = _Peer()
        self.golden = GoldenBridge(self.peer, self.memories[1], line_bytes(config))
        self.rig = BridgeRig(config, self.memories[0], seed=seed, **options)
        self.reader = FrameReader()

    def ask(self, content: bytes) -> Reply:
        """Send a frame, compare the answer and all that it did; returns the answer."""
        wanted = self.golden.feed(encode_frame(content))
        assert self.rig.exchange(encode_frame(content), len(wanted)) == wanted
        self.compare()
        (frame,) = self.reader.feed(wanted)
        reply = Reply.unpack(frame)
        assert reply is not None
        return reply

    def compare(self) -> None:
        """Registers and memory are as the golden model says."""
        assert self.rig.register_writes() == self.peer.writes
        self.peer.writes.clear()
        assert np.array_equal(self.rig.registers, self.peer.values)
        for (_, ours), (_, theirs) in zip(*(m.regions for m in self.memories), strict=True):
            assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("name", CONFIGS)
def test_random_requests(name: str, seed: int) -> None:
    """Every answer, every write; a rough memory, a line that stalls, and errors on the bus."""
    rng = np.random.default_rng(seed)
    rough = BusTiming.rough(seed)
    bits = 18 if name == "tiny" else 32
    pair = _Pair(CONFIGS[name], rng, seed, pause=0.3, timing=rough, memory_bits=bits)
    seen: dict[LinkStatus, int] = dict.fromkeys(LinkStatus, 0)
    number = 1
    for step in range(600):
        pair.rig.set_irq(bool(rng.integers(2)))
        irq = bool(rng.integers(2))
        pair.rig.set_irq(irq)
        pair.golden.wait = lambda units, irq=irq: irq
        # One in ten comes again with the number of the one before.
        number = (number + int(rng.random() > 0.1)) % 256
        if step % 8 == 0:
            content = bad_request(rng, number, BASE)
        elif step % 50 == 1:
            place = (1 << 32) - int(rng.integers(1, 9)) * 64
            command = LinkCommand.READ if step % 100 == 1 else LinkCommand.DIGEST
            content = Request(number, command, int(rng.integers(1, 20)), place).pack()
        else:
            content = good_request(rng, number, BASE, SIZE, wait=step % 10 == 0).pack()
        seen[pair.ask(content).status] += 1
    assert all(seen.values()), seen
    pair.rig.close()


def test_a_write_is_carried_out_once(seed: int) -> None:
    """A repeated request that writes gets the first one's status, and does nothing."""
    pair = _Pair(CONFIGS["ecp5"], np.random.default_rng(seed), seed)
    for offset, status in ((0x10, LinkStatus.OK), (0x810, LinkStatus.SLAVE_ERROR)):
        request = Request(7, LinkCommand.WRITE_REGISTER, 1, offset, b"once")
        assert pair.ask(request.pack()).status == status
        for _ in range(2):
            text = encode_frame(request.pack())
            again = pair.rig.exchange(text, 14)
            assert again == pair.golden.feed(text)
            assert not pair.rig.register_writes() and not pair.peer.writes
        read = Request(8, LinkCommand.READ_REGISTER, 1, 0x10)
        assert pair.ask(read.pack()).payload == b"once"
    # After a reset no number is known, 0 neither.
    pair.rig.reset()
    pair.golden._last = None
    write = Request(0, LinkCommand.WRITE, 1, BASE, b"zero")
    assert pair.ask(write.pack()).status == LinkStatus.OK
    pair.rig.close()


def test_reset_in_the_middle(seed: int) -> None:
    """A reset while a request comes in, is carried out, or is answered."""
    rng = np.random.default_rng(seed)
    pair = _Pair(CONFIGS["ecp5"], rng, seed)
    for cycles in range(1, 400, 7):
        request = Request(1, LinkCommand.DIGEST, 3, BASE).pack()
        text = encode_frame(request)
        pair.rig.exchange(text[: 1 + cycles], 0, tail=max(0, cycles - len(text)))
        pair.rig.reset()
        pair.golden._last = None
        pair.ask(Request(1, LinkCommand.WRITE, 5, BASE + 4 * cycles, bytes(range(20))).pack())
    pair.rig.close()


def _fuzz(pair: _Pair, rng: np.random.Generator, frames: int, group: int) -> dict[str, int]:
    """Groups of frames that are not right; after each one a request must be answered."""
    kinds: dict[str, int] = {}
    bursts = pair.rig.write_bursts
    for number in range(frames // group):
        text, made = rubbish(rng, group, BASE, SIZE)
        kinds = {kind: kinds.get(kind, 0) + count for kind, count in made.items()}
        assert pair.rig.exchange(text, tail=SETTLED) == b""
        assert pair.rig.write_bursts == bursts
        pair.compare()
        request = good_request(rng, number % 256, BASE, SIZE)
        # One flag ends what is left of the last frame, as a host does that tries again.
        content = request.pack()
        wanted = pair.golden.feed(bytes([FLAG]) + encode_frame(content))
        assert pair.rig.exchange(bytes([FLAG]) + encode_frame(content), len(wanted)) == wanted
        pair.compare()
        bursts = pair.rig.write_bursts
    print(f"frames: {kinds}")
    return kinds


@pytest.mark.parametrize(
    ("divisor", "frames"),
    [(None, 100_000), (4, 1000)],
    ids=["stream", "uart"],
)
def test_wrong_frames_do_nothing(divisor: int | None, frames: int, seed: int) -> None:
    """Random, damaged and truncated frames: no hang, no answer, no write."""
    rng = np.random.default_rng(seed)
    pair = _Pair(CONFIGS["ecp5"], rng, seed, divisor=divisor)
    kinds = _fuzz(pair, rng, frames, 100)
    assert sum(kinds.values()) == frames and min(kinds.values()) > frames // 8
    pair.rig.close()


def test_rubbish_between_good_frames(seed: int) -> None:
    """Byte by byte: wherever a frame breaks off, the next one is answered."""
    rng = np.random.default_rng(seed)
    pair = _Pair(CONFIGS["tiny"], rng, seed)
    text = encode_frame(Request(3, LinkCommand.WRITE, 2, BASE, b"\x7d\x7eab1234").pack())
    for cut in range(len(text)):
        content = good_request(rng, cut, BASE, SIZE).pack()
        wanted = pair.golden.feed(encode_frame(content))
        found = pair.rig.exchange(text[:cut] + encode_frame(content), len(wanted))
        if cut == len(text) - 1:
            # Only its flag is missing, and that comes with the next frame: it was right after all,
            # and the next one came while it was carried out.
            assert found[:3] == bytes([FLAG, 3, 0x80])
            break
        assert found == wanted
        pair.compare()
    pair.rig.close()
