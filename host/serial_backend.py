"""The driver's back-end for a board on a serial port."""

from __future__ import annotations

import os

from hotline.fpga.boards import Board
from hotline.fpga.boards import board as board_of
from hotline.gen.config import Config
from hotline.gen.presets import PRESETS
from hotline.gen.register_map import IDENTITY, register_map
from hotline.gen.serial_link import MAX_WORDS, WAIT_CYCLES, LinkCommand, LinkStatus
from hotline.golden.memory import Memory
from hotline.host.serial_link import LinkError, LinkStatistics, Port, SerialLink, open_port
from hotline.host.serial_memory import BoardMemory

__all__ = ["SerialBackend"]

#: The first page stays free: a descriptor takes address 0 for no address.
_FIRST_ADDRESS = 4096
#: Seconds for a reply, beside what bytes and work take. A simulation shares this machine.
_TIMEOUT, _SIMULATED_TIMEOUT = 1.0, 120.0
#: Cycles that the bridge takes for a byte that it sums up, at most.
_CYCLES_PER_BYTE = 4
_SOFT_RESET, _SOFT_RESET_TRIES = 2, 1000
_RESPONSES = {LinkStatus.OK: 0, LinkStatus.SLAVE_ERROR: 2, LinkStatus.DECODE_ERROR: 3}


class SerialBackend:
    """An accelerator on a board, whose bridge is at the other end of a serial port.

    The device gets a soft reset. Its memory is the board's; what the host's arrays hold goes there
    before a command starts, and comes back after the interrupt
    (:class:`~hotline.host.serial_memory.BoardMemory`).

    Parameters
    ----------
    config : Config
        What the bitstream was generated from.
    port : str or Port
        Name of the serial port, URL of pyserial, or an open port.
    board : str
        One of :data:`hotline.fpga.boards.BOARDS`.
    baud : int, optional
        Default: that of the board.
    timeout : float, optional
        Seconds to wait for a reply. Default: 1, and 120 where the port is a pseudo-terminal,
        behind which there is a simulation.

    Raises
    ------
    LinkError
        The port cannot be opened, the board does not answer, or holds another configuration.
    ValueError
        There is no such board.

    Members
    -------
    addresses : (int, int)
        What of the board's memory the driver may give away.
    statistics : LinkStatistics
    """

    def __init__(
        self,
        config: Config,
        *,
        port: str | Port,
        board: str = "ulx3s-85f",
        baud: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self.config = config
        self.board: Board = board_of(board)
        self.memory = Memory()
        self.addresses = _FIRST_ADDRESS, self.board.ram_bytes
        self._offsets = {item.name: item.offset for item in register_map(config)}
        baud = self.board.baud if baud is None else baud
        name = port if isinstance(port, str) else "this port"
        if timeout is None:
            timeout = _SIMULATED_TIMEOUT if _is_terminal(name) else _TIMEOUT
        opened = open_port(port, baud) if isinstance(port, str) else port
        self._link = SerialLink(opened, name, baud, timeout=timeout)
        self._cycle_seconds = 1e-6 / self.board.core_mhz
        speed = 1 / (_CYCLES_PER_BYTE * self._cycle_seconds)
        self._board_memory = BoardMemory(self._link, self.memory, self.board.ram_bytes, speed)
        #: RING_HEAD when memory was fetched last.
        self._head = 0
        try:
            self._identify()
            self._reset()
        except BaseException:
            self._link.close()
            raise

    @property
    def statistics(self) -> LinkStatistics:
        """What went over the wire."""
        return self._link.statistics

    def close(self) -> None:
        """Close the port; the board stays as it is."""
        self._link.close()

    def write_register(self, offset: int, value: int) -> int:
        """Write a register; returns the AXI response (0 OKAY, 2 SLVERR)."""
        if offset in (self._offsets["RING_TAIL"], self._offsets["CONTROL"]):
            self._board_memory.push()
        payload = value.to_bytes(4, "little")
        reply = self._link.ask(LinkCommand.WRITE_REGISTER, 1, offset, payload)
        if offset in self._emptying:
            self._head = 0
        return _RESPONSES[reply.status]

    def read_register(self, offset: int) -> tuple[int, int]:
        """Read a register; returns value and AXI response.

        A RING_HEAD that has moved brings the memory with it: what the commands up to there have
        written is complete.
        """
        reply = self._link.ask(LinkCommand.READ_REGISTER, 1, offset)
        value = int.from_bytes(reply.payload, "little")
        if offset == self._offsets["RING_HEAD"] and value != self._head:
            self._board_memory.pull()
            self._head = value
        return value, _RESPONSES[reply.status]

    def wait_irq(self, max_cycles: int) -> bool:
        """Wait until the interrupt is high, about `max_cycles` at most; whether it is."""
        left = -(-max_cycles // WAIT_CYCLES)
        while left > 0:
            units = min(left, MAX_WORDS)
            seconds = units * WAIT_CYCLES * self._cycle_seconds
            reply = self._link.ask(LinkCommand.WAIT, units, seconds=seconds)
            if reply.status == LinkStatus.OK:
                self.read_register(self._offsets["RING_HEAD"])
                return True
            left -= units
        return False

    # ---- inside -------------------------------------------------------------------------------

    @property
    def _emptying(self) -> set[int]:
        """Registers whose writes set RING_HEAD to 0."""
        names = ("RING_BASE_LO", "RING_BASE_HI", "RING_LOG2")
        return {self._offsets[name] for name in names}

    def _identify(self) -> None:
        """See that it is the device, and the configuration, that the caller expects."""
        identity = self.read_register(self._offsets["ID"])[0]
        if identity != IDENTITY:
            raise LinkError(f"this is not a Hotline device: ID is {identity:#x}, not {IDENTITY:#x}")
        found = self.read_register(self._offsets["CONFIG_HASH"])[0]
        if found != self.config.config_hash:
            names = [name for name, item in PRESETS.items() if item.config_hash == found]
            known = f"preset {names[0]}" if names else "another configuration"
            raise LinkError(
                f"the board holds {known} (CONFIG_HASH {found:#010x}), not the one asked for "
                f"({self.config.config_hash:#010x}): load its bitstream, or name the configuration "
                f"that the board holds"
            )

    def _reset(self) -> None:
        control = self._offsets["CONTROL"]
        self.write_register(control, _SOFT_RESET)
        for _ in range(_SOFT_RESET_TRIES):
            if not self.read_register(control)[0] & _SOFT_RESET:
                return
        raise LinkError("the device does not come out of its soft reset")


def _is_terminal(name: str) -> bool:
    """Whether this is a pseudo-terminal."""
    return os.path.realpath(name).startswith("/dev/pts/")
