"""Addresses of slots in the hot buffers of the GPUs (spec section 8, HOT_BASE and HOT_STRIDE)."""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config, ceil_log2
from hotline.rtl.interfaces import HotField, bus_address, hot_write

__all__ = ["SLOT_GRAIN", "SlotAddress", "slot_address_bits"]

#: log2 of what slots are aligned to, in bytes: bases and stride are multiples of it.
SLOT_GRAIN = 6

#: Bits of the stride that one 18x18 multiplier takes.
_LOW_BITS = 18


def slot_address_bits(config: Config) -> int:
    """Bits of a slot's address, without those that are always 0."""
    return bus_address(config).width - SLOT_GRAIN


class SlotAddress(wiring.Component):
    """HOT_BASE of a GPU + slot * HOT_STRIDE, one a cycle.

    A pipeline without valid or ready: `address` shows what `slot` and `gpu` were 5 cycles before.
    The registers are kept here, written through `hot_write` (always ready), never while a command
    runs. Reset leaves all as it is; what lies beyond the address space is in no window.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    hot_write : In
        Write-through of the HOT_* registers.
    slot : In
        Slot of the hot table.
    gpu : In
        Whose hot buffer.
    address : Out
        Its address in units of 64 bytes.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "hot_write": In(stream.Signature(hot_write(config))),
                "slot": In(config.slot_bits),
                "gpu": In(range(max(2, config.gpus))),
                "address": Out(slot_address_bits(config)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        config = self.config
        near_bits = config.addr_width - SLOT_GRAIN
        write = self.hot_write
        value = write.payload.value
        # Like the memories it outlives a reset: the reset of a command does not change registers.
        stride = Signal(32 - SLOT_GRAIN, reset_less=True)
        m.d.comb += write.ready.eq(1)
        with m.If(write.valid & (write.payload.field == HotField.STRIDE)):
            m.d.sync += stride.eq(value[SLOT_GRAIN:])

        gpu = self.gpu
        for stage in range(1, 4):
            later = Signal.like(gpu, name=f"gpu_{stage}")
            m.d.sync += later.eq(gpu)
            gpu = later
        bases = []
        for field, source in (
            (HotField.BASE_LO, value[SLOT_GRAIN:]),
            (HotField.BASE_HI, value[: config.addr_width - 32]),
        ):
            if len(source) == 0:
                continue
            base = memory.Memory(
                shape=len(source),
                depth=max(2, 1 << ceil_log2(config.gpus)),
                init=[],
                attrs={"no_rw_check": 1},
            )
            m.submodules[f"hot_{field.name.lower()}"] = base
            port, read = base.write_port(), base.read_port()
            m.d.comb += [
                port.addr.eq(write.payload.gpu),
                port.data.eq(source),
                port.en.eq(write.valid & (write.payload.field == field)),
                read.addr.eq(gpu),
            ]
            bases.append(read.data)

        slot_1, slot_2 = Signal(config.slot_bits), Signal(config.slot_bits)
        low, high = stride[:_LOW_BITS], stride[_LOW_BITS:]
        product_low = Signal(config.slot_bits + len(low))
        product_high = Signal(config.slot_bits + len(high))
        product = product_low + (product_high << _LOW_BITS)
        near, far = Signal(near_bits), Signal()
        m.d.sync += [
            slot_1.eq(self.slot),
            slot_2.eq(slot_1),
            product_low.eq(slot_2 * low),
            product_high.eq(slot_2 * high),
            near.eq(product),
            far.eq(product[near_bits:].any()),
            # Beyond the address space there is only "beyond": the top bit stays set.
            self.address.eq((near + Cat(*bases)) | (far << near_bits)),
        ]
        return m
