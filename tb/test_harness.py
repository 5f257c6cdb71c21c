"""The harness itself: a stream through a small component, and faults that it must notice."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from harness.build import run_bench
from harness.streams import pack, unpack
from harness.vectors import VectorModel

from hotline.gen.presets import preset
from hotline.rtl.interfaces import Status, hot_request


def layout() -> data.StructLayout:
    """A payload of every kind: array, signed, wider than a machine word, one bit."""
    return data.StructLayout(
        {"key": data.ArrayLayout(9, 3), "level": signed(3), "wide": 128, "last": 1}
    )


class Slice(wiring.Component):
    """One register stage. `faulty` lets the payload change while it waits."""

    def __init__(self, faulty: bool = False) -> None:
        self.faulty = faulty
        port = stream.Signature(layout())
        super().__init__({"i": In(port), "o": Out(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(self.o.ready | ~self.o.valid)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
        if self.faulty:
            with m.If(self.o.valid & ~self.o.ready):
                m.d.sync += self.o.payload.key[0].eq(self.o.payload.key[0] + 1)
        return m


def test_streams_pass_in_order_at_full_rate() -> None:
    run_bench(
        Slice(),
        "slice",
        "cocotb_harness",
        config=preset("ecp5"),
        testcase=["passes_everything", "reset_in_mid_traffic"],
    )


def test_random_initial_state() -> None:
    run_bench(
        Slice(),
        "slice",
        "cocotb_harness",
        config=preset("ecp5"),
        testcase="reset_in_mid_traffic",
        arguments=["--x-initial", "unique"],
        plusargs=["+verilator+rand+reset+2"],
    )


def test_a_changing_payload_fails_the_bench() -> None:
    with pytest.raises(AssertionError, match=r"1 of 1 tests failed \(seed 5\)"):
        run_bench(Slice(True), "slice", "cocotb_harness", testcase="broken_on_purpose", seed=5)


def test_pack_and_unpack_are_inverse() -> None:
    value = {"key": [1, 2, 511], "level": -3, "wide": 1 << 127, "last": 1}
    bits = pack(layout(), value)
    assert bits == 1 | 2 << 9 | 511 << 18 | 5 << 27 | 1 << (30 + 127) | 1 << 158
    assert unpack(layout(), bits) == value
    assert pack(Status, Status.LENGTHS) == 8
    request = hot_request(preset("ecp5"))
    nested = unpack(request, pack(request, {"op": 2, "group": {"key": [7, 9]}}))
    assert nested["op"] == 2 and nested["group"]["key"] == [7, 9]


@pytest.mark.parametrize(
    ("value", "message"),
    [({"keys": 1}, "no field 'keys'"), ({"last": 2}, "2 does not fit into 1 bits")],
)
def test_pack_refuses_what_does_not_fit(value: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pack(layout(), value)


class Accumulator(wiring.Component):
    """Adds `i` up."""

    def __init__(self, bits: int) -> None:
        super().__init__({"i": In(bits), "next": Out(bits), "total": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.next.eq(self.total + self.i)
        m.d.sync += self.total.eq(self.next)
        return m


def test_vectors() -> None:
    """Outputs belong to the cycle of the inputs, and every run starts afresh."""
    model = VectorModel(Accumulator(32), "accumulator")
    values = np.random.default_rng(1).integers(0, 1 << 32, 1000)
    for _ in range(2):
        result = model.run(i=values)
        total = np.cumsum(values) & 0xFFFFFFFF
        assert np.array_equal(result["next"], total)
        assert np.array_equal(result["total"], np.concatenate([[0], total[:-1]]))
    with pytest.raises(ValueError, match=r"^i has more than 32 bits$"):
        VectorModel(Accumulator(33), "accumulator")
