"""GGUF's tensor types as float32: 16 and 32 bits, and blocks of quantised weights (ggml's Q8_0, Q4_K, Q5_K, Q6_K).

A block of Q8_0 is 32 weights; of the others 256, in groups of 32 (Q6_K: 16) with their own scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_PIECE = 2**20
"""Weights that are converted at once: the temporary values stay in the processor's caches."""


@dataclass(frozen=True, slots=True)
class BlockType:
    """Weights per block, bytes per block, and the conversion of blocks (n, bytes) uint8 → (n, weights) float32."""

    name: str
    weights: int
    bytes: int
    dequantise: Callable[[Tensor], Tensor]


def dequantise(data: Tensor, kind: BlockType) -> Tensor:
    """The values (count,) float32 of whole blocks, uint8 (bytes,)."""
    blocks = data.view(-1, kind.bytes)
    out = torch.empty(len(blocks), kind.weights)
    step = max(1, _PIECE // kind.weights)
    for start in range(0, len(blocks), step):
        out[start : start + step] = kind.dequantise(blocks[start : start + step])
    return out.flatten()


def _typed(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda blocks: _as(blocks, dtype)


def _as(part: Tensor, dtype: torch.dtype) -> Tensor:
    """Bytes (n, k) as values (n, k / size) float32."""
    return (part if dtype.itemsize == 1 else part.contiguous()).view(dtype).float()


def _q8_0(blocks: Tensor) -> Tensor:
    return _as(blocks[:, :2], torch.float16) * _as(blocks[:, 2:], torch.int8)


def _q4_k(blocks: Tensor) -> Tensor:
    return _scaled(blocks, _nibbles(blocks[:, 16:]))


def _q5_k(blocks: Tensor) -> Tensor:
    bits = torch.stack([blocks[:, 16:48] >> group & 1 for group in range(8)], 1)
    return _scaled(blocks, _nibbles(blocks[:, 48:]) + 16 * bits)


def _q6_k(blocks: Tensor) -> Tensor:
    low, high = blocks[:, :128].unflatten(1, (2, 2, 32)), blocks[:, 128:192].unflatten(1, (2, 1, 32))
    fours = torch.cat([low & 15, low >> 4], 2)
    twos = torch.cat([high >> 2 * part & 3 for part in range(4)], 2)
    whole = (fours | twos << 4).to(torch.int8) - 32
    scales = _as(blocks[:, 192:208], torch.int8) * _as(blocks[:, 208:], torch.float16)
    return (whole.flatten(1).unflatten(1, (16, 16)).float() * scales[:, :, None]).flatten(1)


def _nibbles(data: Tensor) -> Tensor:
    """128 bytes as eight groups of 32: of each 32 bytes first the low halves, then the high ones."""
    pieces = data.unflatten(1, (4, 32))
    return torch.stack([pieces & 15, pieces >> 4], 2).flatten(1, 2)


def _scaled(blocks: Tensor, whole: Tensor) -> Tensor:
    """Groups (n, 8, 32) times their scales, less their minima; both have six bits, packed in twelve bytes."""
    factors = _as(blocks[:, :4], torch.float16)[:, :, None]
    first, second, mixed = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = torch.cat([first & 63, mixed & 15 | first >> 6 << 4], 1).float()
    minima = torch.cat([second & 63, mixed >> 4 | second >> 6 << 4], 1).float()
    scales, minima = scales * factors[:, 0], minima * factors[:, 1]
    return (whole.float() * scales[:, :, None] - minima[:, :, None]).flatten(1)


BLOCK_TYPES = {
    0: BlockType("F32", 1, 4, _typed(torch.float32)),
    1: BlockType("F16", 1, 2, _typed(torch.float16)),
    8: BlockType("Q8_0", 32, 34, _q8_0),
    12: BlockType("Q4_K", 256, 144, _q4_k),
    13: BlockType("Q5_K", 256, 176, _q5_k),
    14: BlockType("Q6_K", 256, 210, _q6_k),
    30: BlockType("BF16", 1, 2, _typed(torch.bfloat16)),
}
"""Supported types, by ggml's number."""
OTHER_TYPES = {2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 10: "Q2_K", 11: "Q3_K", 20: "IQ4_NL", 23: "IQ4_XS"}
"""Types that occur in files and are not supported."""
