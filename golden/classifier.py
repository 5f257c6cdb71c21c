"""The mini-batch classifier: popular and non-popular samples, row numbers, deduplication."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from hotline.gen.config import Config

__all__ = ["HOT_ROW", "NEEDS_ROW", "Classification", "Classifier"]

#: Bit 31 of an entry of `nonpopular_slots`: the rest is the row number g, not a slot.
NEEDS_ROW = 0x80000000
#: Bit 63 of an entry of `keys`: the row is hot (GATHER_HOT).
HOT_ROW = 1 << 63


@njit(nogil=True)
def _number(offsets, hit, slot, z, all_rows, store, popular, entries, source):  # type: ignore[no-untyped-def]
    """Marks popular samples, fills `entries` by key and `source` by row number.

    `store` [n, 2] holds z and g, z < 0 meaning empty; n = 0: no deduplication. Returns (rows,
    replacements, shared).
    """
    rows = 0
    replacements = 0
    shared = 0
    for sample in range(offsets.shape[0] - 1):
        every = True
        for i in range(offsets[sample], offsets[sample + 1]):
            every = every and hit[i]
        popular[sample] = every
        for i in range(offsets[sample], offsets[sample + 1]):
            if every or (hit[i] and not all_rows):
                entries[i] = slot[i]
                continue
            place = 0
            if store.shape[0] > 0:
                place = z[i] & (store.shape[0] - 1)
                if store[place, 0] == z[i]:
                    entries[i] = 0x80000000 | store[place, 1]
                    shared += 1
                    continue
                if store[place, 0] >= 0:
                    replacements += 1
                store[place, 0] = z[i]
                store[place, 1] = rows
            entries[i] = 0x80000000 | rows
            source[rows] = i
            rows += 1
    if store.shape[0] == 0:
        # Nothing is known to be there once: word 6 says so by equalling word 3 (section 7).
        replacements = rows
    return rows, replacements, shared


@dataclass(frozen=True)
class Classification:
    """What SPLIT finds out.

    Parameters
    ----------
    popular, nonpopular : uint32 [.]
        Sample numbers, ascending.
    popular_slots, nonpopular_slots : uint32 [.]
        By key of the popular, non-popular samples.
    source : int64 [rows]
        Position in the stream of the key that first needed each row.
    cold : bool [n]
        Keys of non-popular samples that missed, by position in the stream.
    in_nonpopular : bool [n]
        Keys of non-popular samples.
    hits, misses, replacements, shared : int
        Words 4 to 6 of the record, and the addend of ROWS_SHARED.
    """

    popular: np.ndarray
    nonpopular: np.ndarray
    popular_slots: np.ndarray
    nonpopular_slots: np.ndarray
    source: np.ndarray
    cold: np.ndarray
    in_nonpopular: np.ndarray
    hits: int
    misses: int
    replacements: int
    shared: int


class Classifier:
    """Classifies the samples of a mini-batch by what the hot table said of their keys.

    Parameters
    ----------
    config : Config
        Gives `dedup_entries`.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def classify(
        self,
        offsets: np.ndarray,
        hit: np.ndarray,
        slot: np.ndarray,
        z: np.ndarray,
        all_rows: bool = False,
    ) -> Classification:
        """One SPLIT, its seen-keys store empty at the start.

        Parameters
        ----------
        offsets : int64 [samples + 1]
            Sample i has keys offsets[i] .. offsets[i + 1] - 1.
        hit : bool [n]
        slot : int64 [n]
            Answers of the hot table; the slot of a miss does not matter.
        z : int64 [n]
            Permuted keys.
        all_rows : bool
            GATHER_HOT: hot keys of non-popular samples need a row too.
        """
        samples, keys = offsets.shape[0] - 1, hit.shape[0]
        store = np.full((self.config.dedup_entries, 2), -1, np.int64)
        popular = np.empty(samples, np.bool_)
        entries = np.empty(keys, np.int64)
        source = np.empty(keys, np.int64)
        rows, replacements, shared = _number(
            offsets, hit, slot, z, all_rows, store, popular, entries, source
        )
        in_popular = np.repeat(popular, np.diff(offsets))
        hits = int(hit.sum())
        return Classification(
            popular=np.flatnonzero(popular).astype(np.uint32),
            nonpopular=np.flatnonzero(~popular).astype(np.uint32),
            popular_slots=entries[in_popular].astype(np.uint32),
            nonpopular_slots=entries[~in_popular].astype(np.uint32),
            source=source[:rows].copy(),
            cold=~in_popular & ~hit,
            in_nonpopular=~in_popular,
            hits=hits,
            misses=keys - hits,
            replacements=int(replacements),
            shared=int(shared),
        )
