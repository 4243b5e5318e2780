"""FlashAttention for positions of prompts over their slots of the KV cache, several prompts in one launch.

out[r, h] = softmax(q[r, h] · Kᵀ / √head_dim) · V over positions 0 … positions[r] of slot slots[r], where K and V are
of key head h // (heads / kv_heads) (GQA, Ainslie et al. 2023), with FlashAttention's online softmax (Dao et al. 2022).
All query heads of a key head are in one tile, as in FlashAttention's packed GQA, so that keys are read once for all
of them; the rows' slots show where one prompt ends and the next begins, instead of cumulative lengths.

A program handles ROWS rows and one key head. It processes runs of rows of the same slot one after the other, and for
each run the slot's keys from position 0 on, BLOCK at a time. Masked keys add exactly nothing, so a row's result is the
same in any batch (batch invariance).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents
from engine.kernels.rope import HeadInputs, rope

ROWS, BLOCK = 8, 64
"""Rows per tile and keys loaded at a time. The fastest measured on an H200 from 32 to 512 rows: a prefill of 64
positions after 300 others takes 3.07 ms; with 16 rows 3.55, with each row separately (`decode_attention`) 3.25; one of
512 takes 8.1, 8.1 and 11."""


@triton.jit(do_not_specialize=["rows"])
def _prefill_attention(
    queries, keys, values, slots, positions, out, rows, scale, slot_stride, position_stride,
    N_HEAD: tl.constexpr, N_KV: tl.constexpr, HEAD_DIM: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (rows / ROWS, kv_heads): queries and out (rows, N_HEAD, HEAD_DIM), GROUP the heads of a key head or more.

    keys, values (slots, context, N_KV, HEAD_DIM); slots, positions (rows,).
    """
    begin, kv_head = tl.program_id(0) * ROWS, tl.program_id(1)
    end = tl.minimum(begin + ROWS, rows)
    members: tl.constexpr = N_HEAD // N_KV
    line = tl.arange(0, ROWS * GROUP)
    row, member = begin + line // GROUP, line % GROUP
    used = (row < end) & (member < members)
    dim = tl.arange(0, HEAD_DIM)[None, :]
    cell = (row * N_HEAD + kv_head * members + member)[:, None] * HEAD_DIM + dim
    slot = tl.load(slots + row, mask=used, other=0)
    position = tl.load(positions + row, mask=used, other=0)
    if PDL:
        grid_wait()
        launch_dependents()
    query = tl.load(queries + cell, mask=used[:, None], other=0.0)
    best = tl.full((ROWS * GROUP,), float("-inf"), tl.float32)
    weight = tl.zeros((ROWS * GROUP,), tl.float32)
    total = tl.zeros((ROWS * GROUP, HEAD_DIM), tl.float32)
    while begin < end:
        here = tl.load(slots + begin)
        after = tl.min(tl.where(used & (row > begin) & (slot != here), row, end))
        last = tl.where((row >= begin) & (row < after), position, -1)  # each row's last visible position
        base = here * slot_stride + kv_head * HEAD_DIM
        for start in range(0, tl.max(last) + 1, BLOCK):
            at = start + tl.arange(0, BLOCK)
            lines = base + at.to(tl.int64)[:, None] * position_stride + dim
            inside = (at <= tl.max(last))[:, None]
            k = tl.load(keys + lines, mask=inside, other=0.0)
            v = tl.load(values + lines, mask=inside, other=0.0)
            score = tl.dot(query, tl.trans(k), input_precision="ieee") * scale
            score = tl.where(at[None, :] <= last[:, None], score, float("-inf"))
            new = tl.maximum(best, tl.max(score, 1))
            shift = tl.where(new == float("-inf"), 0.0, new)  # for a row whose slot has not been processed yet
            p = tl.exp(score - shift[:, None])
            shrink = tl.exp(best - shift)
            weight = weight * shrink + tl.sum(p, 1)
            total = total * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            best = new
        begin = after
    y = total / tl.where(used, weight, 1.0)[:, None]
    tl.store(out + cell, y.to(out.dtype.element_ty), mask=used[:, None])


def prefill_attention(inputs: HeadInputs, dtype: torch.dtype | None = None) -> Tensor:
    """Attended heads (rows, heads, head_dim); dtype as in `decode_attention`.

    Several rows may share a slot, and a row sees the keys that the others store there up to its position. The longer
    the runs of rows of one slot, the less is read.
    """
    queries, keys = rope(inputs), inputs.keys
    rows, heads, head_dim = queries.shape
    kv_heads = keys.shape[2]
    out = torch.empty_like(queries, dtype=dtype)
    group = triton.next_power_of_2(heads // kv_heads)
    tile = max(ROWS, 16 // group)  # a tensor core's tile has sixteen lines at least
    launch(
        _prefill_attention, (triton.cdiv(rows, tile), kv_heads),
        queries, keys, inputs.values, inputs.slots, inputs.positions, out,
        rows, head_dim**-0.5, keys.stride(0), keys.stride(1),
        N_HEAD=heads, N_KV=kv_heads, HEAD_DIM=head_dim, GROUP=group, ROWS=tile,
        BLOCK=BLOCK, num_warps=4, num_stages=3, **early_start(queries.device),
    )  # fmt: skip
    return out
