"""The golden classifier against a plain transcription of spec section 7."""

from __future__ import annotations

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hotline.gen.presets import preset
from hotline.golden.classifier import Classifier


def transcription(
    offsets: list[int], hit: list[bool], slot: list[int], z: list[int], entries: int, all_rows: bool
) -> dict:
    """SPLIT in plain Python."""
    out: dict = {name: [] for name in ("popular", "nonpopular")}
    out |= {"popular_slots": [], "nonpopular_slots": [], "source": []}
    store: dict[int, tuple[int, int]] = {}
    out |= {"replacements": 0, "shared": 0}
    for sample in range(len(offsets) - 1):
        keys = range(offsets[sample], offsets[sample + 1])
        if all(hit[i] for i in keys):
            out["popular"].append(sample)
            out["popular_slots"] += [slot[i] for i in keys]
            continue
        out["nonpopular"].append(sample)
        for i in keys:
            if hit[i] and not all_rows:
                out["nonpopular_slots"].append(slot[i])
                continue
            place = z[i] % entries if entries else None
            if place in store and store[place][0] == z[i]:
                out["shared"] += 1
                out["nonpopular_slots"].append(0x80000000 + store[place][1])
                continue
            g = len(out["source"])
            if entries:
                out["replacements"] += place in store
                store[place] = (z[i], g)
            else:
                out["replacements"] += 1  # so that word 6 equals word 3
            out["source"].append(i)
            out["nonpopular_slots"].append(0x80000000 + g)
    return out


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_matches_transcription(data: st.DataObject) -> None:
    entries = data.draw(st.sampled_from([0, 1, 4, 64]))
    seed, all_rows = data.draw(st.integers(0, 2**32 - 1)), data.draw(st.booleans())
    note(f"seed {seed}")
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 5, rng.integers(0, 40)))])
    z = rng.integers(0, rng.integers(1, 100), offsets[-1])
    table = rng.random(100) < rng.random()
    hit = table[z]
    result = Classifier(preset("ecp5").replace(dedup_entries=entries)).classify(
        offsets, hit, z + 1000, z, all_rows
    )
    slots = (z + 1000).tolist()
    expected = transcription(offsets.tolist(), hit.tolist(), slots, z.tolist(), entries, all_rows)
    for name, value in expected.items():
        got = getattr(result, name)
        assert (got.tolist() if isinstance(got, np.ndarray) else got) == value, name
    assert (result.hits, result.misses) == (hit.sum(), (~hit).sum())
    if entries == 0:
        assert (result.replacements, result.shared) == (len(expected["source"]), 0)
