"""RoPE between the qkv product and attention: norms and rotates queries and keys, stores keys and values in their
slots.

Of each head's pair (a, b) = (x[2i], x[2i + 1]) at position p: (a · cos − b · sin, a · sin + b · cos) at the angle
p · base^(−2i / head_dim), as in RoFormer (Su et al. 2021), with adjacent pairs. Norms and the store into the cache are
fused in, as vLLM's rotary_embedding and reshape_and_cache do in two kernels. A program handles one head of one row.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents


class HeadInputs(NamedTuple):
    """The inputs of attention: the qkv product of some rows, and one layer of a KV cache in which they stand.

    Kernels store row i's key and value at positions[i] of slot slots[i], and the row sees all keys up to there. The
    host never reads slots and positions.
    """

    qkv: Tensor
    """(rows, (heads + 2 · kv_heads) · head_dim), contiguous"""
    norms: tuple[Tensor, Tensor] | None
    """Gains of queries and keys (head_dim,); None for no norm."""
    eps: float
    table: Tensor
    """`rope_angles` of every position as float32 (context, head_dim / 2, 2)"""
    keys: Tensor
    values: Tensor
    """(slots, context, kv_heads, head_dim), like the keys"""
    slots: Tensor
    positions: Tensor
    """(rows,) int64, like the slots"""

    @property
    def heads(self) -> int:
        """Number of query heads."""
        kv_heads, head_dim = self.keys.shape[2:]
        return self.qkv.shape[1] // head_dim - 2 * kv_heads

    @property
    def pointers(self) -> tuple[Tensor, ...]:
        """The arguments with which every kernel of rotated heads begins."""
        q_norm, k_norm = self.norms or (self.qkv, self.qkv)
        return self.qkv, q_norm, k_norm, self.table, self.keys, self.values, self.slots, self.positions

    def check(self) -> None:
        """Raises ValueError unless strides and table are as the kernels of rotated heads assume."""
        keys, values, table, head_dim = self.keys, self.values, self.table, self.keys.shape[3]
        if keys.stride() != values.stride() or keys.stride()[2:] != (head_dim, 1) or not self.qkv.is_contiguous():
            raise ValueError(f"keys {keys.stride()} and values {values.stride()} must have one layout, heads together")
        if table.dtype != torch.float32 or table.shape[1:] != (head_dim // 2, 2):
            raise ValueError(
                f"the rotation table {tuple(table.shape)} {table.dtype} is not (context, {head_dim // 2}, 2)"
            )


@triton.jit
def _rope(
    qkv, q_norm, k_norm, table, keys, values, slots, positions, out, eps,
    slot_stride, position_stride,
    N_HEAD: tl.constexpr, N_KV: tl.constexpr, HALF: tl.constexpr, HAS_NORM: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (rows, heads + 2 · kv_heads): queries go to out (rows, heads, head_dim), keys and values to the cache."""
    row, head = tl.program_id(0), tl.program_id(1)
    pair = tl.arange(0, HALF)
    width = (N_HEAD + 2 * N_KV) * 2 * HALF
    base = qkv + row * width + head * 2 * HALF
    if PDL:
        grid_wait()
        launch_dependents()
    even = tl.load(base + 2 * pair)
    odd = tl.load(base + 2 * pair + 1)
    position = tl.load(positions + row)
    cell = tl.load(slots + row) * slot_stride + position * position_stride
    if head >= N_HEAD + N_KV:
        at = values + cell + (head - N_HEAD - N_KV) * 2 * HALF
        tl.store(at + 2 * pair, even)
        tl.store(at + 2 * pair + 1, odd)
    else:
        kind = even.dtype
        a, b = even.to(tl.float32), odd.to(tl.float32)
        if HAS_NORM:
            norm = q_norm if head < N_HEAD else k_norm
            scale = tl.rsqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / (2 * HALF) + eps)
            a = (a * scale).to(kind).to(tl.float32) * tl.load(norm + 2 * pair).to(tl.float32)
            b = (b * scale).to(kind).to(tl.float32) * tl.load(norm + 2 * pair + 1).to(tl.float32)
            a, b = a.to(kind).to(tl.float32), b.to(kind).to(tl.float32)
        cos = tl.load(table + (position * HALF + pair) * 2)
        sin = tl.load(table + (position * HALF + pair) * 2 + 1)
        first, second = (a * cos - b * sin).to(kind), (a * sin + b * cos).to(kind)
        if head < N_HEAD:
            at = out + (row * N_HEAD + head) * 2 * HALF
        else:
            at = keys + cell + (head - N_HEAD) * 2 * HALF
        tl.store(at + 2 * pair, first)
        tl.store(at + 2 * pair + 1, second)


def rope(inputs: HeadInputs) -> Tensor:
    """Rotated queries (rows, heads, head_dim); the rotated keys and the values go to the cache."""
    qkv, keys = inputs.qkv, inputs.keys
    rows, heads = qkv.shape[0], inputs.heads
    kv_heads, head_dim = keys.shape[2:]
    inputs.check()
    out = torch.empty(rows, heads, head_dim, device=qkv.device, dtype=qkv.dtype)
    launch(
        _rope, (rows, heads + 2 * kv_heads),
        *inputs.pointers, out, inputs.eps, keys.stride(0), keys.stride(1),
        N_HEAD=heads, N_KV=kv_heads, HALF=head_dim // 2, HAS_NORM=inputs.norms is not None,
        num_warps=1, **early_start(qkv.device),
    )  # fmt: skip
    return out
