"""The whole device: registers, ring, commands and hot table over a memory image.

Where the specification is silent, this model does the following.

* A completion address that is misaligned or above `addr_width` is BAD_DESCRIPTOR 14 (the address
  is used by every command): nothing is executed and no record is written.
* GATHER LAST ignores its own `count` and `lists`. A SPLIT that ended well counts as succeeded even
  if its record could not be written; any later SPLIT that fails takes that away.
* Bus faults: the key stream comes first, in stream order (a sample's lengths, then its indices);
  then the lists in order, weights, row reads, row writes. SCATTER, GATHER and FILL go row by row.
  What is not mapped answers an error. A failed command leaves its regions as they were, and the
  table as the last group (LEARN) or key (LOAD) before the fault left it.
* A wrong total of lengths (LENGTHS) belongs to the last sample: its group is not applied.
* A row whose table has TABLE_ROW_BYTES 0 (never set) is copied as nothing, but counts.
* Addresses do not wrap: beyond `addr_width` they lie in no window.
* COMMIT with FILL checks the rows of its records like FILL.
* Counters of SPLIT and GATHER grow when the command has succeeded. READ_BEATS and WRITE_BEATS are
  the fewest beats that the regions, rows, descriptors and records touch; cycles and stalls are 0.
* HOT_STRIDE is compared with the largest TABLE_ROW_BYTES at the time of the write.
* The low two address bits of a register access are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotline.gen.commands import DESCRIPTOR_BYTES
from hotline.gen.config import Config
from hotline.golden.bus import Bus
from hotline.golden.command_processor import CommandProcessor
from hotline.golden.descriptor import Completion, Descriptor, StatusCode
from hotline.golden.hot_table import HotTable
from hotline.golden.memory import Memory
from hotline.golden.outcome import Outcome
from hotline.golden.registers import OKAY, SLVERR, Registers

__all__ = ["OKAY", "SLVERR", "Hotline", "Result"]

_IRQ_COMPLETION, _IRQ_ERROR = 1, 2


@dataclass(frozen=True)
class Result:
    """What became of one descriptor.

    Parameters
    ----------
    descriptor : Descriptor or None
        None if it could not be fetched.
    status, info : int
        As in ERROR_STATUS and ERROR_INFO; OK if nothing went wrong, with the record neither.
    record : Completion or None
        None if no valid record was written. `cycles` is 0.
    read_beats, write_beats : int
        Fewest data beats of the command itself, without descriptor and record (0 on failure).
    undefined : list of (address, size)
        Bytes whose contents are open after a failure: leave them out of a comparison.
    """

    descriptor: Descriptor | None
    status: StatusCode
    info: int
    record: Completion | None
    read_beats: int
    write_beats: int
    undefined: list[tuple[int, int]]


class Hotline:
    """Bit-exact model of the top `hotline`, cycles aside.

    The host writes registers, then calls :meth:`run`, which does what the device does until it
    stops by itself. Until then the device is busy, as the hardware is from RING_TAIL on.

    Parameters
    ----------
    config : Config
        The configuration.
    memory : Memory
        What the AXI master sees; changed in place.

    Members
    -------
    registers : Registers
    hot_table : HotTable
    history : list of Result
        One for each descriptor since construction.
    """

    def __init__(self, config: Config, memory: Memory) -> None:
        self.config = config
        self.memory = memory
        self.bus = Bus(config, memory)
        self.registers = Registers(config)
        self.processor = CommandProcessor(config, self.bus, self.registers)
        self.history: list[Result] = []
        self._error = False

    @property
    def hot_table(self) -> HotTable:
        """The hot table."""
        return self.processor.hot_table

    @property
    def busy(self) -> bool:
        """STATUS.busy."""
        pending = self.registers.get("RING_TAIL") != self.registers.get("RING_HEAD")
        return pending and not self._error and bool(self.registers.get("CONTROL") & 1)

    @property
    def irq(self) -> bool:
        """The interrupt line."""
        return bool(self.registers.get("IRQ_STATUS") & self.registers.get("IRQ_ENABLE"))

    def reset(self) -> None:
        """aresetn, or a soft reset: everything but the memory."""
        self.registers.reset()
        self.processor.reset()
        self._error = False

    # ---- registers ----------------------------------------------------------------------------

    def read_register(self, offset: int) -> tuple[int, int]:
        """(value, response) of an AXI4-Lite read."""
        status = self.busy | self._error << 1 | self.hot_table.dirty << 2
        self.registers.put("STATUS", status)
        return self.registers.read(offset)

    def write_register(self, offset: int, value: int, strobe: int = 0xF) -> int:
        """Response of an AXI4-Lite write."""
        registers = self.registers
        name, response = registers.write(offset, value, strobe, self.busy)
        if name == "CONTROL":
            if value & 2:
                self.reset()
            else:
                registers.put("CONTROL", value & 1)
                self._error = self._error and not value & 4
        elif name == "IRQ_STATUS":
            registers.put("IRQ_STATUS", registers.get("IRQ_STATUS") & ~value)
        elif name == "COUNTERS":
            if value & 1:
                registers.snapshot()
            if value & 2:
                registers.clear_counters()
        elif name in ("RING_BASE_LO", "RING_BASE_HI", "RING_LOG2"):
            registers.put("RING_HEAD", 0)
            registers.put("RING_TAIL", 0)
        return response

    # ---- ring ---------------------------------------------------------------------------------

    def run(self, limit: int | None = None) -> list[Result]:
        """Process the ring until it is empty, an error, or run = 0; at most `limit` descriptors."""
        results: list[Result] = []
        while self.busy and (limit is None or len(results) < limit):
            results.append(self._step())
        return results

    def _step(self) -> Result:
        registers, bus = self.registers, self.bus
        bus.windows = [
            (registers.wide("WINDOW_LO", i), registers.wide("WINDOW_HI", i))
            for i in range(self.config.windows)
        ]
        bus.read_beats = bus.write_beats = 0
        head = registers.get("RING_HEAD")
        address = registers.wide("RING_BASE") + DESCRIPTOR_BYTES * head
        fault = bus.linear(address, DESCRIPTOR_BYTES, write=False)
        if fault is not None:
            result = Result(None, fault.status, fault.info, None, 0, 0, [])
        else:
            result = self._execute(Descriptor.unpack(self.memory.read(address, DESCRIPTOR_BYTES)))
        registers.count(READ_BEATS=bus.read_beats, WRITE_BEATS=bus.write_beats)

        irq = registers.get("IRQ_STATUS")
        if result.record is not None:
            irq |= _IRQ_COMPLETION
        if result.status != StatusCode.OK:
            irq |= _IRQ_ERROR
            self._error = True
            registers.put("ERROR_STATUS", result.status)
            registers.put_wide("ERROR_INFO", result.info)
        registers.put("IRQ_STATUS", irq)
        registers.put("RING_HEAD", (head + 1) % (1 << registers.get("RING_LOG2")))
        self.history.append(result)
        return result

    def _execute(self, descriptor: Descriptor) -> Result:
        before = self.bus.read_beats
        outcome = self.processor.execute(descriptor)
        self.registers.count(**outcome.counts)
        good = outcome.status == StatusCode.OK
        reads = self.bus.read_beats - before if good else 0
        writes = self.bus.write_beats if good else 0
        status, info, record = self._record(descriptor, outcome)
        return Result(descriptor, status, info, record, reads, writes, outcome.undefined)

    def _record(
        self, descriptor: Descriptor, outcome: Outcome
    ) -> tuple[StatusCode, int, Completion | None]:
        """Write the record; the first error of the descriptor stays the one that is reported."""
        address = descriptor.completion
        if not self.processor.checker.reachable(address):
            return outcome.status, outcome.info, None
        record = Completion(
            status=outcome.status,
            opcode=descriptor.opcode,
            tag=descriptor.tag,
            words=outcome.words,
            info=outcome.info,
        )
        fault = self.bus.linear(address, DESCRIPTOR_BYTES, write=True, aligned=False)
        if fault is None:
            self.memory.write(address, record.pack())
            return outcome.status, outcome.info, record
        outcome.undefined.append((address, DESCRIPTOR_BYTES))
        if outcome.status == StatusCode.OK:
            return fault.status, fault.info, None
        return outcome.status, outcome.info, None
