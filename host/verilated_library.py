"""The C interface of the Verilated library, for ctypes."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from hotline.host.bus_timing import Statistics

__all__ = ["CErrorRange", "CRegion", "CStatistics", "CTiming", "load_library"]


# Layouts of the structures in cpp/axi_memory.hpp.
class CTiming(ctypes.Structure):
    _fields_ = (
        ("read_latency", ctypes.c_uint32 * 2),
        ("write_latency", ctypes.c_uint32 * 2),
        ("reorder", ctypes.c_uint32),
        ("interleave", ctypes.c_uint32),
        ("pause", ctypes.c_double * 5),
        ("read_bandwidth", ctypes.c_double),
        ("write_bandwidth", ctypes.c_double),
        ("read_outstanding", ctypes.c_uint32),
        ("write_outstanding", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
    )


class CStatistics(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in Statistics.__dataclass_fields__)


class CRegion(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("content", ctypes.c_void_p),
    )


class CErrorRange(ctypes.Structure):
    _fields_ = (
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("response", ctypes.c_uint32),
        ("reads", ctypes.c_uint32),
        ("writes", ctypes.c_uint32),
    )


def load_library(path: Path) -> ctypes.CDLL:
    """The library, with the types of its functions."""
    library = ctypes.CDLL(str(path))
    u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    result, i32 = ctypes.POINTER(u32), ctypes.c_int32
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "create": (pointer, (u32, u32, u32, u32, u64, i32)),
        "destroy": (None, (pointer,)),
        "waves": (i32, (pointer, ctypes.c_char_p)),
        "timing": (None, (pointer, ctypes.POINTER(CTiming))),
        "regions": (None, (pointer, ctypes.POINTER(CRegion), u64)),
        "errors": (None, (pointer, ctypes.POINTER(CErrorRange), u64)),
        "reset": (None, (pointer, u32)),
        "end_waves": (None, (pointer,)),
        "run": (i32, (pointer, u64, i32, pointer)),
        "poll": (i32, (pointer, u32, u32, u32, u64)),
        "write": (i32, (pointer, u32, u32, u32, result)),
        "read": (i32, (pointer, u32, result, result)),
        "irq": (i32, (pointer,)),
        "bus_idle": (i32, (pointer,)),
        "statistics": (None, (pointer, ctypes.POINTER(CStatistics))),
        "outside": (u64, (pointer, ctypes.POINTER(u64), u64)),
        "failure": (ctypes.c_char_p, (pointer,)),
    }
    for name, (restype, argtypes) in signatures.items():
        function = getattr(library, f"hotline_{name}")
        function.restype, function.argtypes = restype, argtypes
    return library
