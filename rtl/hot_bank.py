"""A bank of the hot table: all its ways, compare on two ports, pipelined update on one.

Source: spec sections 4 and 5. Stages, each one cycle:

==  =====================================================================================
S0  request registers drive the memory addresses
S1  memory outputs
S2  entry registers; compare with the tags and among the ways
S3  outcome registers; choose the victim, decide which ways change
S4  decision registers: the results leave here; select what to write
S5  write registers drive the memory's write port
==  =====================================================================================

With more than two lanes, what S4 and S5 write also goes to the entry registers of a request that
has read the same set before.
"""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hotline.gen.config import Config
from hotline.rtl.entry_forward import EntryForward
from hotline.rtl.feistel import hash_count
from hotline.rtl.hot_outlook import WayOutlook, chances, random_bits
from hotline.rtl.hot_update import (
    BankOp,
    NewEntries,
    UpdateDecision,
    entry_layout,
    entry_status,
    entry_valid,
    index_width,
    state_bits,
    way_outlook,
)

__all__ = ["READ_LATENCY", "RESULT_LATENCY", "HotBank", "bank_request", "update_distance"]

#: Cycles from a request at the port to `entries`, and to the results.
READ_LATENCY = 3
RESULT_LATENCY = 5

#: Cycles from an update to the next one of the same set, where entries are forwarded.
_FORWARD_DISTANCE = 3
#: Bits of tracker.md's u.
_RANDOM_BITS = 16


def hash_array(config: Config) -> data.ArrayLayout:
    """All distinct h_w of a key."""
    return data.ArrayLayout(config.key_bits - config.bank_bits, hash_count(config))


def bank_request(config: Config) -> data.StructLayout:
    """What port A of a bank does: `hash` holds the h_w; the rest as in `learn_context`."""
    members = {"op": BankOp, "hash": hash_array(config)}
    if config.sample_aware:
        members |= {"hit": unsigned(1), "x_zero": unsigned(1), "y": unsigned(2)}
        members |= {"random": unsigned(_RANDOM_BITS)}
    return data.StructLayout(members)


def update_distance(config: Config) -> int:
    """Fewest cycles from an update to the next one of the same set."""
    return _FORWARD_DISTANCE if _forwards(config) else RESULT_LATENCY + 1


def _forwards(config: Config) -> bool:
    """With more than two lanes the same hot key of two samples is a few cycles apart."""
    return config.lanes > 2


