"""Word packer: every ratio of input to bus width."""

from __future__ import annotations

import pytest
from harness.build import run_bench

from hotline.gen.presets import preset
from hotline.rtl.word_packer import WordPacker


@pytest.mark.parametrize(
    ("inputs", "bits", "data_width", "buffered"),
    [
        (1, 32, 32, False),
        (1, 64, 32, False),
        (2, 32, 32, True),
        (2, 32, 64, True),
        (1, 64, 64, True),
        (4, 32, 512, True),
        (16, 32, 512, True),
        (16, 32, 64, True),
        (8, 64, 512, True),
    ],
)
def test_packs(inputs: int, bits: int, data_width: int, buffered: bool) -> None:
    config = preset("ecp5").replace(data_width=data_width)
    run_bench(
        WordPacker(config, inputs=inputs, word_bits=bits, buffered=buffered),
        "word_packer",
        "cocotb_word_packer",
        env={"PACKER_INPUTS": str(inputs), "PACKER_BITS": str(bits)},
    )


def test_messages() -> None:
    config = preset("tiny")
    with pytest.raises(ValueError, match=r"^inputs must be a power of two, not 3$"):
        WordPacker(config, inputs=3)
    with pytest.raises(ValueError, match=r"^word_bits must be 32 or 64, not 16$"):
        WordPacker(config, inputs=1, word_bits=16)
