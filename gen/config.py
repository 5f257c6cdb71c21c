"""The one configuration object that makes RTL, golden model, registers and documents.

Source: spec section 3 (parameters and ranges) and section 8 (CONFIG_HASH).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

__all__ = ["POLICIES", "Config", "RowsConfig", "ceil_log2", "log2"]

#: Replacement policies of the hot table; the position is the code in CAPS[19:16].
POLICIES = ("srrip", "sample_aware")


def log2(value: int) -> int:
    """Exact base-2 logarithm of a power of two."""
    if value < 1 or value & (value - 1):
        raise ValueError(f"log2 needs a power of two, not {value}")
    return value.bit_length() - 1


def ceil_log2(value: int) -> int:
    """Bits that number `value` things: the smallest n with 2**n >= value."""
    return max(0, value - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class Config:
    """All parameters of spec section 3. Validated on construction, then frozen.

    Parameters
    ----------
    table_bits, row_bits : int
        Widths of the two halves of a key, 1..10 and 8..32 bits.
    sets, ways, banks : int
        Shape of the hot table: powers of two, ways 1..8, banks <= sets.
    policy : str
        ``"srrip"`` or ``"sample_aware"``.
    counter_bits : int
        RRPV bits (``srrip``) or counter bits (``sample_aware``), 2..4.
    learn_group : int
        Samples per learning group, 1..64.
    max_sample_keys : int
        Longest sample in keys, 16..65536.
    lanes : int
        Keys looked up per cycle: 1, 2, 4, 8 or 16.
    addr_width, data_width, id_width : int
        AXI4 master widths in bits.
    read_outstanding, write_outstanding : int
        Bursts in flight, 1..512.
    max_burst_beats : int
        Longest AXI4 INCR burst in beats, 1..256.
    max_tables, max_row_bytes : int
        Number of table registers, and the longest row in bytes.
    dedup_entries : int
        Entries of the seen-keys store of SPLIT, 0 or a power of two.
    pool, scatter_add, perf_counters : bool
        Optional units.
    gpus : int
        Hot-buffer base addresses, 1..8.

    Raises
    ------
    ValueError
        A parameter outside its range. The sentence names value and range.
    TypeError
        A parameter of the wrong type, or one that does not exist.
    """

    table_bits: int
    row_bits: int
    sets: int
    ways: int
    banks: int
    policy: str
    counter_bits: int
    learn_group: int
    max_sample_keys: int
    lanes: int
    addr_width: int
    data_width: int
    id_width: int
    read_outstanding: int
    write_outstanding: int
    max_burst_beats: int
    max_tables: int
    max_row_bytes: int
    dedup_entries: int
    pool: bool
    scatter_add: bool
    gpus: int
    perf_counters: bool

    #: Whether all commands are built; see :class:`RowsConfig`.
    hot_table: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_types()
        _in_range("table_bits", self.table_bits, 1, 10)
        _in_range("row_bits", self.row_bits, 8, 32)
        _power_of_two("sets", self.sets, 1, 1 << 31)
        _power_of_two("ways", self.ways, 1, 8)
        _power_of_two("banks", self.banks, 1, 1 << 31)
        if self.policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {self.policy!r}")
        _in_range("counter_bits", self.counter_bits, 2, 4)
        _in_range("learn_group", self.learn_group, 1, 64)
        _in_range("max_sample_keys", self.max_sample_keys, 16, 65536)
        _one_of("lanes", self.lanes, (1, 2, 4, 8, 16))
        _in_range("addr_width", self.addr_width, 32 if self.hot_table else 16, 64)
        _one_of("data_width", self.data_width, (32, 64, 128, 256, 512))
        _in_range("id_width", self.id_width, 1, 8)
        _in_range("read_outstanding", self.read_outstanding, 1, 512)
        _in_range("write_outstanding", self.write_outstanding, 1, 512)
        _in_range("max_burst_beats", self.max_burst_beats, 1, 256)
        _in_range("max_tables", self.max_tables, 1, 1 << self.table_bits)
        _in_range("max_row_bytes", self.max_row_bytes, 4, 4096)
        if self.dedup_entries != 0:
            _power_of_two("dedup_entries", self.dedup_entries, 1, 1 << min(24, self.key_bits - 1))
        _in_range("gpus", self.gpus, 1, 8)
        self._check_shape()

    def _check_types(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), field.type
            if kind == "int" and (not isinstance(value, int) or isinstance(value, bool)):
                raise TypeError(f"{field.name} must be an integer, not {value!r}")
            if kind == "bool" and not isinstance(value, bool):
                raise TypeError(f"{field.name} must be true or false, not {value!r}")
            if kind == "str" and not isinstance(value, str):
                raise TypeError(f"{field.name} must be a string, not {value!r}")

    def _check_shape(self) -> None:
        if self.banks > self.sets:
            raise ValueError(f"banks must be at most sets ({self.sets}), not {self.banks}")
        if self.key_bits - self.bank_bits < 2:
            raise ValueError(
                f"banks must be at most 2**(table_bits + row_bits - 2) "
                f"({1 << (self.key_bits - 2)}), not {self.banks}"
            )
        if self.key_bits <= self.set_bits:
            raise ValueError(
                f"sets must be less than 2**(table_bits + row_bits) "
                f"({1 << self.key_bits}), not {self.sets}"
            )
        if self.learn_group * self.max_sample_keys > 65536:
            raise ValueError(
                f"learn_group * max_sample_keys must be at most 65536, "
                f"not {self.learn_group * self.max_sample_keys}"
            )

    # ---- construction -------------------------------------------------------------------------

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Config:
        """Configuration from a plain mapping that names every parameter, and no other.

        Beside them it may have `hot_table`; false makes a :class:`RowsConfig`.
        """
        values = dict(values)
        hot_table = values.pop("hot_table", cls.hot_table)
        if not isinstance(hot_table, bool):
            raise TypeError(f"hot_table must be true or false, not {hot_table!r}")
        names = [field.name for field in fields(cls)]
        unknown = [name for name in values if name not in names]
        if unknown:
            raise TypeError(
                f"unknown parameter {unknown[0]!r}; the parameters are {', '.join(names)}"
            )
        missing = [name for name in names if name not in values]
        if missing:
            raise TypeError(f"missing parameter {missing[0]!r}")
        return (Config if hot_table else RowsConfig)(**values)

    @classmethod
    def from_toml(cls, path: str | Path) -> Config:
        """Configuration from a TOML file: a flat table of parameters.

        The key ``preset`` may name a preset that the other keys change.

        Raises
        ------
        ValueError, TypeError
            The file is not TOML, or what it says is not a valid configuration.
        OSError
            The file cannot be read.
        """
        from hotline.gen.presets import preset

        try:
            values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not TOML: {error}") from None
        base = values.pop("preset", None)
        if base is None:
            return cls.from_dict(values)
        named = preset(base)
        return cls.from_dict(asdict(named) | {"hot_table": named.hot_table} | values)

    def replace(self, **changes: Any) -> Config:
        """A copy with some parameters changed, validated again."""
        return replace(self, **changes)

    # ---- canonical form -----------------------------------------------------------------------

    def canonical_json(self) -> str:
        """The exact text that CONFIG_HASH is taken of (spec section 8)."""
        return _canonical(asdict(self))

    @property
    def config_hash(self) -> int:
        """CONFIG_HASH: the first 32 bits of SHA-256 of :meth:`canonical_json`."""
        return int(hashlib.sha256(self.canonical_json().encode()).hexdigest()[:8], 16)

    # ---- derived: hot table -------------------------------------------------------------------

    @property
    def key_bits(self) -> int:
        """K, bits of a key."""
        return self.table_bits + self.row_bits

    @property
    def bank_bits(self) -> int:
        """beta = log2(banks)."""
        return log2(self.banks)

    @property
    def set_bits(self) -> int:
        """s = log2(sets)."""
        return log2(self.sets)

    @property
    def index_bits(self) -> int:
        """Bits of the index within a bank, s - beta; may be 0."""
        return self.set_bits - self.bank_bits

    @property
    def bank_depth(self) -> int:
        """Entries of one way of one bank."""
        return self.sets // self.banks

    @property
    def tag_bits(self) -> int:
        """Bits of a tag, K - s."""
        return self.key_bits - self.set_bits

    @property
    def way_bits(self) -> int:
        """log2(ways); may be 0."""
        return log2(self.ways)

    @property
    def slots(self) -> int:
        """Positions of the hot table, sets * ways."""
        return self.sets * self.ways

    @property
    def slot_bits(self) -> int:
        """Bits that hold a slot number; at least 1."""
        return max(1, ceil_log2(self.slots))

    @property
    def sample_aware(self) -> bool:
        """Whether the policy is ``sample_aware``."""
        return self.policy == "sample_aware"

    @property
    def reference_bits(self) -> int:
        """Width of the register R of ``sample_aware`` (tracker.md)."""
        return 10 + ceil_log2(self.max_sample_keys + 1)

    # ---- derived: bus -------------------------------------------------------------------------

    @property
    def windows(self) -> int:
        """Address windows: 4, or 1 in a device without a hot table."""
        return 4 if self.hot_table else 1

    @property
    def narrow(self) -> bool:
        """A 32-bit bus: the shape for small devices, where a LUT counts for more than a cycle."""
        return self.data_width == 32

    @property
    def data_bytes(self) -> int:
        """Bytes of a bus beat."""
        return self.data_width // 8

    @property
    def data_words(self) -> int:
        """32-bit words of a bus beat."""
        return self.data_width // 32

    @property
    def keys_per_beat(self) -> int:
        """u64 entries of the `keys` list that travel together: those of a beat, at least 1."""
        return max(1, self.data_width // 64)

    def row_stride(self, row_bytes: int) -> int:
        """Distance in bytes of dense rows: `row_bytes` rounded up to the bus (spec section 7)."""
        return -(-row_bytes // self.data_bytes) * self.data_bytes


@dataclass(frozen=True, kw_only=True)
class RowsConfig(Config):
    """A device that moves rows and does nothing else: NOP, GATHER without LAST, and SCATTER.

    The specification has no such device; it is for FPGAs that a whole one does not fit. It has no
    hot table: what needs one, and FILL, answers as not built. It has one address window, and
    `addr_width` is 16..64. In :meth:`canonical_json` it has the parameter ``hot_table``, false.
    """

    hot_table: ClassVar[bool] = False

    def canonical_json(self) -> str:
        """The exact text that CONFIG_HASH is taken of."""
        return _canonical(asdict(self) | {"hot_table": False})


def _canonical(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _in_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {value}")


def _one_of(name: str, value: int, allowed: tuple[int, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value}")


def _power_of_two(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high or value & (value - 1):
        raise ValueError(f"{name} must be a power of two from {low} to {high}, not {value}")
