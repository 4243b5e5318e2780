"""Streamed sliding-window attention: rotates a chunk's queries and keys, attends, stores keys and values in a ring.

y[r, t, h] = softmax(q · Kᵀ / √head_dim) · V over positions p with t − window < p ≤ t: the rolling buffer of Mistral 7B
(Jiang et al. 2023), with RoPE on halves (GPT-NeoX's layout). A program handles a head of a row, stores the chunk in the
ring, and reads the window from there block by block, with an online softmax (Milakov & Gimelshein 2018). Fusing
rotation, attention and the ring's update is our own.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.implicit_gemm import to_bfloat16
from engine.kernels.launch import launch

_ONE_STEP, _SEVERAL = (128, 4, 1), (16, 2, 3)
"""Positions that a program reads at a time, at least 16; its warps, and its number of such reads in flight. The fastest
measured on an H100: 64 rows of eight steps take 63 µs, one row of one step 6."""


@triton.jit
def _rotated(at, cos, sin, mask, half):
    """The two halves of vectors, rotated; `at` points to the first."""
    a = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(at + half, mask=mask, other=0.0).to(tl.float32)
    return a * cos - b * sin, a * sin + b * cos


@triton.jit
def _table(positions, frequencies, ROUNDS: tl.constexpr):
    """Cosine and sine; rounded to bfloat16, like the tables that Fish's weights were trained with."""
    angle = positions.to(tl.float32) * frequencies
    cos, sin = tl.cos(angle), tl.sin(angle)
    if ROUNDS:
        cos, sin = to_bfloat16(cos), to_bfloat16(sin)
    return cos, sin


@triton.jit
def _take_in(best, total, y1, y2, q1, q2, k1, k2, v1, v2, is_visible):
    """Add keys and values to the online softmax, masked by is_visible, in float32 without tensor cores."""
    s = tl.dot(q1, tl.trans(k1), input_precision="ieee")
    s = tl.dot(q2, tl.trans(k2), s, input_precision="ieee")
    s = tl.where(is_visible, s, float("-inf"))
    high = tl.maximum(best, tl.max(s, 1))
    e, shrink = tl.exp(s - high[:, None]), tl.exp(best - high)
    y1 = tl.dot(e, v1, y1 * shrink[:, None], input_precision="ieee")
    y2 = tl.dot(e, v2, y2 * shrink[:, None], input_precision="ieee")
    return high, total * shrink + tl.sum(e, 1), y1, y2


@triton.jit
def _read(cache, place, inside, half):
    """The two halves of vectors in a ring; `place` is the start of the first."""
    return tl.load(cache + place, mask=inside, other=0.0), tl.load(cache + place + half, mask=inside, other=0.0)


@triton.jit(do_not_specialize=["steps"])
def _window_attention(
    qkv, frequencies, keys, values, slots, positions, out, steps, heads, ring, window, half, scale, slot_stride,
    STEPS: tl.constexpr, BLOCK: tl.constexpr, HALF: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """Grid (rows, heads): see `window_attention` for shapes; HALF, STEPS and BLOCK are powers of two."""
    row, head = tl.program_id(0), tl.program_id(1)
    t, p, d = tl.arange(0, STEPS)[:, None], tl.arange(0, BLOCK), tl.arange(0, HALF)[None, :]
    width = heads * 2 * half
    slot = tl.load(slots + row)
    start = tl.load(positions + slot)
    cos, sin = _table(start + t, tl.load(frequencies + d, mask=d < half, other=0.0), ROUNDS)
    mask = (t < steps) & (d < half)
    query = qkv + row.to(tl.int64) * steps * (3 * width) + head * 2 * half + t * (3 * width) + d
    key, value = query + width, query + 2 * width
    q1, q2 = _rotated(query, cos, sin, mask, half)
    q1, q2 = q1 * scale, q2 * scale
    k1, k2 = _rotated(key, cos, sin, mask, half)
    cell = slot * slot_stride + head * 2 * half + d
    target = cell + (start + t) % ring * width
    tl.store(keys + target, k1, mask=mask)
    tl.store(keys + target + half, k2, mask=mask)
    tl.store(values + target, tl.load(value, mask=mask, other=0.0).to(tl.float32), mask=mask)
    tl.store(values + target + half, tl.load(value + half, mask=mask, other=0.0).to(tl.float32), mask=mask)
    best = tl.full((STEPS,), -1e30, tl.float32)  # finite, as a stream's first steps may see nothing before them
    total = tl.zeros((STEPS,), tl.float32)
    y1, y2 = tl.zeros((STEPS, HALF), tl.float32), tl.zeros((STEPS, HALF), tl.float32)
    tl.debug_barrier()  # the chunk's own keys and values are read by other threads than those that wrote them
    earliest = tl.maximum(window - 1 - start, 0)  # nothing exists before it
    oldest = (start - window + 1 + ring) % ring
    for block in range(0, window - 1 + steps, BLOCK):
        i = block + p
        index = oldest + i
        place = cell + tl.where(index < ring, index, index - ring)[:, None] * width
        inside = ((i >= earliest) & (i < window - 1 + steps))[:, None] & (d < half)
        old_k1, old_k2 = _read(keys, place, inside, half)
        old_v1, old_v2 = _read(values, place, inside, half)
        is_visible = (i >= earliest)[None, :] & (i[None, :] >= t) & (i[None, :] < t + window)
        best, total, y1, y2 = _take_in(best, total, y1, y2, q1, q2, old_k1, old_k2, old_v1, old_v2, is_visible)
    target = out + (row.to(tl.int64) * steps + t) * width + head * 2 * half + d
    tl.store(target, (y1 / total[:, None]).to(out.dtype.element_ty), mask=mask)
    tl.store(target + half, (y2 / total[:, None]).to(out.dtype.element_ty), mask=mask)


def window_attention(
    qkv: Tensor, frequencies: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor, window: int,
    exact: bool = False,
) -> Tensor:  # fmt: skip
    """qkv (rows, steps, 3, heads, head_dim), each step sees itself and the window − 1 before it → (rows, steps, width).

    Channels of queries and keys are even ones first, then odd ones; frequencies (head_dim / 2,) float32. keys, values:
    rings (slots, ring, heads, head_dim) float32 of at least window − 1 + steps positions, so that no position is
    overwritten that is still read; slots (rows,) and positions (slots,) int64: each row's slot, and its progress.
    exact: whether rotations keep float32, see `rope_angles`.
    """
    rows, steps, _, heads, head_dim = qkv.shape
    ring = keys.shape[1]
    if ring < window - 1 + steps:
        raise ValueError(f"a ring of {ring} is too small for {steps} steps and a window of {window}")
    if keys.shape[2:] != (heads, head_dim) or keys.stride() != values.stride() or not qkv.is_contiguous():
        raise ValueError(f"keys {tuple(keys.shape)} and values do not fit qkv {tuple(qkv.shape)}")
    out = torch.empty(rows, steps, heads * head_dim, device=qkv.device, dtype=qkv.dtype)
    block, warps, stages = _ONE_STEP if steps == 1 else _SEVERAL
    launch(
        _window_attention, (rows, heads), qkv, frequencies, keys, values, slots, positions, out,
        steps, heads, ring, window, head_dim // 2, head_dim**-0.5, keys.stride(0),
        STEPS=triton.next_power_of_2(steps), BLOCK=block,
        HALF=max(16, triton.next_power_of_2(head_dim // 2)), ROUNDS=not exact, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out
