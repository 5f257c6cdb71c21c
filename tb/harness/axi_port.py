"""The signals of an AXI4 master as an agent sees them, and the checks on what it issues."""

from __future__ import annotations

from typing import Any

__all__ = ["AxiPort", "check_burst"]

_FIELDS = {
    "ar": ("id", "addr", "len", "size", "burst"),
    "r": ("id", "data", "resp", "last"),
    "aw": ("id", "addr", "len", "size", "burst"),
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
}


def check_burst(channel: str, request: dict[str, int], data_bytes: int, max_beats: int) -> None:
    """Check one AR or AW against spec section 6.

    Raises
    ------
    AssertionError
        Wrong size or burst type, unaligned, too long, or across a 4 KiB boundary.
    """
    address, beats = request["addr"], request["len"] + 1
    what = f"{channel} at {address:#x} with {beats} beats"
    assert request["size"] == data_bytes.bit_length() - 1, f"{what}: size {request['size']}"
    assert request["burst"] == 1, f"{what}: burst type {request['burst']}"
    assert address % data_bytes == 0, f"{what}: not aligned to the bus"
    assert beats <= max_beats, f"{what}: longer than {max_beats} beats"
    last = address + beats * data_bytes - 1
    assert address >> 12 == last >> 12, f"{what}: crosses a 4 KiB boundary"


class AxiPort:
    """Signals named ``<prefix><channel><field>`` or ``<prefix><channel>__<field>``."""

    def __init__(self, dut: Any, prefix: str) -> None:
        self._signals: dict[str, dict[str, Any]] = {}
        self._holding: dict[str, dict[str, int]] = {}
        self._ready: dict[str, bool] = {}
        self._offered: dict[str, bool] = {}
        for channel, fields in _FIELDS.items():
            for joint in ("", "__"):
                stem = f"{prefix}{channel}{joint}"
                if not hasattr(dut, f"{stem}valid"):
                    continue
                names = (*fields, "valid", "ready")
                self._signals[channel] = {
                    name: getattr(dut, stem + name) for name in names if hasattr(dut, stem + name)
                }
        self.has_read = "ar" in self._signals
        self.has_write = "aw" in self._signals
        if not (self.has_read or self.has_write):
            raise ValueError(f"no AXI port {prefix!r}")
        data = self._signals["r" if self.has_read else "w"]["data"]
        self.data_bytes = len(data) // 8

    def forget(self) -> None:
        """Drop the memory of items that wait: for the reset."""
        self._holding.clear()
        self._ready.clear()
        self._offered.clear()

    # ---- sampling -----------------------------------------------------------------------------

    def take(self, channel: str) -> dict[str, int] | None:
        """What the master transfers on AR, AW or W in this cycle; checks that it holds."""
        signals = self._signals[channel]
        held = self._holding.get(channel)
        if not int(signals["valid"].value):
            assert held is None, f"{channel.upper()}VALID fell without a transfer"
            return None
        item = {
            name: int(signals[name].value) if name in signals else 0 for name in _FIELDS[channel]
        }
        assert held in (None, item), f"{channel.upper()} changed while waiting: {held} {item}"
        if self._ready.get(channel):
            self._holding.pop(channel, None)
            return item
        self._holding[channel] = item
        return None

    def stalled(self, channel: str) -> bool:
        """Whether the master waits for ready in the cycle just looked at by :meth:`take`."""
        return channel in self._holding

    def sent(self, channel: str) -> bool:
        """Whether what was offered on R or B is transferred in this cycle."""
        return bool(self._offered.get(channel)) and bool(int(self._signals[channel]["ready"].value))

    # ---- driving ------------------------------------------------------------------------------

    def set_ready(self, channel: str, ready: bool) -> None:
        """Drive ARREADY, AWREADY or WREADY."""
        self._ready[channel] = ready
        self._signals[channel]["ready"].value = int(ready)

    def offer(self, channel: str, item: dict[str, int] | None) -> None:
        """Drive R or B; None means not valid."""
        signals = self._signals[channel]
        signals["valid"].value = int(item is not None)
        self._offered[channel] = item is not None
        for name, value in (item or {}).items():
            if name in signals:
                signals[name].value = value
