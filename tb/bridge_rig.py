"""The serial bridge in this process: Verilated, with memory, registers and a line in C++."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from harness.build import SIM_FOLDER

from hotline.fpga.line_mover import line_bytes
from hotline.fpga.serial_bridge import SerialBridge
from hotline.fpga.uart import Uart
from hotline.gen.config import Config
from hotline.gen.verilog import to_verilog
from hotline.golden.memory import Memory
from hotline.host import verilated_build
from hotline.host.bus_timing import BusTiming, latency_range
from hotline.host.verilated_library import CErrorRange, CRegion, CStatistics, CTiming

__all__ = ["BridgeRig", "UartBridge"]

_SOURCE = Path(__file__).parent / "cpp" / "serial_bridge.cpp"
_INCLUDE = Path(verilated_build.__file__).parent / "cpp"
_LIMIT = 50_000_000
_ROOM = 1 << 22


class UartBridge(wiring.Component):
    """The bridge behind its serial port: pins instead of streams."""

    def __init__(self, config: Config, divisor: int, memory_bits: int) -> None:
        self.bridge, self.uart = SerialBridge(config, memory_bits), Uart(divisor)
        masters = {
            name: member
            for name, member in self.bridge.signature.members.items()
            if name not in ("rx", "tx")
        }
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), **masters})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge, m.submodules.uart = bridge, uart = self.bridge, self.uart
        connect(m, uart.received, bridge.rx)
        connect(m, bridge.tx, uart.transmit)
        m.d.comb += [uart.rx.eq(self.rx), self.tx.eq(uart.tx), bridge.irq.eq(self.irq)]
        for name in ("axil", "axi_r", "axi_w"):
            connect(m, getattr(bridge, name), flipped(getattr(self, name)))
        return m


def _library(config: Config, divisor: int | None, memory_bits: int) -> Path:
    if divisor is None:
        block: wiring.Component = SerialBridge(config, memory_bits)
    else:
        block = UartBridge(config, divisor, memory_bits)
    # Verilator takes two underscores for something of its own, and the C++ of the memory knows the
    # names of the accelerator's ports.
    text = re.sub(r"\b(axil|rx|tx)__", r"\1_", to_verilog(block, "bridge"))
    text = re.sub(r"\baxi_[rw]__", "m_axi_", text)
    define = "" if divisor is None else f" -DHOTLINE_DIVISOR={divisor}"
    arguments = [
        "--top-module", "bridge", "-O3", "--x-assign", "unique", "--x-initial", "unique",
        "--no-timing", "-Wno-fatal", "-Wno-lint", "-Wno-style",
        "-CFLAGS", f"-fPIC -std=c++17 -I{_INCLUDE}{define}", "-LDFLAGS", "-shared",
        str(_SOURCE), "bridge.v",
    ]  # fmt: skip
    flags = ("OPT_FAST=-O2", "OPT_SLOW=-O0", "OPT_GLOBAL=-O2")

    sources = [_SOURCE, _INCLUDE / "axi_memory.hpp"]
    return verilated_build.shared_library("bridge", text, arguments, sources, flags, SIM_FOLDER)


class BridgeRig:
    """A bridge, with what it is master of.

    Register offsets from 0x800 on answer SLVERR, from 0xC00 on DECERR.

    Parameters
    ----------
    config : Config
    memory : Memory
        Used in place; its error ranges answer SLVERR.
    divisor : int or None
        Cycles of a bit; None: without the UART, up to a byte a cycle.
    memory_bits : int
        See :class:`~hotline.fpga.serial_bridge.SerialBridge`.
    pause : float
        Probability with which the line and the registers stall in each cycle.
    timing : BusTiming
        Of the memory.
    seed : int

    Members
    -------
    registers : np.ndarray
        uint32 [1024], in place.
    """

    def __init__(
        self,
        config: Config,
        memory: Memory,
        *,
        divisor: int | None = None,
        memory_bits: int = 32,
        pause: float = 0.0,
        timing: BusTiming | None = None,
        seed: int = 1,
    ) -> None:
        timing = timing or BusTiming(read_latency=10, write_latency=5)
        self.memory = memory
        library: Any = ctypes.CDLL(str(_library(config, divisor, memory_bits)))
        self._library = library
        u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
        library.bridge_create.restype = pointer
        library.bridge_create.argtypes = (u32, u32, ctypes.c_double, u64)
        library.bridge_exchange.restype = ctypes.c_int64
        library.bridge_exchange.argtypes = (
            pointer, ctypes.c_char_p, u64, u64, u64, u64, ctypes.c_char_p, u64,
        )  # fmt: skip
        library.bridge_registers.restype = ctypes.POINTER(u32)
        library.bridge_writes.restype = u64
        library.bridge_failure.restype = ctypes.c_char_p
        beats = line_bytes(config) // config.data_bytes
        self._handle = pointer(library.bridge_create(config.data_bytes, beats, pause, seed))
        library.bridge_timing(
            self._handle,
            ctypes.byref(
                CTiming(
                    latency_range(timing.read_latency),
                    latency_range(timing.write_latency),
                    0,
                    0,
                    (timing.ar_pause, timing.r_pause, timing.aw_pause, timing.w_pause,
                     timing.b_pause),
                    timing.read_bandwidth,
                    timing.write_bandwidth,
                    0,
                    0,
                    seed,
                )
            ),
        )  # fmt: skip
        regions = (CRegion * len(memory.regions))(
            *((base, data.size, data.ctypes.data) for base, data in memory.regions)
        )
        library.bridge_regions(self._handle, regions, u64(len(regions)))
        errors = [(first, last, 2, read, write) for first, last, read, write in memory.error_ranges]
        library.bridge_errors(self._handle, (CErrorRange * len(errors))(*errors), u64(len(errors)))
        self.registers = np.ctypeslib.as_array(library.bridge_registers(self._handle), (1024,))
        self._out = ctypes.create_string_buffer(_ROOM)

    def close(self) -> None:
        """Free the simulation."""
        self._library.bridge_destroy(self._handle)

    def exchange(self, data: bytes, wanted: int = 0, tail: int = 0, limit: int = _LIMIT) -> bytes:
        """Send bytes; what comes until `wanted` bytes have, and for `tail` cycles more."""
        size = self._library.bridge_exchange(
            self._handle, data, len(data), wanted, tail, limit, self._out, _ROOM
        )
        failure = self._library.bridge_failure(self._handle)
        assert not failure, failure.decode()
        assert size >= wanted, f"{size} bytes instead of {wanted} within {limit} cycles"
        return self._out.raw[:size]

    def reset(self) -> None:
        """Reset the bridge; registers and memory stay."""
        self._library.bridge_reset(self._handle)

    def set_irq(self, level: bool) -> None:
        """Drive the interrupt."""
        self._library.bridge_irq(self._handle, int(level))

    def register_writes(self) -> list[tuple[int, int]]:
        """Offset and value of the register writes since the last call."""
        room = (ctypes.c_uint32 * 4096)()
        count = self._library.bridge_writes(self._handle, room, ctypes.c_uint64(len(room)))
        assert count <= len(room)
        return list(zip(room[0:count:2], room[1:count:2], strict=True))

    @property
    def write_bursts(self) -> int:
        """Bursts written since the beginning."""
        return self.statistics.write_bursts

    @property
    def statistics(self) -> CStatistics:
        """Counts of the memory model."""
        raw = CStatistics()
        self._library.bridge_statistics(self._handle, ctypes.byref(raw))
        return raw