class HotBank(wiring.Component):
    """One bank of the hot table.

    One request a cycle on each port, results in order after a fixed RESULT_LATENCY. Port A takes
    every operation, port B look-ups only (it shares its address with the writes). An update of a
    set leaves S0 no sooner than :func:`update_distance` cycles after the one before: while it waits
    there `hold` is high, and no port of any bank may be given a request.
    Look-ups do not wait: the user gives none fewer than RESULT_LATENCY + 1 cycles after a writing
    request. Reset empties the pipeline, not the memory.

    Parameters
    ----------
    config : Config
        Validated configuration.

    Members
    -------
    a : In(bank_request)
    a_valid : In(1)
    a_lanes : In(lanes)
        Which lanes get the result; passed through.
    a_result, a_result_lanes : Out(ways), Out(lanes)
        One-hot way that holds the key or has taken it, for these lanes; lanes = 0 if no result.
    b_hash, b_lanes, b_result, b_result_lanes
        The same for look-ups on port B; lanes = 0 means no request. Only if lanes > 1.
    hold : Out(1)
    entries : Out(ArrayLayout(entry, ways))
        Entries that port A read, READ_LATENCY cycles after the request.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.dual = config.lanes > 1
        members = {
            "a": In(bank_request(config)),
            "a_valid": In(1),
            "a_lanes": In(config.lanes),
            "a_result": Out(config.ways),
            "a_result_lanes": Out(config.lanes),
            "hold": Out(1),
            "entries": Out(data.ArrayLayout(entry_layout(config), config.ways)),
        }
        if self.dual:
            members |= {
                "b_hash": In(hash_array(config)),
                "b_lanes": In(config.lanes),
                "b_result": Out(config.ways),
                "b_result_lanes": Out(config.lanes),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        ways = range(config.ways)
        entries = data.ArrayLayout(entry_layout(config), config.ways)

        # S0. `a` keeps its place while it waits for an earlier write.
        request = Signal(bank_request(config), reset_less=True)
        writes = Signal(RESULT_LATENCY)
        with m.If(~self.hold):
            m.d.sync += request.eq(self.a)
            changes = (self.a.op != BankOp.LOOKUP) & (self.a.op != BankOp.READ)
            m.d.sync += writes[0].eq(self.a_valid & changes)
        indices = [self._indices(request.hash)]
        tags = [self._tags(request.hash)]
        ops = [request.op]

        # S1: memory outputs; S2: entries; S3: outcome; S4: decision.
        for stage in range(1, RESULT_LATENCY):
            m.d.sync += writes[stage].eq(writes[stage - 1] & ~(self.hold if stage == 1 else 0))
            indices.append(self._delayed(m, f"index_{stage}", indices[-1]))
            tags.append(self._delayed(m, f"tag_{stage}", tags[-1]))
            ops.append(self._delayed(m, f"op_{stage}", [ops[-1]])[0])
        self._interlock(m, writes, indices)

        write, write_tag = Signal(config.ways), Signal(config.ways)
        written = Signal(data.ArrayLayout(entry_status(config), config.ways), reset_less=True)
        address = self._delayed(m, "index_5", indices[4])
        written_tag = self._delayed(m, "tag_5", tags[4])
        read_a = Signal(entries)
        read_b = Signal(entries)
        b_hash = self._register(m, "b_hash_0", self.b_hash) if self.dual else None
        b_indices = self._indices(b_hash) if b_hash is not None else None
        for way in ways:
            # One address for reading and writing on port B: then it is one physical port.
            shared = Signal(index_width(config), name=f"shared_{way}")
            m.d.comb += shared.eq(address[way])
            if b_indices is not None:
                m.d.comb += shared.eq(Mux(write[way], address[way], b_indices[way]))
            # State and tag apart, since a tag changes only with the key: an update need not carry
            # the old one along to write it back.
            parts = (
                ("state", entry_status(config), written[way], write[way]),
                ("tag", unsigned(config.tag_bits), written_tag[way], write_tag[way]),
            )
            ports_a, ports_b = [], []
            for name, shape, value, enable in parts:
                memory = Memory(
                    shape=shape,
                    depth=1 << index_width(config),
                    init=[],
                    attrs={"no_rw_check": 1},
                )
                m.submodules[f"way_{way}_{name}"] = memory
                port_a, port_w = memory.read_port(), memory.write_port()
                m.d.comb += [
                    port_a.addr.eq(indices[0][way]),
                    port_w.en.eq(enable),
                    port_w.data.eq(value),
                    port_w.addr.eq(shared),
                ]
                ports_a.append(Value.cast(port_a.data))
                if b_indices is not None:
                    port_b = memory.read_port()
                    m.d.comb += port_b.addr.eq(shared)
                    ports_b.append(Value.cast(port_b.data))
            m.d.comb += read_a[way].eq(Cat(*ports_a))
            if b_indices is not None:
                m.d.comb += read_b[way].eq(Cat(*ports_b))

        # S2.
        entry = Signal(entries, reset_less=True)
        m.d.comb += self.entries.eq(entry)
        m.submodules.outlook = outlook = WayOutlook(config)
        m.d.comb += outlook.op.eq(ops[2])
        for way in ways:
            m.d.comb += outlook.state[way].eq(entry[way].state)

        # S3.
        match = self._register(m, "match", self._compare(entry, tags[2]))
        outcome = Signal(way_outlook(config), reset_less=True)
        old = self._register(m, "old_3", Cat(entry[way].state for way in ways))
        changed = self._register(m, "changed_3", Cat(entry[way].changed for way in ways))
        m.submodules.decision = decision = UpdateDecision(config)
        m.d.sync += outcome.eq(outlook.outlook)
        m.d.comb += [
            decision.op.eq(ops[3]),
            decision.match.eq(match),
            decision.outlook.eq(outcome),
        ]
        for way in ways:
            m.d.comb += decision.old[way].eq(old.word_select(way, state_bits(config)))
        if config.sample_aware:
            self._context(m, request, outlook, decision)

        # S4.
        m.submodules.new = new = NewEntries(config)
        insert = self._register(m, "insert", decision.insert)
        change = self._register(m, "change", decision.change)
        for target, value in (
            (self.a_result, decision.result),
            (new.state, decision.state),
            (new.gap, decision.gap),
            (new.changed, changed),
        ):
            m.d.comb += target.eq(self._register(m, "decided", value))
        m.d.comb += [
            self.a_result_lanes.eq(
                self._delayed_lanes(m, "a", self.a_lanes & self.a_valid.replicate(config.lanes))
            ),
            new.insert.eq(insert),
            new.unmark.eq((ops[4] == BankOp.CLEAR) | (ops[4] == BankOp.UNMARK)),
        ]

        # S5.
        writing, tagging = Signal(config.ways), Signal(config.ways)
        m.d.comb += [
            writing.eq((insert | change) & writes[4].replicate(config.ways)),
            tagging.eq(insert & writes[4].replicate(config.ways)),
        ]
        m.d.sync += [write.eq(writing), write_tag.eq(tagging), written.eq(new.new)]
        if _forwards(config):
            m.submodules.forward = forward = EntryForward(config)
            decided, leaving = forward.decided, forward.leaving
            m.d.comb += [
                decided.change.eq(writing),
                decided.insert.eq(tagging),
                decided.status.eq(new.new),
                leaving.change.eq(write),
                leaving.insert.eq(write_tag),
                leaving.status.eq(written),
                forward.read.eq(read_a),
            ]
            for way in ways:
                m.d.comb += [
                    forward.asked[way].eq(indices[0][way]),
                    forward.coming[way].eq(indices[3][way]),
                    decided.index[way].eq(indices[4][way]),
                    decided.tag[way].eq(tags[4][way]),
                    leaving.index[way].eq(address[way]),
                    leaving.tag[way].eq(written_tag[way]),
                ]
            m.d.sync += entry.eq(forward.entries)
        else:
            m.d.sync += entry.eq(read_a)
        if b_hash is not None:
            self._port_b(m, b_hash, read_b)
        return m

    def _context(
        self, m: Module, request: data.View, outlook: WayOutlook, decision: UpdateDecision
    ) -> None:
        """Carry tracker.md's per-sample context to where it is used."""
        config = self.config
        last = request.hash[hash_count(config) - 1]
        u = (request.random ^ last[8:24])[:_RANDOM_BITS]
        low = self._register(m, "u_1", u[: random_bits(config)])
        learn = self._register(m, "learn_1", Cat(request.x_zero, request.y))
        step, rise = chances(config, low, learn[0], learn[1:])
        hit: Value = request.hit
        start: Value = u[14:16]
        for stage in (1, 2, 3):
            hit = self._register(m, f"hit_{stage}", hit)
            start = self._register(m, f"start_{stage}", start)
            if stage == 2:
                m.d.comb += outlook.hit.eq(hit)
        m.d.comb += [
            outlook.step.eq(self._register(m, "step_2", step)),
            outlook.rise.eq(self._register(m, "rise_2", rise)),
            decision.hit.eq(hit),
            decision.start.eq(start),
        ]

    def _interlock(self, m: Module, writes: Signal, indices: list[list[Value]]) -> None:
        """Count down how long the request that enters S0 must wait for writes before it.

        `wait[n]` set: not before n + 1 cycles from now. What the request in stage s at the time of
        entry writes can be had `longest` - s cycles after it.
        """
        longest = update_distance(self.config) - 1
        wait = Signal(longest)
        arriving = self._indices(self.a.hash)
        blocked = Signal(longest)
        for stage in range(longest):
            same = Cat(
                arriving[way] == indices[stage][way]
                for way in range(len(arriving) if self.config.sample_aware else 1)
            )
            m.d.comb += blocked[stage].eq(self.a_valid & writes[stage] & same.any())
        # All bits below the highest one are set too, so that one bit is all that `hold` needs.
        m.d.comb += self.hold.eq(wait[0])
        with m.If(self.hold):
            m.d.sync += wait.eq(wait >> 1)
        with m.Else():
            for n in range(longest):
                m.d.sync += wait[n].eq(blocked[: longest - n].any())

    def _port_b(self, m: Module, b_hash: data.View, read: data.View) -> None:
        tags = self._tags(b_hash)
        for stage in (1, 2):
            tags = self._delayed(m, f"b_tag_{stage}", tags)
        entry = self._register(m, "b_entry", read)
        match = self._register(m, "b_match", self._compare(entry, tags))
        m.d.sync += self.b_result.eq(match)
        m.d.comb += self.b_result_lanes.eq(self._delayed_lanes(m, "b", self.b_lanes))

    def _delayed_lanes(self, m: Module, port: str, lanes: Value) -> Signal:
        """Lane masks, in step with S4; port A's first stage waits with its request."""
        for stage in range(RESULT_LATENCY):
            register = Signal(self.config.lanes, name=f"{port}_lanes_{stage}")
            if port == "a" and stage == 0:
                with m.If(~self.hold):
                    m.d.sync += register.eq(lanes)
            elif port == "a" and stage == 1:
                m.d.sync += register.eq(Mux(self.hold, 0, lanes))
            else:
                m.d.sync += register.eq(lanes)
            lanes = register
        return register

    def _compare(self, entry: data.View, tags: list[Value]) -> Value:
        return Cat(
            entry_valid(self.config, entry[way].state) & (entry[way].tag == tags[way])
            for way in range(self.config.ways)
        )

    def _indices(self, hashes: data.View) -> list[Value]:
        bits = self.config.index_bits
        values = [hashes[n][:bits] if bits else Const(0, 1) for n in range(hash_count(self.config))]
        return values if self.config.sample_aware else values * self.config.ways

    def _tags(self, hashes: data.View) -> list[Value]:
        bits = self.config.index_bits
        values = [hashes[n][bits:] for n in range(hash_count(self.config))]
        return values if self.config.sample_aware else values * self.config.ways

    def _register(self, m: Module, name: str, value: data.View | Value) -> Any:
        register = Signal(value.shape(), name=name, reset_less=True)
        m.d.sync += register.eq(value)
        return register

    def _delayed(self, m: Module, name: str, values: list[Value]) -> list[Value]:
        """The values one cycle later; equal values share a register."""
        made: dict[int, Value] = {}
        for number, value in enumerate(values):
            if id(value) in made:
                continue
            shape = BankOp if not isinstance(value, Value) else unsigned(len(value))
            register = Signal(shape, name=f"{name}_{number}", reset_less=True)
            m.d.sync += register.eq(value)
            made[id(value)] = register
        return [made[id(value)] for value in values]
