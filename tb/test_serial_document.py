"""docs/fpga.md says of the serial link what the code says."""

from __future__ import annotations

from pathlib import Path

from hotline.fpga.frame_buffer import BUFFER_WORDS
from hotline.gen.serial_link import (
    COMMANDS,
    CRC_BYTES,
    ESCAPE,
    ESCAPE_FLIP,
    FLAG,
    HEADER_BYTES,
    MAX_WORDS,
    LinkStatus,
)

TEXT = (Path(__file__).parents[1] / "docs" / "fpga.md").read_text(encoding="utf-8")
SECTION = TEXT[TEXT.index("## Serial link") : TEXT.index("## Reports")]

WHEN = {
    LinkStatus.OK: "done",
    LinkStatus.BAD_COMMAND: "no such command, or a size where there is none",
    LinkStatus.BAD_LENGTH: "count is 0, too great, or does not go with the words there",
    LinkStatus.BAD_ADDRESS: "not a multiple of what the command needs, or no register",
    LinkStatus.SLAVE_ERROR: "SLVERR on the bus, or from the register",
    LinkStatus.DECODE_ERROR: "DECERR on the bus, or beyond the memory",
    LinkStatus.NO_INTERRUPT: "WAIT: the time is over",
}


def _commands() -> str:
    rows = []
    for command, info in COMMANDS.items():
        address = f"multiple of {info.address}" if info.address else "ignored"
        cells = (
            str(int(command)), f"`{command.name}`", info.counts or "1", address, info.request,
            info.reply, info.does,
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)


def _statuses() -> str:
    return "".join(f"| {int(code)} | {code.name} | {WHEN[code]} |\n" for code in LinkStatus)


def test_tables() -> None:
    assert _commands() in SECTION, _commands()
    assert _statuses() in SECTION, _statuses()


def test_numbers() -> None:
    for text in (
        f"flags `{FLAG:#04X}`".replace("0X", "0x"),
        f"`0x{FLAG:02X}` and `0x{ESCAPE:02X}` are sent as `0x{ESCAPE:02X}` and the byte XOR "
        f"`0x{ESCAPE_FLIP:02X}`",
        f"from 0 to {MAX_WORDS} words",
        f"one buffer of {BUFFER_WORDS} words",
    ):
        assert text in " ".join(SECTION.split()), text
    bits = 8 * (HEADER_BYTES + 4 * MAX_WORDS + CRC_BYTES)
    assert f"{bits:,} bits".replace(",", " ") in SECTION
