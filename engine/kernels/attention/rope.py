"""RoPE between the qkv product and attention: norms and rotates queries and keys, stores keys and values in their
slots.

Of each head's pair (a, b) = (x[2i], x[2i + 1]) at position p: (a · cos − b · sin, a · sin + b · cos) at the angle
p · base^(−2i / head_dim), as in RoFormer (Su et al. 2021), with adjacent pairs. Norms and the store into the cache are
fused in, as vLLM's rotary_embedding and reshape_and_cache do in two kernels. A program handles one head of one row.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import launch
from engine.kernels.pdl import grid_wait, launch_dependents, pdl_launch, supports_pdl
from engine.model.layers import apply_rope


@triton.jit
def _rope(
    qkv, q_norm, k_norm, table, slots, positions, keys, values, out, eps,
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


def rope(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor] | None,
    eps: float,
    table: Tensor,
    slots: Tensor,
    positions: Tensor,
    keys: Tensor,
    values: Tensor,
) -> Tensor:
    """qkv (rows, (heads + 2 · kv_heads) · head_dim) → rotated queries (rows, heads, head_dim).

    Writes the rotated keys and the values to keys, values (slots, context, kv_heads, head_dim) at each row's
    slot and position, both (rows,) int64. norms: gains of queries and keys (head_dim,), or None for no norm.
    table: `rope_angles` of every position as float32 (context, head_dim / 2, 2).
    """
    rows = qkv.shape[0]
    kv_heads, head_dim = keys.shape[2:]
    n_head = qkv.shape[1] // head_dim - 2 * kv_heads
    check_layout(qkv, keys, values, table)
    out = torch.empty(rows, n_head, head_dim, device=qkv.device, dtype=qkv.dtype)
    q_norm, k_norm = norms if norms else (qkv, qkv)
    launch(
        _rope, (rows, n_head + 2 * kv_heads),
        qkv, q_norm, k_norm, table, slots, positions, keys, values, out, eps, keys.stride(0), keys.stride(1),
        N_HEAD=n_head, N_KV=kv_heads, HALF=head_dim // 2, HAS_NORM=norms is not None,
        PDL=supports_pdl(qkv.device), num_warps=1, **pdl_launch(qkv.device),
    )  # fmt: skip
    return out


def check_layout(qkv: Tensor, keys: Tensor, values: Tensor, table: Tensor) -> None:
    """Raises ValueError unless strides and table are as the kernels of rotated heads assume."""
    head_dim = keys.shape[3]
    if keys.stride() != values.stride() or keys.stride()[2:] != (head_dim, 1) or not qkv.is_contiguous():
        raise ValueError(f"keys {keys.stride()} and values {values.stride()} must have the same layout, heads together")
    if table.dtype != torch.float32 or table.shape[1:] != (head_dim // 2, 2):
        raise ValueError(f"the rotation table {tuple(table.shape)} {table.dtype} is not (context, {head_dim // 2}, 2)")


def rope_twin(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor] | None,
    eps: float,
    table: Tensor,
    slots: Tensor,
    positions: Tensor,
    keys: Tensor,
    values: Tensor,
) -> Tensor:
    """The same in plain torch."""
    kv_heads, head_dim = keys.shape[2:]
    heads = qkv.unflatten(-1, (-1, head_dim))
    q, k, v = heads.split([heads.shape[1] - 2 * kv_heads, kv_heads, kv_heads], 1)
    if norms:
        q, k = (
            F.rms_norm(t.float(), (head_dim,), None, eps).to(t.dtype) * n for t, n in zip((q, k), norms, strict=True)
        )
    q, k = (apply_rope(t[None], table[None, positions])[0] for t in (q, k))
    keys[slots, positions], values[slots, positions] = k, v
    return q
