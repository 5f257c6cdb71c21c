"""The register slice that suits a configuration."""

from __future__ import annotations

from amaranth.lib import data

from hotline.gen.config import Config
from hotline.rtl.stream_pair import StreamPair
from hotline.rtl.stream_slice import StreamSlice
from hotline.rtl.stream_stage import StreamStage
from hotline.rtl.stream_wire import StreamWire

__all__ = ["register_slice"]


def register_slice(config: Config, shape: data.Layout) -> StreamSlice:
    """Cuts the path of a stream's `ready`; on a narrow bus only that of `valid` and payload."""
    if not config.hot_table:
        return StreamWire(shape)
    return StreamStage(shape) if config.narrow else StreamPair(shape)
