"""The registers of spec section 8, declared once as data.

The register bank, its golden model, the C header, SystemRDL, ``hotline.json`` and the documents
are all made from :func:`register_map`, so that they cannot drift apart.
"""

from __future__ import annotations

from dataclasses import replace

from hotline.gen.config import POLICIES, Config, log2
from hotline.gen.register import ALL_ONES, Access, Field, Register

__all__ = [
    "COUNTERS",
    "IDENTITY",
    "VERSION",
    "WINDOWS",
    "Access",
    "Field",
    "Register",
    "capabilities",
    "register_map",
]

#: Value of ID: the letters HOTL in memory order.
IDENTITY = 0x4C544F48

#: Version of the hardware and of the package: major, minor, patch.
VERSION = (0, 1, 0)

#: Number of address windows.
WINDOWS = 4

#: The 64-bit counters in register order; the position is the bit in COUNTERS_SATURATED.
COUNTERS = {
    "BUSY_CYCLES": "cycles in which STATUS.busy was 1",
    "SAMPLES": "samples of SPLIT commands",
    "POPULAR": "popular samples of SPLIT commands",
    "KEYS": "keys of SPLIT commands",
    "HITS": "keys of SPLIT commands that were hot",
    "ROWS_GATHERED": "rows read by SPLIT with GATHER and by GATHER; with POOL every read",
    "ROWS_SHARED": "keys of SPLIT commands that got an existing row number",
    "READ_BEATS": "R beats",
    "READ_STALLS": "cycles with ARVALID and not ARREADY",
    "WRITE_BEATS": "W beats",
    "WRITE_STALLS": "cycles with WVALID and not WREADY",
    "BANK_STALLS": "cycles in which a lane waited for a bank of the hot table",
}


def capabilities(config: Config) -> int:
    """Value of CAPS."""
    fields = (
        (log2(config.lanes), 0),
        (log2(config.ways), 4),
        (log2(config.sets), 8),
        (POLICIES.index(config.policy), 16),
        (int(config.pool), 20),
        (int(config.scatter_add), 21),
        (log2(config.data_bytes), 24),
        (config.gpus, 28),
    )
    return sum(value << low for value, low in fields)


def _constant(name: str, offset: int, value: int, description: str, *fields: Field) -> Register:
    return Register(
        name=name,
        offset=offset,
        access=Access.RO,
        reset=value,
        description=description,
        fields=fields,
    )


def _select(name: str, offset: int, count: int, description: str) -> Register:
    return Register(
        name=name,
        offset=offset,
        access=Access.RW,
        maximum=count - 1,
        description=description,
    )


def _address(
    config: Config,
    name: str,
    offset: int,
    description: str,
    *,
    align: int = 1,
    selector: str | None = None,
) -> tuple[Register, Register]:
    """Both halves of an address register; bits above `addr_width` must be written 0."""
    maximum = (1 << config.addr_width) - 1
    low = Register(
        name=f"{name}_LO",
        offset=offset,
        access=Access.RW,
        maximum=maximum & ALL_ONES,
        align=align,
        locked=True,
        selector=selector,
        description=f"{description}, bits 31..0",
    )
    high = Register(
        name=f"{name}_HI",
        offset=offset + 4,
        access=Access.RW,
        maximum=maximum >> 32,
        locked=True,
        selector=selector,
        description=f"{description}, bits 63..32",
    )
    return low, high


def _control() -> tuple[Register, ...]:
    irq = (
        Field(name="completion", low=0, width=1, description="a completion record was written"),
        Field(name="error", low=1, width=1, description="a command failed"),
    )
    return (
        Register(
            name="CONTROL",
            offset=0x010,
            access=Access.RW,
            maximum=7,
            live=True,
            description="run control",
            fields=(
                Field(
                    name="run",
                    low=0,
                    width=1,
                    description="take descriptors; 0 stops after the current one",
                ),
                Field(
                    name="soft_reset",
                    low=1,
                    width=1,
                    pulse=True,
                    description="drain the bus, then reset; reads 1 until done",
                ),
                Field(
                    name="resume",
                    low=2,
                    width=1,
                    pulse=True,
                    description="go on after an error; reads 0",
                ),
            ),
        ),
        Register(
            name="STATUS",
            offset=0x014,
            access=Access.RO,
            live=True,
            description="state of the device",
            fields=(
                Field(name="busy", low=0, width=1, description="a command is pending or runs"),
                Field(name="error", low=1, width=1, description="stopped by an error"),
                Field(name="dirty", low=2, width=1, description="hot table not committed"),
                Field(name="draining", low=3, width=1, description="bus draining"),
            ),
        ),
        Register(
            name="IRQ_STATUS",
            offset=0x018,
            access=Access.W1C,
            maximum=3,
            live=True,
            description="pending interrupts; a set wins over a clear",
            fields=irq,
        ),
        Register(
            name="IRQ_ENABLE",
            offset=0x01C,
            access=Access.RW,
            maximum=3,
            description="interrupts that raise irq",
            fields=irq,
        ),
    )


def _ring(config: Config) -> tuple[Register, ...]:
    return (
        *_address(config, "RING_BASE", 0x020, "address of the descriptor ring", align=64),
        Register(
            name="RING_LOG2",
            offset=0x028,
            access=Access.RW,
            reset=1,
            minimum=1,
            maximum=15,
            locked=True,
            description="log2 of the entries of the ring",
        ),
        Register(
            name="RING_TAIL",
            offset=0x02C,
            access=Access.RW,
            maximum=(1 << 15) - 1,
            live=True,
            description="index of the next free entry, below 2**RING_LOG2; tail = head: empty",
        ),
        Register(
            name="RING_HEAD",
            offset=0x030,
            access=Access.RO,
            live=True,
            description="index of the entry that is next or in work",
        ),
        Register(
            name="ERROR_STATUS",
            offset=0x034,
            access=Access.RO,
            description="status of the last failure",
        ),
        Register(
            name="ERROR_INFO_LO",
            offset=0x038,
            access=Access.RO,
            description="error info of the last failure, bits 31..0",
        ),
        Register(
            name="ERROR_INFO_HI",
            offset=0x03C,
            access=Access.RO,
            description="error info of the last failure, bits 63..32",
        ),
    )


