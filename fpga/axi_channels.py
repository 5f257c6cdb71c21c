"""AXI4 ports inside a board: signatures with a chosen ID width, and their channels as streams."""

from __future__ import annotations

from amaranth import Module, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.axi import axi_read, axi_write

__all__ = [
    "FROM_SLAVE",
    "READ",
    "WRITE",
    "read_port",
    "sink",
    "source",
    "stream_for",
    "write_port",
]

#: Signals of each channel beside valid and ready.
_FIELDS = {
    "ar": ("addr", "id", "len", "size", "burst", "cache", "prot"),
    "r": ("data", "id", "resp", "last"),
    "aw": ("addr", "id", "len", "size", "burst", "cache", "prot"),
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
}
#: Channels of a read port and of a write port.
READ, WRITE = ("ar", "r"), ("aw", "w", "b")
#: Channels that a slave sends.
FROM_SLAVE = ("r", "b")


def read_port(config: Config, id_width: int | None = None) -> wiring.Signature:
    """AR and R of a master, with IDs of `id_width` bits (default: those of `config`)."""
    return _with_ids(axi_read(config), id_width, arid=Out, rid=In)


def write_port(config: Config, id_width: int | None = None) -> wiring.Signature:
    """AW, W and B of a master, with IDs of `id_width` bits (default: those of `config`)."""
    return _with_ids(axi_write(config), id_width, awid=Out, bid=In)


def _with_ids(
    signature: wiring.Signature, id_width: int | None, **ids: wiring.Flow
) -> wiring.Signature:
    if id_width is None:
        return signature
    members = dict(signature.members)
    members |= {name: flow(id_width) for name, flow in ids.items()}
    return wiring.Signature(members)


def _payload(port: object, channel: str) -> data.StructLayout:
    """Payload of `channel` of an interface object."""
    return data.StructLayout(
        {name: len(Value.cast(getattr(port, channel + name))) for name in _FIELDS[channel]}
    )


def stream_for(port: object, channel: str) -> stream.Interface:
    """A stream with the payload of `channel` of `port`, not connected to it."""
    return stream.Signature(_payload(port, channel)).create()


def source(m: Module, port: object, channel: str) -> stream.Interface:
    """A stream of what comes on `channel` of `port`."""
    names = _FIELDS[channel]
    items = stream_for(port, channel)
    m.d.comb += [
        items.valid.eq(getattr(port, channel + "valid")),
        getattr(port, channel + "ready").eq(items.ready),
        *(items.payload[name].eq(getattr(port, channel + name)) for name in names),
    ]
    return items


def sink(m: Module, port: object, channel: str, items: stream.Interface) -> None:
    """Send the stream `items` on `channel` of `port`."""
    m.d.comb += [
        getattr(port, channel + "valid").eq(items.valid),
        items.ready.eq(getattr(port, channel + "ready")),
        *(getattr(port, channel + name).eq(items.payload[name]) for name in _FIELDS[channel]),
    ]
