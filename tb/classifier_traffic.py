"""Batches of looked-up keys for the benches of the classifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotline.gen.config import Config

__all__ = ["Batch", "cut_into_groups", "list_words", "random_batch", "skewed_batch"]


@dataclass(frozen=True)
class Batch:
    """Samples, and what the hot table says of their keys; sample i: offsets[i]..offsets[i+1]-1."""

    offsets: np.ndarray
    key: np.ndarray
    z: np.ndarray
    hit: np.ndarray
    slot: np.ndarray


def _batch(rng: np.random.Generator, config: Config, lengths: list[int], key, hit) -> Batch:
    # Any bijection does for z: the classifier never computes it.
    z = key ^ int(rng.integers(1 << config.key_bits))
    slot = (key * 0x9E3779B1 >> 7) % config.slots
    return Batch(np.cumsum([0, *lengths], dtype=np.int64), key, z, hit, slot)


def random_batch(
    rng: np.random.Generator, config: Config, lengths: list[int] | None = None
) -> Batch:
    """Samples of mixed lengths over few or many keys, of which none, some or all are hot."""
    if lengths is None:
        longest = int(rng.choice([2, 6, config.max_sample_keys]))
        count = int(rng.integers(1, 40 if longest < 10 else 12))
        lengths = [int(n) for n in rng.integers(0, longest + 1, count)]
        if rng.integers(2):
            lengths = [max(1, n) for n in lengths]
    universe = rng.integers(0, 1 << config.key_bits, int(rng.choice([3, 12, 60, 3000])))
    universe = np.unique(universe)
    if rng.integers(3) == 0:  # few banks and entries
        universe = np.unique(universe & ~np.int64(7))
    hot = rng.random(universe.shape[0]) < rng.choice([0.0, 0.5, 0.9, 0.98, 1.0])
    picked = rng.integers(0, universe.shape[0], sum(lengths))
    return _batch(rng, config, lengths, universe[picked], hot[picked])


def skewed_batch(
    rng: np.random.Generator, config: Config, samples: int, popular: float, cold: int
) -> Batch:
    """26 keys a sample; a share of the samples is popular, the others have `cold` misses."""
    key = rng.integers(0, 1 << config.key_bits - 1, (samples, 26))
    hit = np.ones((samples, 26), np.bool_)
    for sample in np.flatnonzero(rng.random(samples) >= popular):
        hit[sample, rng.choice(26, cold, replace=False)] = False
    # The top bit keeps hot and cold keys apart.
    key |= np.where(hit, 0, 1 << config.key_bits - 1)
    return _batch(rng, config, [26] * samples, key.reshape(-1), hit.reshape(-1))


def cut_into_groups(
    rng: np.random.Generator,
    batch: Batch,
    config: Config,
    *,
    tidy: bool = False,
    single: bool = False,
) -> list[dict]:
    """Responses of the hot table. `tidy`: groups are full; `single`: of one key. Otherwise they
    are ragged, ends may come late, and groups without meaning stand between them."""
    lengths = [int(n) for n in np.diff(batch.offsets)]
    groups: list[dict] = []
    sample, left, at = 0, lengths[0] if lengths else 0, 0

    def take(room: int) -> tuple[int, bool]:
        """Keys of the current sample, and whether it ends here."""
        nonlocal sample, left
        taken = min(room, left)
        left -= taken
        ends = left == 0 and (tidy or rng.random() < 0.8)
        if ends:
            sample += 1
            left = lengths[sample] if sample < len(lengths) else 0
        return taken, ends

    while sample < len(lengths):
        room = 1 if single else config.lanes
        if not tidy:
            room = int(rng.integers(0, config.lanes + 1))
        split, end_a = take(room)
        rest, end_b = 0, False
        if end_a and sample < len(lengths) and room > split and not single:
            rest, end_b = take(room - split)
        groups.append(_group(rng, batch, config, at, split, rest, end_a, end_b))
        at += split + rest
    if not groups or (not tidy and rng.integers(2)):
        groups.append(_group(rng, batch, config, at, 0, 0, False, False))
    groups[-1]["meta"]["last"] = 1
    return groups


def _group(rng, batch, config, at, split, rest, end_a, end_b) -> dict:
    def lanes(values: np.ndarray, bits: int) -> list[int]:
        noise = rng.integers(0, 1 << bits, config.lanes)
        count = split + rest
        noise[:count] = values[at : at + count]
        return [int(value) for value in noise]

    hit = batch.hit[at : at + split + rest]
    slots = lanes(batch.slot, config.slot_bits)
    for lane in range(split + rest):
        if not hit[lane]:
            slots[lane] = int(rng.integers(0, 1 << config.slot_bits))
    return {
        "op": 0,
        "key": lanes(batch.key, config.key_bits),
        "z": lanes(batch.z, config.key_bits),
        "slot": slots,
        "hit": sum(int(bit) << lane for lane, bit in enumerate(hit)),
        "meta": {
            "count": split + rest,
            "split": split,
            "end_a": int(end_a),
            "end_b": int(end_b),
            "last": 0,
            "error": 0,
        },
    }


def list_words(beats: list[dict], config: Config) -> list[int]:
    """The words of a list; checks that its beats are dense and properly ended."""
    words: list[int] = []
    for number, beat in enumerate(beats):
        final = number == len(beats) - 1
        assert beat["last"] == int(final), "only the final beat has `last`"
        count = beat["strobe"].bit_count()
        assert beat["strobe"] == (1 << count) - 1, "words lie at the bottom"
        assert count < config.data_words if final else count == config.data_words
        words += [beat["data"] >> 32 * n & 0xFFFFFFFF for n in range(count)]
    assert beats, "a list ends in a beat with `last`"
    return words