def _selected(config: Config) -> tuple[Register, ...]:
    table, gpu, window = "TABLE_SELECT", "GPU_SELECT", "WINDOW_SELECT"
    return (
        _select(table, 0x040, config.max_tables, "table that TABLE_* show"),
        *_address(config, "TABLE_BASE", 0x044, "address of row 0", align=4, selector=table),
        Register(
            name="TABLE_ROWS",
            offset=0x04C,
            access=Access.RW,
            maximum=min(1 << config.row_bits, ALL_ONES),
            locked=True,
            selector=table,
            description="rows of the table",
        ),
        Register(
            name="TABLE_ROW_BYTES",
            offset=0x050,
            access=Access.RW,
            minimum=4,
            maximum=config.max_row_bytes,
            align=4,
            locked=True,
            selector=table,
            description="bytes of a row",
        ),
        _select(gpu, 0x058, config.gpus, "GPU that HOT_* show"),
        *_address(
            config, "HOT_BASE", 0x05C, "address of slot 0 in the hot buffer", align=64, selector=gpu
        ),
        Register(
            name="HOT_STRIDE",
            offset=0x064,
            access=Access.RW,
            align=64,
            locked=True,
            description="bytes from slot to slot on every GPU; at least the largest row_bytes",
        ),
        _select(window, 0x068, config.windows, "address window that WINDOW_* show"),
        *_address(config, "WINDOW_LO", 0x06C, "first byte of the window", selector=window),
        *_address(
            config, "WINDOW_HI", 0x074, "last byte of the window; lo > hi: off", selector=window
        ),
    )


def _counters(config: Config) -> tuple[Register, ...]:
    counters: list[Register] = []
    for number, (name, meaning) in enumerate(COUNTERS.items()):
        for half, bits in enumerate(("31..0", "63..32")):
            counters.append(
                Register(
                    name=f"{name}_{('LO', 'HI')[half]}",
                    offset=0x088 + 8 * number + 4 * half,
                    access=Access.RO,
                    description=f"last snapshot of: {meaning}; bits {bits}",
                )
            )
    return (
        Register(
            name="COUNTERS",
            offset=0x080,
            access=Access.WO,
            minimum=1,
            maximum=3,
            description="counter commands; both together: snapshot, then clear",
            fields=(
                Field(name="snapshot", low=0, width=1, pulse=True, description="take a snapshot"),
                Field(name="clear", low=1, width=1, pulse=True, description="clear the counters"),
            ),
        ),
        Register(
            name="COUNTERS_SATURATED",
            offset=0x084,
            access=Access.RO,
            live=config.perf_counters,
            description="bit i: counter i stood at its end in the last snapshot",
            fields=tuple(
                Field(name=name.lower(), low=number, width=1, description=f"{name} saturated")
                for number, name in enumerate(COUNTERS)
            ),
        ),
        *counters,
    )


def register_map(config: Config) -> tuple[Register, ...]:
    """All registers of `config` by ascending offset.

    The windows are the one bank whose instances differ after reset: window 0 covers the whole
    address space (lo = 0, hi = 2**addr_width - 1), the others are off (lo = 1, hi = 0). The
    `reset` of the WINDOW_* registers is that of window 0.
    """
    every_address = (1 << config.addr_width) - 1
    caps = (
        Field(name="log2_lanes", low=0, width=4, description="log2 of keys a cycle"),
        Field(name="log2_ways", low=4, width=4, description="log2 of ways"),
        Field(name="log2_sets", low=8, width=8, description="log2 of sets"),
        Field(name="policy", low=16, width=4, description="0 srrip, 1 sample_aware"),
        Field(name="pool", low=20, width=1, description="POOL is built"),
        Field(name="scatter_add", low=21, width=1, description="ADD is built"),
        Field(name="log2_data_bytes", low=24, width=4, description="log2 of bytes a beat"),
        Field(name="gpus", low=28, width=4, description="hot-buffer base addresses"),
    )
    version = (
        Field(name="patch", low=0, width=8, description="patch level"),
        Field(name="minor", low=8, width=8, description="minor version"),
        Field(name="major", low=16, width=16, description="major version"),
    )
    major, minor, patch = VERSION
    reset = {"WINDOW_HI_LO": every_address & ALL_ONES, "WINDOW_HI_HI": every_address >> 32}
    registers = (
        _constant("ID", 0x000, IDENTITY, "identity, the letters HOTL"),
        _constant(
            "VERSION", 0x004, major << 16 | minor << 8 | patch, "version of the device", *version
        ),
        _constant("CONFIG_HASH", 0x008, config.config_hash, "hash of the configuration"),
        _constant("CAPS", 0x00C, capabilities(config), "what the device can do", *caps),
        *_control(),
        *_ring(config),
        *_selected(config),
        *_counters(config),
        Register(
            name="GPU_COUNT",
            offset=0x0E8,
            access=Access.RW,
            reset=config.gpus,
            minimum=1,
            maximum=config.gpus,
            locked=True,
            description="GPUs that take part in GATHER_HOT and FILL",
        ),
    )
    return tuple(
        replace(register, reset=reset[register.name]) if register.name in reset else register
        for register in registers
    )
