"""Round-robin choice with a registered grant."""

from __future__ import annotations

from amaranth import Cat, Mux, Value

__all__ = ["next_grant"]


def _lowest(bits: list[Value]) -> Value:
    """One-hot of the lowest bit that is set."""
    picked, above = [], None
    for bit in bits:
        picked.append(bit if above is None else bit & ~above)
        above = bit if above is None else above | bit
    return Cat(*picked)


def next_grant(grant: Value, want: Value) -> Value:
    """The grant of the next cycle: the next requester in turn, else the present one stays.

    Choosing a cycle ahead keeps `ready` independent of the requesters' `valid`, so the choice
    costs no combinational path through the stream. Nothing is lost by it: every requester but
    the granted one is known to be still there in the next cycle, because `valid` holds.

    Parameters
    ----------
    grant : Value
        Present grant, one-hot.
    want : Value
        Who could transfer.
    """
    others = want & ~grant
    size = len(grant)
    upper = [others[i] & grant[:i].any() if i else others[0] & 0 for i in range(size)]
    wrapped = Mux(Cat(*upper).any(), _lowest(upper), _lowest([others[i] for i in range(size)]))
    return Mux(others.any(), wrapped, grant)
