"""Read tensors from .npy and .safetensors files; numpy and safetensors may be missing in the target interpreter.

Nothing in a file is executed. Whatever is not in its format is a ValueError that says so.
"""

from __future__ import annotations

import ast
import importlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NPY_MAGIC = b"\x93NUMPY"
NPY_LENGTHS = {1: 2, 2: 4, 3: 4}
"""How many bytes the header's length takes, by major version (numpy/lib/format.py)."""

NPY_TYPES = {
    "b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
    "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64",
    "c16": "complex128",
}  # fmt: skip

SAFE_TYPES = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip

HEADER_LIMIT = 100_000_000
"""What the safetensors format allows a header."""


@dataclass(frozen=True)
class RawArray:
    """Elements of a type that torch does not have: only their bytes can be compared."""

    dtype: str
    shape: tuple[int, ...]
    raw: bytes

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def read_npy(path: Path) -> Any:
    """Return a .npy file's array as a tensor, or as a RawArray where torch has no such type."""
    raw = path.read_bytes()
    if raw[:6] != NPY_MAGIC or len(raw) < 10 or raw[6] not in NPY_LENGTHS:
        raise ValueError("it is not a .npy file")
    width = NPY_LENGTHS[raw[6]]
    start = 8 + width + int.from_bytes(raw[8 : 8 + width], "little")
    header = _npy_header(raw[8 + width : start])
    descr, shape, order = str(header["descr"]), tuple(header["shape"]), bool(header["fortran_order"])
    kind, swapped = descr.lstrip("<>|="), descr.startswith(">")
    if not kind[1:].isdigit():
        raise ValueError(f"its elements are of type {header['descr']!r}, expected plain numbers")
    unit = 4 if kind[0] == "U" else 1
    body = _exactly(raw[start:], math.prod(shape) * int(kind[1:]) * unit)
    if kind not in NPY_TYPES:
        return RawArray(descr, shape, body)
    if swapped:
        body = _swap(body, int(kind[1:]) // (2 if kind[0] == "c" else 1))
    tensor = _tensor(body, NPY_TYPES[kind], shape[::-1] if order else shape)
    return tensor.permute(*reversed(range(len(shape)))).contiguous() if order and shape else tensor


def read_safetensors(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a .safetensors file by name."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > min(len(raw) - 8, HEADER_LIMIT):
        raise ValueError("it is not a .safetensors file, or not a whole one")
    try:
        header = json.loads(raw[8 : 8 + length])
        entries = [(str(name), one) for name, one in header.items() if name != "__metadata__"]
    except (ValueError, AttributeError, RecursionError) as fault:
        raise ValueError(f"its header is not a JSON object: {fault}") from fault
    for name, one in entries:
        try:
            kind, shape, (start, end) = str(one["dtype"]), tuple(map(int, one["shape"])), map(int, one["data_offsets"])
        except (KeyError, TypeError, ValueError) as fault:
            raise ValueError(f"what its header says of {name!r} is not whole") from fault
        if not 0 <= start <= end or min(shape, default=0) < 0:
            raise ValueError(f"what its header says of {name!r} cannot be")
        body = raw[8 + length + start : 8 + length + end]
        if len(body) != end - start:
            raise ValueError(f"it ends within {name!r}")
        yield name, _tensor(body, SAFE_TYPES[kind], shape) if kind in SAFE_TYPES else RawArray(kind, shape, body)


def _npy_header(raw: bytes) -> dict[str, Any]:
    try:
        header = ast.literal_eval(raw.decode("utf-8", "replace").strip())
        if set(header) >= {"descr", "shape", "fortran_order"} and all(int(size) >= 0 for size in header["shape"]):
            return dict(header)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as fault:
        raise ValueError("its header is not one of a .npy file") from fault
    raise ValueError("its header is not one of a .npy file")


def _exactly(body: bytes, size: int) -> bytes:
    if len(body) != size:
        raise ValueError(f"it has {len(body)} bytes of elements, expected {size}")
    return body


def _swap(body: bytes, size: int) -> bytes:
    swapped = bytearray(len(body))
    for place in range(size):
        swapped[place::size] = body[size - 1 - place :: size]
    return bytes(swapped)


def _tensor(body: bytes, dtype: str, shape: tuple[int, ...]) -> Any:
    torch = importlib.import_module("torch")
    kind = getattr(torch, dtype)
    _exactly(body, math.prod(shape) * kind.itemsize)
    if not body:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(bytearray(body), dtype=kind).reshape(shape)
