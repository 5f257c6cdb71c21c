"""Requests to a board over a serial port, and its replies."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, Protocol

from hotline.gen.serial_link import COMMANDS, HEADER_BYTES, LinkCommand, LinkStatus
from hotline.host.serial_frames import FrameReader, Reply, Request, encode_frame

__all__ = ["LinkError", "LinkStatistics", "Port", "SerialLink", "open_port"]

_TRIES = 5
#: A read of the port returns after so many seconds at the latest.
_POLL_SECONDS = 0.05
_BITS_PER_BYTE = 10
#: Of a frame with its escapes, over its content: flags, CRC, and some escapes.
_FRAME_BYTES = 16


class LinkError(RuntimeError):
    """The board does not answer, or answers what makes no sense."""


class Port(Protocol):
    """What a link needs of a port: of pyserial's interface, or of one that acts like it."""

    def read(self, size: int) -> bytes: ...

    def write(self, data: bytes) -> Any: ...

    def close(self) -> None: ...


@dataclass
class LinkStatistics:
    """What went over the wire.

    Parameters
    ----------
    requests, repeated : int
        Requests, and how many more times one had to be sent again.
    bytes_sent, bytes_received : int
    """

    requests: int = 0
    repeated: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


def open_port(name: str, baud: int) -> Port:
    """Open a serial port by its name, or by a URL of pyserial.

    Raises
    ------
    LinkError
        pyserial is missing, or the port cannot be opened; the sentence says what to do.
    """
    try:
        import serial
        from serial.tools.list_ports import comports
    except ModuleNotFoundError:
        raise LinkError(
            "the serial back-end needs the package pyserial: install the extra 'serial'"
        ) from None
    try:
        port: Port = serial.serial_for_url(
            name, baudrate=baud, timeout=_POLL_SECONDS, write_timeout=None, exclusive=True
        )
    except (OSError, ValueError) as error:
        found = ", ".join(sorted(item.device for item in comports())) or "none"
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else str(error)
        raise LinkError(
            f"cannot open the serial port {name!r} at {baud} baud ({reason}); ports that are "
            f"there: {found}"
        ) from None
    return port


class SerialLink:
    """Sends a request, waits for its reply, and sends it again if that does not come.

    The bridge drops a frame that is not right without a word, and carries a request that writes
    out only once, so sending it again is always safe (:mod:`hotline.fpga.serial_executor`).

    Parameters
    ----------
    port : Port
        Open; its `read` returns what there is, after a short time at the latest.
    name : str
        What to call the port in a message.
    baud : int
        Bits a second, from which follows how long a frame takes.
    timeout : float
        Seconds to wait for a reply, beside what its bytes and the board's work take.
    tries : int
        How often a request is sent.

    Members
    -------
    statistics : LinkStatistics
    """

    def __init__(
        self, port: Port, name: str, baud: int, *, timeout: float, tries: int = _TRIES
    ) -> None:
        self._port, self._name, self._baud = port, name, baud
        self._timeout, self._tries = timeout, tries
        self._reader = FrameReader()
        # The first request of a connection must be one that writes nothing: the bridge may have
        # seen its number before.
        self._number = 0
        self.statistics = LinkStatistics()

    def close(self) -> None:
        """Close the port."""
        self._port.close()

    def ask(
        self,
        command: LinkCommand,
        count: int = 1,
        address: int = 0,
        payload: bytes = b"",
        size: int = 0,
        *,
        seconds: float = 0.0,
    ) -> Reply:
        """The reply to a request; see :class:`~hotline.host.serial_frames.Request`.

        Parameters
        ----------
        seconds : float
            What the board may take for it.

        Raises
        ------
        LinkError
            No answer, or one that says that the request is not understood.
        """
        self._number = (self._number + 1) % 256
        request = Request(self._number, command, count, address, payload, size)
        frame = encode_frame(request.pack())
        expected = {"0": 0, "1": 1, "count": count}[COMMANDS[command].reply]
        on_wire = len(frame) + HEADER_BYTES + 4 * expected + _FRAME_BYTES
        patience = self._timeout + seconds + 2 * on_wire * _BITS_PER_BYTE / self._baud
        self.statistics.requests += 1
        try:
            for attempt in range(self._tries):
                self.statistics.repeated += attempt > 0
                self._port.write(frame)
                self.statistics.bytes_sent += len(frame)
                reply = self._receive(request, 4 * expected, patience)
                if reply is not None:
                    break
            else:
                raise LinkError(
                    f"no answer from the board on {self._name} to {self._tries} requests: is it "
                    f"the right port, at {self._baud} baud, and is the bitstream loaded?"
                )
        except OSError as error:
            raise LinkError(f"the serial port {self._name} failed: {error}") from None
        if reply.status in (
            LinkStatus.BAD_COMMAND,
            LinkStatus.BAD_LENGTH,
            LinkStatus.BAD_ADDRESS,
        ):
            raise LinkError(
                f"the board on {self._name} refused {command.name} at {address:#x} with "
                f"{reply.status.name}: its bridge is not the one that this host knows"
            )
        return reply

    def _receive(self, request: Request, size: int, patience: float) -> Reply | None:
        end = time.monotonic() + patience
        while True:
            # As much as one reply can be; what there is comes at once.
            data = self._port.read(max(1, getattr(self._port, "in_waiting", 1)))
            self.statistics.bytes_received += len(data)
            for content in self._reader.feed(data):
                reply = Reply.unpack(content)
                if reply is not None and _answers(reply, request, size):
                    return reply
            if time.monotonic() > end:
                return None


def _answers(reply: Reply, request: Request, size: int) -> bool:
    """Whether it is the reply to this request, and not to an earlier one."""
    same = (reply.number, reply.count, reply.address) == (
        request.number,
        request.count,
        request.address,
    )
    return same and len(reply.payload) == (size if reply.status == LinkStatus.OK else 0)
