"""Grouped-query attention of one query a row over its slot of the KV cache, long contexts split over programs.

Splits have a fixed number of keys and are combined in order, so a row's result depends on its own length alone,
never on the batch around it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.model import attention

SPLIT = 128
"""Keys a program reads."""
_GROUP = 16  # query heads a program holds: a tensor-core tile, of which S2 Pro fills 4
_BLOCK = 64


@triton.jit
def _partial(
    q, keys, values, slots, positions, partial, stats, scale, slot_stride, position_stride, splits,
    N_HEAD: tl.constexpr, N_KV: tl.constexpr, HEAD_DIM: tl.constexpr,
    GROUP: tl.constexpr, BLOCK: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    row, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(positions + row) + 1
    start = split * SPLIT
    if start < length:
        each: tl.constexpr = N_HEAD // N_KV
        group = tl.arange(0, GROUP)
        dim = tl.arange(0, HEAD_DIM)
        head = row * N_HEAD + kv_head * each + group
        used = group < each
        query = tl.load(q + head[:, None] * HEAD_DIM + dim[None, :], mask=used[:, None], other=0.0)
        base = tl.load(slots + row) * slot_stride + kv_head * HEAD_DIM
        best = tl.full((GROUP,), float("-inf"), tl.float32)
        weight = tl.zeros((GROUP,), tl.float32)
        total = tl.zeros((GROUP, HEAD_DIM), tl.float32)
        end = tl.minimum(length, start + SPLIT)
        for block in range(start, end, BLOCK):
            at = block + tl.arange(0, BLOCK)
            seen = at < end
            cell = base + at.to(tl.int64)[:, None] * position_stride + dim[None, :]
            k = tl.load(keys + cell, mask=seen[:, None], other=0.0)
            score = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
            score = tl.where(seen[None, :], score, float("-inf"))
            new = tl.maximum(best, tl.max(score, 1))
            p = tl.exp(score - new[:, None])
            shrink = tl.exp(best - new)
            weight = weight * shrink + tl.sum(p, 1)
            v = tl.load(values + cell, mask=seen[:, None], other=0.0)
            total = total * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            best = new
        place = head * splits + split
        tl.store(partial + place[:, None] * HEAD_DIM + dim[None, :], total, mask=used[:, None])
        tl.store(stats + place * 2, best, mask=used)
        tl.store(stats + place * 2 + 1, weight, mask=used)


@triton.jit
def _combine(partial, stats, positions, out, splits, N_HEAD: tl.constexpr, HEAD_DIM: tl.constexpr, SPLIT: tl.constexpr):
    row = tl.program_id(0)
    head = row * N_HEAD + tl.program_id(1)
    dim = tl.arange(0, HEAD_DIM)
    count = (tl.load(positions + row) + SPLIT) // SPLIT
    best = -float("inf")
    weight = 0.0
    total = tl.zeros((HEAD_DIM,), tl.float32)
    for split in range(count):
        place = head * splits + split
        top = tl.load(stats + place * 2)
        new = tl.maximum(best, top)
        shrink, grow = tl.exp(best - new), tl.exp(top - new)
        weight = weight * shrink + tl.load(stats + place * 2 + 1) * grow
        total = total * shrink + tl.load(partial + place * HEAD_DIM + dim) * grow
        best = new
    tl.store(out + head * HEAD_DIM + dim, (total / weight).to(out.dtype.element_ty))


def decode_attention(q: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """q (rows, heads, head_dim) over keys, values (slots, context, kv_heads, head_dim) → (rows, heads, head_dim).

    Row i sees positions 0 … positions[i] of slot slots[i]; both (rows,) int64 on the device, never read by the host.
    """
    rows, n_head, head_dim = q.shape
    _, context, kv_heads, _ = keys.shape
    if n_head % kv_heads or n_head // kv_heads > _GROUP:
        raise ValueError(f"{n_head} query heads cannot share {kv_heads} key heads, at most {_GROUP} each")
    if keys.stride() != values.stride() or keys.stride()[2:] != (head_dim, 1) or not q.is_contiguous():
        raise ValueError(f"keys {keys.stride()} and values {values.stride()} must be laid out alike, heads together")
    splits = triton.cdiv(context, SPLIT)
    partial = torch.empty(rows, n_head, splits, head_dim, device=q.device, dtype=torch.float32)
    stats = torch.empty(rows, n_head, splits, 2, device=q.device, dtype=torch.float32)
    out = torch.empty_like(q)
    _partial[(rows, kv_heads, splits)](
        q, keys, values, slots, positions, partial, stats, head_dim**-0.5, keys.stride(0), keys.stride(1), splits,
        N_HEAD=n_head, N_KV=kv_heads, HEAD_DIM=head_dim, GROUP=_GROUP, BLOCK=_BLOCK, SPLIT=SPLIT, num_warps=4,
    )  # fmt: skip
    _combine[(rows, n_head)](
        partial, stats, positions, out, splits, N_HEAD=n_head, HEAD_DIM=head_dim, SPLIT=SPLIT, num_warps=1
    )
    return out


def decode_attention_twin(q: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """The same in plain torch; reads the lengths back to the host."""
    outputs = []
    for row, (slot, position) in enumerate(zip(slots.tolist(), positions.tolist(), strict=True)):
        k, v = keys[slot, None, : position + 1], values[slot, None, : position + 1]
        outputs.append(attention(q[row][None, None], k, v)[0, 0])
    return torch.stack(outputs).view_as(q)
