"""Streamed sliding-window attention: rotate a chunk's queries and keys, attend, put keys and values in a ring.

y[r, t, h] = softmax(q · Kᵀ / √head_dim) · V over positions p with t − window < p ≤ t: the rolling buffer of Mistral 7B
(Jiang et al. 2023), with RoPE on halves (GPT-NeoX's layout). A program has a head of a row: all of its window fits into
registers, so there is neither online softmax nor a split. Fusing rotation, attention and the ring's update is our own.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.codec.implicit_gemm import to_bfloat16
from engine.kernels.launch import launch


@triton.jit
def _rotated(at, cos, sin, mask, half):
    """The two halves of vectors, rotated; `at` points to the first."""
    a = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(at + half, mask=mask, other=0.0).to(tl.float32)
    return a * cos - b * sin, a * sin + b * cos


@triton.jit
def _table(positions, frequencies):
    """Cosine and sine, rounded to bfloat16, as the tables were that the weights were trained with."""
    angle = positions.to(tl.float32) * frequencies
    return to_bfloat16(tl.cos(angle)), to_bfloat16(tl.sin(angle))


@triton.jit(do_not_specialize=["steps"])
def _window_attention(
    qkv, frequencies, keys, values, slots, positions, out, steps, heads, ring, window, half, scale, slot_stride,
    STEPS: tl.constexpr, WINDOW: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Grid (rows, heads): see `window_attention` for shapes; HALF, STEPS, WINDOW are powers of two."""
    row, head = tl.program_id(0), tl.program_id(1)
    t, p, d = tl.arange(0, STEPS), tl.arange(0, WINDOW), tl.arange(0, HALF)
    width = heads * 2 * half
    slot = tl.load(slots + row)
    start = tl.load(positions + slot)
    d_inside = d < half
    frequency = tl.load(frequencies + d, mask=d_inside, other=0.0)
    first = qkv + row.to(tl.int64) * steps * (3 * width) + head * 2 * half
    then = start - window + 1 + p  # the window − 1 positions before this chunk
    old = slot * slot_stride + ((then + ring) % ring)[:, None] * width + head * 2 * half + d[None, :]
    inside = ((then >= 0) & (then < start))[:, None] & d_inside[None, :]
    old_k1, old_k2 = tl.load(keys + old, mask=inside, other=0.0), tl.load(keys + old + half, mask=inside, other=0.0)
    old_v1, old_v2 = tl.load(values + old, mask=inside, other=0.0), tl.load(values + old + half, mask=inside, other=0.0)
    now = start + t
    mask = (t < steps)[:, None] & d_inside[None, :]
    at = first + t[:, None] * (3 * width) + d[None, :]
    cos, sin = _table(now[:, None], frequency[None, :])
    k1, k2 = _rotated(at + width, cos, sin, mask, half)
    v1 = tl.load(at + 2 * width, mask=mask, other=0.0).to(tl.float32)
    v2 = tl.load(at + 2 * width + half, mask=mask, other=0.0).to(tl.float32)
    cell = slot * slot_stride + (now % ring)[:, None] * width + head * 2 * half + d[None, :]
    tl.store(keys + cell, k1, mask=mask)
    tl.store(keys + cell + half, k2, mask=mask)
    tl.store(values + cell, v1, mask=mask)
    tl.store(values + cell + half, v2, mask=mask)
    for step in range(steps):
        q_cos, q_sin = _table(start + step, frequency)
        q1, q2 = _rotated(first + step * (3 * width) + d, q_cos, q_sin, d_inside, half)
        past = tl.sum(old_k1 * q1[None, :] + old_k2 * q2[None, :], 1) * scale
        past = tl.where((then >= 0) & (then < start) & (then > start + step - window), past, float("-inf"))
        own = tl.sum(k1 * q1[None, :] + k2 * q2[None, :], 1) * scale
        own = tl.where((t <= step) & (t > step - window), own, float("-inf"))
        best = tl.maximum(tl.max(past, 0), tl.max(own, 0))
        past, own = tl.exp(past - best), tl.exp(own - best)
        total = tl.sum(past, 0) + tl.sum(own, 0)
        y1 = tl.sum(past[:, None] * old_v1, 0) + tl.sum(own[:, None] * v1, 0)
        y2 = tl.sum(past[:, None] * old_v2, 0) + tl.sum(own[:, None] * v2, 0)
        to = out + (row.to(tl.int64) * steps + step) * width + head * 2 * half + d
        tl.store(to, (y1 / total).to(out.dtype.element_ty), mask=d_inside)
        tl.store(to + half, (y2 / total).to(out.dtype.element_ty), mask=d_inside)


def window_attention(
    qkv: Tensor, frequencies: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor, window: int
) -> Tensor:
    """qkv (rows, steps, 3, heads, head_dim), each step over itself and the window − 1 before it → (rows, steps, width).

    Channels of queries and keys are even ones first, then odd ones; frequencies (head_dim / 2,) float32. keys, values:
    rings (slots, ring, heads, head_dim) float32 of at least window − 1 + steps positions, so that nothing is written
    that is still read; slots (rows,) and positions (slots,) int64: where each row is, and how far.
    """
    rows, steps, _, heads, head_dim = qkv.shape
    ring = keys.shape[1]
    if ring < window - 1 + steps:
        raise ValueError(f"a ring of {ring} is too small for {steps} steps and a window of {window}")
    if keys.shape[2:] != (heads, head_dim) or keys.stride() != values.stride() or not qkv.is_contiguous():
        raise ValueError(f"keys {tuple(keys.shape)} and values do not fit qkv {tuple(qkv.shape)}")
    out = torch.empty(rows, steps, heads * head_dim, device=qkv.device, dtype=qkv.dtype)
    launch(
        _window_attention, (rows, heads), qkv, frequencies, keys, values, slots, positions, out,
        steps, heads, ring, window, head_dim // 2, head_dim**-0.5, keys.stride(0),
        STEPS=triton.next_power_of_2(steps), WINDOW=triton.next_power_of_2(window),
        HALF=triton.next_power_of_2(head_dim // 2), num_warps=8,
    )  # fmt: skip
    return out


def window_attention_twin(
    qkv: Tensor, frequencies: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor, window: int
) -> Tensor:
    """The same in plain torch."""
    ring = keys.shape[1]
    now = positions[slots][:, None] + torch.arange(qkv.shape[1], device=qkv.device)
    angles = (now.float()[..., None] * frequencies)[:, :, None]
    cos, sin = angles.cos().bfloat16().float(), angles.sin().bfloat16().float()
    q, k = (_turned(qkv[:, :, i].float(), cos, sin) for i in (0, 1))
    keys[slots[:, None], now % ring], values[slots[:, None], now % ring] = k, qkv[:, :, 2].float()
    then = positions[slots][:, None] + torch.arange(1 - window, qkv.shape[1], device=qkv.device)
    old_k, old_v = (cache[slots[:, None], then % ring].transpose(1, 2) for cache in (keys, values))
    seen = (then[:, None] >= 0) & (then[:, None] <= now[:, :, None]) & (then[:, None] > now[:, :, None] - window)
    y = F.scaled_dot_product_attention(q.transpose(1, 2), old_k, old_v, attn_mask=seen[:, None])
    return y.transpose(1, 2).flatten(2).to(qkv.dtype)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
