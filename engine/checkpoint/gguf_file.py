"""The GGUF container (version 2 and 3, little-endian): keys, and tensors that stay on the disk until they are read.

Every count, length and offset in the header is checked against the size of the file.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.checkpoint.gguf_blocks import BLOCK_TYPES, OTHER_TYPES, dequantise
from engine.checkpoint.lazy_tensors import LazyTensor
from engine.engine_errors import CheckpointError
from engine.files import check_file

_SCALARS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9
_MOST = 100_000
"""Keys or tensors of a file; S2 Pro's has some hundreds of each."""
_MOST_STRINGS = 2_000_000
"""Elements of an array, such as a vocabulary."""


@dataclass(frozen=True, eq=False, slots=True)
class GgufFile:
    path: Path
    keys: Mapping[str, Any]
    """Numbers, strings, lists of strings, and arrays of numbers."""
    tensors: list[LazyTensor]
    """Their dimensions are in torch's order, their values float32 when read."""

    def array(self, key: str) -> np.ndarray:
        """An array of whole numbers. Raises CheckpointError."""
        value = self.keys.get(key)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "ui":
            raise CheckpointError(f"{self.path} lacks the array {key}")
        return value

    def strings(self, key: str) -> list[str]:
        """An array of strings. Raises CheckpointError."""
        value = self.keys.get(key)
        if not isinstance(value, list):
            raise CheckpointError(f"{self.path} lacks the array of strings {key}")
        return value


def open_gguf(path: Path) -> GgufFile:
    """Read a file's header. Raises CheckpointError."""
    try:
        check_file(path)
        data = np.memmap(path, np.uint8, "c")  # copy on write: torch requires writable memory
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    try:
        return _read(path, data)
    except (_DamagedError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is damaged or was cut short ({error}); download it again") from error


class _DamagedError(Exception):
    """The header contradicts itself or the size of the file."""


class _Cursor:
    """Reads from one position to the next, never beyond the end."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> np.ndarray:
        if count > len(self.data) - self.at:
            raise _DamagedError(f"{count:,} bytes should follow byte {self.at:,}, but the file has {len(self.data):,}")
        self.at += count
        return self.data[self.at - count : self.at]

    def whole(self, layout: str) -> int:
        (value,) = struct.unpack(layout, self.take(struct.calcsize(layout)).tobytes())
        return int(value)

    def count(self, most: int, entries: str) -> int:
        value = self.whole("<Q")
        if value > most:
            raise _DamagedError(f"it announces {value:,} {entries}")
        return value

    def text(self) -> str:
        return self.take(self.whole("<Q")).tobytes().decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self._array(self.whole("<I"))
        return self._numbers(kind, 1)[0].item()

    def _array(self, kind: int) -> Any:
        if kind == _STRING:
            return [self.text() for _ in range(self.count(_MOST_STRINGS, "strings"))]
        return self._numbers(kind, self.whole("<Q"))

    def _numbers(self, kind: int, count: int) -> np.ndarray:
        if kind not in _SCALARS:
            raise _DamagedError(f"a value has the unknown type {kind}")
        dtype = np.dtype(_SCALARS[kind])
        return self.take(count * dtype.itemsize).view(dtype)


def _read(path: Path, data: np.ndarray) -> GgufFile:
    cursor = _Cursor(data)
    if cursor.take(4).tobytes() != b"GGUF":
        raise CheckpointError(f"{path} is not a GGUF file")
    version = cursor.whole("<I")
    if version not in (2, 3):
        raise CheckpointError(f"{path} has GGUF version {version}; supported are 2 and 3 in little-endian order")
    tensors, keys = cursor.count(_MOST, "tensors"), cursor.count(_MOST, "keys")
    values = {}
    for _ in range(keys):
        key = cursor.text()
        values[key] = cursor.value(cursor.whole("<I"))
    infos = [_info(path, cursor) for _ in range(tensors)]
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 2**16:
        raise _DamagedError(f"its alignment is {alignment!r}")
    start = -(-cursor.at // alignment) * alignment
    if len({name for name, *_ in infos}) < len(infos):
        raise _DamagedError("a tensor's name occurs twice")
    return GgufFile(path, values, [_tensor(data, start, alignment, *info) for info in infos])


def _info(path: Path, cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape, type and offset."""
    name, rank = cursor.text(), cursor.whole("<I")
    if rank > 4:
        raise _DamagedError(f"tensor {name} has {rank} dimensions")
    shape = tuple(reversed([cursor.whole("<Q") for _ in range(rank)]))
    kind, offset = cursor.whole("<I"), cursor.whole("<Q")
    if kind not in BLOCK_TYPES:
        supported = ", ".join(block.name for block in BLOCK_TYPES.values())
        raise CheckpointError(
            f"{path} holds {name} as {OTHER_TYPES.get(kind, f'type {kind}')}; use a file of {supported}, such as q8_0"
        )
    return name, shape, kind, offset


def _tensor(
    data: np.ndarray, start: int, alignment: int, name: str, shape: tuple[int, ...], kind: int, offset: int
) -> LazyTensor:
    block, count = BLOCK_TYPES[kind], math.prod(shape)
    if not shape or count == 0 or shape[-1] % block.weights:
        raise _DamagedError(f"tensor {name} {list(shape)} is not in whole blocks of {block.name}")
    if offset % alignment:
        raise _DamagedError(f"tensor {name} begins at byte {offset:,}, which is not aligned")
    begin = start + offset
    end = begin + count // block.weights * block.bytes
    if end > len(data):
        raise _DamagedError(f"tensor {name} would end at byte {end:,}, but the file has {len(data):,}")
    return LazyTensor(name, shape, partial(_numbers, data[begin:end], kind, shape))


def _numbers(data: np.ndarray, kind: int, shape: tuple[int, ...]) -> Tensor:
    return dequantise(torch.from_numpy(data), BLOCK_TYPES[kind]).view(shape)
