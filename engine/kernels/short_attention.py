"""Attention of one step per row over few keys, as in the fast AR: in registers, each query head separately.

out[r, h] = softmax(q[r, h] · Kᵀ / √head_dim) · V as in `decode_attention`, with the same fused operations. A frame's
fast AR sees at most ten keys: too few to fill tensor cores' tiles, and not worth waiting for their layout. A program is
one warp and handles one query head of one row; the first of a key head stores the key. On an H200 a frame of one row
takes 0.04 ms less than by `decode_attention`, one of 64 rows 0.12 (more heads or warps: less).

PAIRS: the first half of the rows is at position 0 and the second, of the same slots, at position 1, as the residual
codes of a frame begin; then the earlier key is taken from the row that computes it, which may not have stored it yet.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.decode_attention import norm_and_rotate, rotation
from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents
from engine.kernels.rope import HeadInputs

SHORT = 32
"""Maximum positions of a cache: each is a line of registers."""


@triton.jit(do_not_specialize=["half"])
def _short_attention(
    qkv, q_norm, k_norm, table, keys, values, slots, positions, out, half, eps, scale, slot_stride, position_stride,
    N_HEAD: tl.constexpr, N_KV: tl.constexpr, HEAD_DIM: tl.constexpr, HAS_NORM: tl.constexpr,
    BLOCK: tl.constexpr, PAIRS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (rows, N_HEAD): qkv (rows, (N_HEAD + 2 · N_KV) · HEAD_DIM), out (rows, N_HEAD, HEAD_DIM).

    keys, values (slots, context, N_KV, HEAD_DIM); half: of the rows, where PAIRS.
    """
    row, head = tl.program_id(0), tl.program_id(1)
    members: tl.constexpr = N_HEAD // N_KV
    width: tl.constexpr = (N_HEAD + 2 * N_KV) * HEAD_DIM
    kv_head = head // members
    dim = tl.arange(0, HEAD_DIM)[None, :]
    index = tl.arange(0, BLOCK)
    position = tl.load(positions + row)
    base = tl.load(slots + row) * slot_stride + kv_head * HEAD_DIM
    if PDL:
        launch_dependents()
    cos, sin = rotation(table, position, dim, HEAD_DIM)
    line = qkv + row * width
    own_key = line + (N_HEAD + kv_head) * HEAD_DIM
    is_cached = index < position
    if PAIRS:
        cos_before, sin_before = rotation(table, tl.maximum(position - 1, 0), dim, HEAD_DIM)
    else:  # the cache's contents are older than the previous kernel
        lines = base + index.to(tl.int64)[:, None] * position_stride + dim
        k = tl.load(keys + lines, mask=is_cached[:, None], other=0.0, cache_modifier=".cg")
        v = tl.load(values + lines, mask=is_cached[:, None], other=0.0, cache_modifier=".cg")
    if PDL:
        grid_wait()
    query_offset = head * HEAD_DIM + dim
    here, there = tl.load(line + query_offset), tl.load(line + (query_offset ^ 1))
    key_here, key_there = tl.load(own_key + dim), tl.load(own_key + (dim ^ 1))
    value = tl.load(own_key + N_KV * HEAD_DIM + dim)
    if PAIRS:
        previous_key = own_key - half * width
        k_here = tl.load(previous_key + dim, mask=is_cached[:, None], other=0.0)
        k_there = tl.load(previous_key + (dim ^ 1), mask=is_cached[:, None], other=0.0)
        v = tl.load(previous_key + N_KV * HEAD_DIM + dim, mask=is_cached[:, None], other=0.0)
        k = norm_and_rotate(k_here, k_there, k_norm, cos_before, sin_before, dim, eps, HAS_NORM, HEAD_DIM)
    key = norm_and_rotate(key_here, key_there, k_norm, cos, sin, dim, eps, HAS_NORM, HEAD_DIM)
    if head % members == 0:
        tl.store(keys + base + position * position_stride + dim, key)
        tl.store(values + base + position * position_stride + dim, value)
    query = norm_and_rotate(here, there, q_norm, cos, sin, dim, eps, HAS_NORM, HEAD_DIM).to(tl.float32)
    newest = tl.sum(query * key.to(tl.float32), 1) * scale  # (1,)
    score = tl.where(is_cached, tl.sum(query * k.to(tl.float32), 1) * scale, float("-inf"))
    best = tl.maximum(tl.max(score, 0, keep_dims=True), newest)
    p, grow = tl.exp(score - best), tl.exp(newest - best)
    total = tl.sum(p[:, None] * v.to(tl.float32), 0)[None, :] + grow[:, None] * value.to(tl.float32)
    weight = tl.sum(p, 0, keep_dims=True) + grow
    tl.store(out + row * N_HEAD * HEAD_DIM + query_offset, (total / weight[:, None]).to(out.dtype.element_ty))


def short_attention(inputs: HeadInputs, pairs: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """Attended heads (rows, heads, head_dim), for a cache of at most SHORT positions.

    pairs: row i and row rows / 2 + i are of one slot and stand at its positions 0 and 1. A row's result is the same in
    any batch. dtype: of the result; None: that of qkv.
    """
    qkv, keys, heads = inputs.qkv, inputs.keys, inputs.heads
    rows = qkv.shape[0]
    context, kv_heads, head_dim = keys.shape[1:]
    if heads % kv_heads or not (pairs or context <= SHORT) or (pairs and rows % 2):
        raise ValueError(f"{rows} rows of {heads} heads over {kv_heads} key heads of {context} positions do not fit")
    inputs.check()
    out = torch.empty(rows, heads, head_dim, device=qkv.device, dtype=dtype or qkv.dtype)
    launch(
        _short_attention, (rows, heads),
        *inputs.pointers, out, rows // 2, inputs.eps, head_dim**-0.5, keys.stride(0), keys.stride(1),
        N_HEAD=heads, N_KV=kv_heads, HEAD_DIM=head_dim, HAS_NORM=inputs.norms is not None,
        BLOCK=1 if pairs else triton.next_power_of_2(context), PAIRS=pairs,
        num_warps=1, **early_start(qkv.device),
    )  # fmt: skip
    return out
