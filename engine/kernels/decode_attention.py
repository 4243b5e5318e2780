"""Flash-decoding: grouped-query attention of one step per row over its slot of the KV cache, with fused norm and RoPE.

out[r, h] = softmax(q[r, h] · Kᵀ / √head_dim) · V over positions 0 … positions[r], where K and V are of key head
h // (heads / kv_heads) (GQA, Ainslie et al. 2023). The softmax is online, as in FlashAttention (Dao et al. 2022): of
each block only the largest score m, the sum of weights l = Σ e^(s − m) and the weighted values are kept. A long context
is cut into splits that programs process in parallel, as in Flash-Decoding (Dao et al. 2023); their parts are combined
as Σ e^(mᵢ − m) · accᵢ / Σ e^(mᵢ − m) · lᵢ, in the same launch, by the program that finishes last (`split_k`).

The kernel norms and rotates queries and the new key itself (RoPE, Su et al. 2021) and writes key and value to the
cache, which is our own addition. Splits have a fixed number of keys and are combined in a fixed order, so a row's
result depends only on its own length and on the tiles.

A program handles the query heads of one key head over SPLIT positions of a row's slot. Its qkv is (rows,
(N_HEAD + 2 · N_KV) · HEAD_DIM), keys and values (slots, context, N_KV, HEAD_DIM); partial (rows, N_HEAD, splits,
HEAD_DIM) and stats (rows, N_HEAD, splits, 2) float32 are the parts of splits; out is (rows, N_HEAD, HEAD_DIM).
ONE_BLOCK: a split is one block, loaded before the grid wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents, semaphores
from engine.kernels.rope import HeadInputs


@dataclass(frozen=True, slots=True)
class AttentionTiles:
    """Keys per split and per block, which a program loads at a time; its warps and its stages.

    If a split is one block, its keys and values are loaded before the grid wait, while the qkv product still runs.
    """

    split: int
    block: int
    num_warps: int
    num_stages: int


BATCH_INVARIANT = AttentionTiles(256, 64, 4, 3)
"""Tiles for any number of rows."""
_BY_ROWS = ((4, AttentionTiles(128, 128, 4, 1)), (16, BATCH_INVARIANT), (32, AttentionTiles(1024, 128, 4, 2)))
_MORE = AttentionTiles(768, 32, 2, 3)
"""The fastest tiles measured on an H200 in whole frames, with 600 keys per row and with 250 to 900."""
_GROUP = 16  # query heads per program: a tensor-core tile, of which S2 Pro fills 4


@triton.jit
def rotation(table, position, dim, HEAD_DIM: tl.constexpr):
    """RoPE's factors (1, HEAD_DIM) at a position: for each value, and for the other one of its pair."""
    angle = table + (position * (HEAD_DIM // 2) + dim // 2) * 2
    cos, sin = tl.load(angle), tl.load(angle + 1)
    return cos, tl.where(dim % 2 == 0, -sin, sin)


@triton.jit
def norm_and_rotate(here, there, gains, cos, sin, dim, eps, HAS_NORM: tl.constexpr, HEAD_DIM: tl.constexpr):
    """RMSNorm and RoPE of heads `here` (…, HEAD_DIM); `there` has each value's partner in its rotated pair."""
    kind = here.dtype
    a, b = here.to(tl.float32), there.to(tl.float32)
    if HAS_NORM:
        squares = tl.sum(a * a, 1, keep_dims=True)
        scale = tl.rsqrt(squares / HEAD_DIM + eps)
        a = (a * scale).to(kind).to(tl.float32) * tl.load(gains + dim).to(tl.float32)
        b = (b * scale).to(kind).to(tl.float32) * tl.load(gains + (dim ^ 1)).to(tl.float32)
        a, b = a.to(kind).to(tl.float32), b.to(kind).to(tl.float32)
    return (a * cos + b * sin).to(kind)


@triton.jit
def _online_softmax(
    query, keys, values, start, end, dim, scale, position_stride, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    """Online softmax over positions start … end − 1: the largest score, the sum of weights, the weighted values."""
    best = tl.full((GROUP,), float("-inf"), tl.float32)
    weight = tl.zeros((GROUP,), tl.float32)
    total = tl.zeros(query.shape, tl.float32)
    for block in range(start, end, BLOCK):
        at = block + tl.arange(0, BLOCK)
        inside = at < end
        cell = at.to(tl.int64)[:, None] * position_stride + dim
        k = tl.load(keys + cell, mask=inside[:, None], other=0.0)
        v = tl.load(values + cell, mask=inside[:, None], other=0.0)
        score = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
        score = tl.where(inside[None, :], score, float("-inf"))
        new = tl.maximum(best, tl.max(score, 1))
        p = tl.exp(score - new[:, None])
        shrink = tl.exp(best - new)
        weight = weight * shrink + tl.sum(p, 1)
        total = total * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        best = new
    return best, weight, total


@triton.jit
def _one_block(query, k, v, inside, scale):
    """The same over one block of keys and values that is already in registers."""
    score = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
    score = tl.where(inside[None, :], score, float("-inf"))
    best = tl.max(score, 1)
    p = tl.exp(score - tl.where(best == float("-inf"), 0.0, best)[:, None])
    return best, tl.sum(p, 1), tl.dot(p.to(v.dtype), v, input_precision="ieee")


@triton.jit
def _with_newest(best, weight, total, query, key, value, scale):
    """The same with one more key and value (1, HEAD_DIM)."""
    newest = tl.sum(query.to(tl.float32) * key.to(tl.float32), 1) * scale
    top = tl.maximum(best, newest)
    shrink, grow = tl.exp(best - top), tl.exp(newest - top)
    weight = weight * shrink + grow
    total = total * shrink[:, None] + grow.to(value.dtype).to(tl.float32)[:, None] * value.to(tl.float32)
    return top, weight, total


@triton.jit
def _combine_splits(partial, stats, head, used, dim, count, splits, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr):
    """Combine the parts of `count` splits of these heads, eight at a time: weighted values over sums of weights."""
    best = tl.full((HEADS,), float("-inf"), tl.float32)
    weight = tl.zeros((HEADS,), tl.float32)
    total = tl.zeros((HEADS, HEAD_DIM), tl.float32)
    for begin in range(0, count, 8):
        part = begin + tl.arange(0, 8)
        inside = used[:, None] & (part < count)[None, :]
        cell = head[:, None] * splits + part[None, :]
        top = tl.load(stats + cell * 2, mask=inside, other=float("-inf"), cache_modifier=".cg")
        more = tl.load(stats + cell * 2 + 1, mask=inside, other=0.0, cache_modifier=".cg")
        at = cell[:, :, None] * HEAD_DIM + dim[None, :, :]
        values = tl.load(partial + at, mask=inside[:, :, None], other=0.0, cache_modifier=".cg")
        new = tl.maximum(best, tl.max(top, 1))
        shrink, grow = tl.exp(best - new), tl.exp(top - new[:, None])
        weight = weight * shrink + tl.sum(more * grow, 1)
        total = total * shrink[:, None] + tl.sum(values * grow[:, :, None], 1)
        best = new
    return total / weight[:, None]


@triton.jit
def _reduce_splits(
    partial, stats, semaphore, out, best, weight, total, first, used, dim, split, count, splits,
    members: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """Store a split's part of the heads from `first` on; the program that finishes last combines all of them."""
    cell = (first + tl.arange(0, GROUP)) * splits + split
    tl.store(partial + cell[:, None] * HEAD_DIM + dim, total, mask=used[:, None])
    tl.store(stats + cell * 2, best, mask=used)
    tl.store(stats + cell * 2 + 1, weight, mask=used)
    tl.debug_barrier()
    if tl.atomic_add(semaphore, 1, sem="acq_rel") == count - 1:
        head = tl.arange(0, HEADS)
        y = _combine_splits(partial, stats, first + head, head < members, dim, count, splits, HEADS, HEAD_DIM)
        at = (first + head)[:, None] * HEAD_DIM + dim
        tl.store(out + at, y.to(out.dtype.element_ty), mask=(head < members)[:, None])
        tl.store(semaphore, 0)


@triton.jit
def _decode_attention(
    qkv, q_norm, k_norm, table, keys, values, slots, positions, partial, stats, semaphore, out,
    eps, scale, slot_stride, position_stride, splits,
    N_HEAD: tl.constexpr, N_KV: tl.constexpr, HEAD_DIM: tl.constexpr, HAS_NORM: tl.constexpr,
    GROUP: tl.constexpr, HEADS: tl.constexpr, BLOCK: tl.constexpr, SPLIT: tl.constexpr, ONE_SPLIT: tl.constexpr,
    ONE_BLOCK: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (rows, kv_heads, splits); shapes and constants in the module's docstring."""
    row, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    members: tl.constexpr = N_HEAD // N_KV
    group = tl.arange(0, GROUP)
    used = group < members
    dim = tl.arange(0, HEAD_DIM)[None, :]
    position = tl.load(positions + row)
    start = split * SPLIT
    base = tl.load(slots + row) * slot_stride + kv_head * HEAD_DIM
    if PDL:
        launch_dependents()
    if ONE_BLOCK:  # the cache's contents are older than the previous kernel
        at = start + tl.arange(0, BLOCK)
        known = at < position
        lines = base + at.to(tl.int64)[:, None] * position_stride + dim
        k = tl.load(keys + lines, mask=known[:, None], other=0.0, cache_modifier=".cg")
        v = tl.load(values + lines, mask=known[:, None], other=0.0, cache_modifier=".cg")
    cos, sin = rotation(table, position, dim, HEAD_DIM)
    if PDL:
        grid_wait()
    if start <= position:
        line = qkv + row * (N_HEAD + 2 * N_KV) * HEAD_DIM
        mine = line + (kv_head * members + group)[:, None] * HEAD_DIM
        here = tl.load(mine + dim, mask=used[:, None], other=0.0)  # all of this program's part of qkv, in one load
        there = tl.load(mine + (dim ^ 1), mask=used[:, None], other=0.0)
        own = line + (N_HEAD + kv_head) * HEAD_DIM
        key_here, key_there = tl.load(own + dim), tl.load(own + (dim ^ 1))
        value = tl.load(own + N_KV * HEAD_DIM + dim)
        query = norm_and_rotate(here, there, q_norm, cos, sin, dim, eps, HAS_NORM, HEAD_DIM)
        if ONE_BLOCK:
            best, weight, total = _one_block(query, k, v, known, scale)
        else:
            end = tl.minimum(position, start + SPLIT)
            best, weight, total = _online_softmax(
                query, keys + base, values + base, start, end, dim, scale, position_stride, GROUP, BLOCK
            )
        if position < start + SPLIT:  # the newest key is not in the cache yet: store it, and add it to the sums
            key = norm_and_rotate(key_here, key_there, k_norm, cos, sin, dim, eps, HAS_NORM, HEAD_DIM)
            tl.store(keys + base + position * position_stride + dim, key)
            tl.store(values + base + position * position_stride + dim, value)
            best, weight, total = _with_newest(best, weight, total, query, key, value, scale)
        first = row * N_HEAD + kv_head * members
        count = position // SPLIT + 1
        if ONE_SPLIT or count == 1:
            y = (total / weight[:, None]).to(out.dtype.element_ty)
            tl.store(out + (first + group)[:, None] * HEAD_DIM + dim, y, mask=used[:, None])
        else:
            _reduce_splits(
                partial, stats, semaphore + row * N_KV + kv_head, out, best, weight, total, first, used, dim,
                split, count, splits, members, GROUP, HEADS, HEAD_DIM,
            )  # fmt: skip


def decode_attention(inputs: HeadInputs, batch_invariant: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    """Attended heads (rows, heads, head_dim); each row has a slot of its own, or the spare one.

    batch_invariant: a row's result must not depend on how many rows there are. dtype: of the result; None: that of qkv.
    """
    qkv, keys, heads = inputs.qkv, inputs.keys, inputs.heads
    rows = qkv.shape[0]
    _, context, kv_heads, head_dim = keys.shape
    if heads % kv_heads or heads // kv_heads > _GROUP:
        raise ValueError(f"{heads} query heads cannot share {kv_heads} key heads, at most {_GROUP} each")
    inputs.check()
    tiles = BATCH_INVARIANT if batch_invariant else next((tiles for most, tiles in _BY_ROWS if rows <= most), _MORE)
    splits = triton.cdiv(context, tiles.split)
    block = min(tiles.block, max(16, triton.next_power_of_2(context)))
    one_block = not batch_invariant and block >= min(tiles.split, context)
    partial = torch.empty(rows, heads, splits, head_dim, device=qkv.device, dtype=torch.float32)
    stats = torch.empty(rows, heads, splits, 2, device=qkv.device, dtype=torch.float32)
    out = torch.empty(rows, heads, head_dim, device=qkv.device, dtype=dtype or qkv.dtype)
    launch(
        _decode_attention, (rows, kv_heads, splits),
        *inputs.pointers, partial, stats, semaphores(qkv.device, "decode_attention"), out,
        inputs.eps, head_dim**-0.5, keys.stride(0), keys.stride(1), splits,
        N_HEAD=heads, N_KV=kv_heads, HEAD_DIM=head_dim, HAS_NORM=inputs.norms is not None, GROUP=_GROUP,
        HEADS=triton.next_power_of_2(heads // kv_heads), BLOCK=block, SPLIT=tiles.split,
        ONE_SPLIT=splits == 1, ONE_BLOCK=one_block,
        num_warps=tiles.num_warps, num_stages=tiles.num_stages, **early_start(qkv.device),
    )  # fmt: skip
    return out
