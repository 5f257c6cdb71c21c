"""What a descriptor asks for, decoded (spec section 7)."""

from __future__ import annotations

from functools import partial

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hotline.gen.commands import COMMANDS, Flag, Opcode, is_built, known_flags
from hotline.gen.config import Config
from hotline.rtl.interfaces import count_bits

__all__ = ["JobDecoder", "is_command", "job"]

#: Words of a descriptor.
_WORDS = 16


def job(config: Config) -> data.StructLayout:
    """The running descriptor, decoded; holds from the start of a command to its end.

    `opcode`, `gather`, `gather_hot` and `pool` (flags of SPLIT), `scan_all` and `fill`
    (COMMIT with ALL, FILL), `back` (FILL with BACK), `add` (SCATTER with ADD), `one_hot`, `count`,
    `num_tables`, `num_keys`, and the addresses in bytes; `lists` is that of the last SPLIT's keys
    for GATHER LAST.
    """
    return data.StructLayout(
        {
            "opcode": 4,
            "gather": 1,
            "gather_hot": 1,
            "pool": 1,
            "scan_all": 1,
            "fill": 1,
            "back": 1,
            "add": 1,
            "one_hot": 1,
            "count": count_bits(config),
            "num_tables": config.max_tables.bit_length(),
            "num_keys": 31,
            "indices": config.addr_width,
            "lengths": config.addr_width,
            "lists": config.addr_width,
            "rows": config.addr_width,
            "weights": config.addr_width,
        }
    )


def is_command(config: Config, opcode: Value, *codes: Opcode) -> Value:
    """Whether `opcode` is one of `codes`; constant for commands that are not built."""
    return opcode.matches(*(code for code in codes if is_built(config, code)))


class JobDecoder(wiring.Component):
    """Decodes a descriptor, in registers, since every block hangs on it (in a device of rows
    alone, where there is little to decode, only what no block but this one needs).

    The registers have no enable: a descriptor is stable for the whole check of it, which takes
    longer than the three cycles that this takes. Reset does not matter.

    Parameters
    ----------
    config : Config
        The configuration.

    Members
    -------
    words : In
        The descriptor.
    last_count, last_keys : In
        Rows of the last SPLIT's keys, and their address: for GATHER LAST.
    job : Out
    nothing, sweeps, split, gather, commit, learns : Out(1)
        The opcode is NOP; CLEAR or AGE; SPLIT; GATHER; COMMIT; LEARN or LOAD. Constant for commands
        that are not built.
    empty : Out(1)
        There is nothing to do: the command takes a count, and that is 0.
    per_sample, per_key : Out
        Bytes of the regions of SPLIT that have a word a sample, and a word a key.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "words": In(32).array(_WORDS),
                "last_count": In(32),
                "last_keys": In(config.addr_width),
                "job": Out(job(config)),
                "nothing": Out(1),
                "sweeps": Out(1),
                "split": Out(1),
                "gather": Out(1),
                "commit": Out(1),
                "learns": Out(1),
                "empty": Out(1),
                "per_sample": Out(38),
                "per_key": Out(38),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words, now = self.words, self.job
        opcode, flags = words[0][0:8], words[0][8:16]
        last, takes_count = Signal(), Signal()

        runs = partial(is_command, self.config, opcode)

        def flag(of: Opcode, bit: Flag) -> Value:
            return runs(of) & (flags & known_flags(self.config, of) & bit).any()

        m.d.sync += [
            self.nothing.eq(runs(Opcode.NOP)),
            self.sweeps.eq(runs(Opcode.CLEAR, Opcode.AGE)),
            self.split.eq(runs(Opcode.SPLIT)),
            self.gather.eq(runs(Opcode.GATHER)),
            self.commit.eq(runs(Opcode.COMMIT)),
            self.learns.eq(runs(Opcode.LEARN, Opcode.LOAD)),
            last.eq(flag(Opcode.GATHER, Flag.GATHER_LAST)),
            takes_count.eq(runs(*(code for code, command in COMMANDS.items() if command.count))),
            self.empty.eq(takes_count & (now.count == 0)),
            self.per_sample.eq(_region(now.count)),
            self.per_key.eq(_region(words[3][:31])),
            now.gather.eq(flag(Opcode.SPLIT, Flag.SPLIT_GATHER)),
            now.gather_hot.eq(flag(Opcode.SPLIT, Flag.SPLIT_GATHER_HOT)),
            now.pool.eq(flag(Opcode.SPLIT, Flag.SPLIT_POOL)),
            now.fill.eq(flag(Opcode.COMMIT, Flag.COMMIT_FILL)),
            now.add.eq(flag(Opcode.SCATTER, Flag.SCATTER_ADD)),
            now.back.eq(flag(Opcode.FILL, Flag.FILL_BACK)),
            now.one_hot.eq(Cat(words[6], words[7]) == 0),
        ]
        # Without a SPLIT there is nothing to choose from.
        chosen = m.d.sync if self.config.hot_table else m.d.comb
        chosen += [
            now.opcode.eq(opcode[:4]),
            now.count.eq(Mux(last, self.last_count, words[1])),
            now.lists.eq(Mux(last, self.last_keys, Cat(words[8], words[9]))),
        ]
        m.d.comb += [
            now.scan_all.eq((flags & Flag.COMMIT_ALL).any()),
            now.num_tables.eq(words[2]),
            now.num_keys.eq(words[3]),
            now.indices.eq(Cat(words[4], words[5])),
            now.lengths.eq(Cat(words[6], words[7])),
            now.rows.eq(Cat(words[10], words[11])),
            now.weights.eq(Cat(words[12], words[13])),
        ]
        return m


def _region(count: Value) -> Value:
    """Bytes of a region of `count` words, rounded up to 64."""
    return ((count + 15) >> 4) << 6
