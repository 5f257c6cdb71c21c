"""A ring of registers around a block, so that it can be placed and routed without pins.

The accelerator has more ports than a package has pins. Every port is registered, so all paths that
the timing report shows begin and end at a register, as they would inside a system on chip.
"""

from __future__ import annotations

from amaranth import Cat, ClockDomain, ClockSignal, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RegisteredPorts"]


class RegisteredPorts(wiring.Component):
    """Shifts the inputs of `block` in and its outputs out, one bit a cycle.

    Parameters
    ----------
    block : wiring.Component
        Any block; ports called `aclk` and `aresetn` are driven from the clock and the reset.

    Members
    -------
    clk, rst, shift_in, capture : In(1)
        `capture` loads the outputs of the block, a cycle ago, instead of shifting.
    shift_out : Out(1)
    """

    def __init__(self, block: wiring.Component) -> None:
        self.block = block
        super().__init__(
            {
                "clk": In(1),
                "rst": In(1),
                "shift_in": In(1),
                "capture": In(1),
                "shift_out": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.ring = ClockDomain(reset_less=True)
        # A reset from a pin reaches thousands of flip-flops; let it come from a register.
        reset = Signal()
        m.d.ring += reset.eq(self.rst)
        m.d.comb += ClockSignal("ring").eq(self.clk)
        if "aclk" not in self.block.signature.members:
            m.domains.sync = ClockDomain()
            m.d.comb += [ClockSignal().eq(self.clk), ResetSignal().eq(reset)]
        m.submodules.block = block = self.block

        inputs: list[Value] = []
        outputs: list[Value] = []
        for path, member, value in block.signature.flatten(block):
            if path[-1] == "aclk":
                m.d.comb += value.eq(self.clk)
            elif path[-1] == "aresetn":
                m.d.comb += value.eq(~reset)
            else:
                (inputs if member.flow is In else outputs).append(Value.cast(value))
        chain_in = Signal(sum(len(value) for value in inputs))
        chain_out = Signal(sum(len(value) for value in outputs))
        # No logic but that of the block stands before a register.
        captured = Signal.like(chain_out)
        m.d.ring += [
            chain_in.eq(Cat(self.shift_in, chain_in[:-1])),
            captured.eq(Cat(*outputs)),
            chain_out.eq(Mux(self.capture, captured, Cat(chain_in[-1], chain_out[:-1]))),
        ]
        m.d.comb += [Cat(*inputs).eq(chain_in), self.shift_out.eq(chain_out[-1])]
        return m
