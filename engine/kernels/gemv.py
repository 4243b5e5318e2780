"""Matrix products of one row or two, on the CUDA cores: bound by reading the weights.

Made for a frame, where each stands beside others: it is set up before the one before it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import launch
from engine.kernels.pdl import call_ahead, early, let_the_next_one_start, overlaps, wait_for_the_one_before

FEW = 2
"""So many rows at most are multiplied and added on the CUDA cores: 4.9 ms a frame of two, 5.6 on the tensor cores."""
HELD = 2048
"""Weights a column that few rows' product reads early, into registers, where the kernel before leaves memory idle."""
AHEAD = 8192
"""Bytes of the next product's weights that a program calls into the L2 cache as it ends: 0.02 ms a frame with fp8."""
PART = 16
"""Bytes of weights that a thread holds side by side and sums at once where it has too few registers for a sum of each:
with float8 weights, and with two rows."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a product is cut up: columns and depth a program takes at a time, warps, stages, splits of the depth."""

    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    splits: int = 1


@triton.jit
def inputs(x, norm, start, depth, BLOCK_K: tl.constexpr, HAS_NORM: tl.constexpr):
    """BLOCK_K inputs from `start` on as float32, with the norm's gains, and their squares."""
    k = start + tl.arange(0, BLOCK_K)
    xs = tl.load(x + k, mask=k < depth, other=0.0)
    wide = xs.to(tl.float32)
    squares = wide * wide
    if HAS_NORM:
        wide = (wide * tl.load(norm + k, mask=k < depth, other=0.0).to(tl.float32)).to(xs.dtype).to(tl.float32)
    return wide, squares


@triton.jit
def leave(y, u, residual, out, cell, mask, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr):
    """Sums at `cell` of the result: gated by u, rounded, added to the residual."""
    if GATED:
        y = y * tl.sigmoid(y) * u
    if HAS_RESIDUAL:
        y = y.to(out.dtype.element_ty).to(tl.float32)
        y += tl.load(residual + cell, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + cell, y.to(out.dtype.element_ty), mask=mask)


@triton.jit
def give(
    y, u, squares, scales, residual, out, column, columns, depth, eps,
    SCALED: tl.constexpr, HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
):  # fmt: skip
    """What follows a row's sums: scales and norm, then what follows everybody's."""
    inside = column < columns
    if SCALED:
        y *= tl.load(scales + column, mask=inside, other=0.0)
        if GATED:
            u *= tl.load(scales + columns + column, mask=inside, other=0.0)
    if HAS_NORM:
        scale = tl.rsqrt(tl.sum(squares, 0) / depth + eps)
        y *= scale
        u *= scale
    leave(y, u, residual, out, column, inside, GATED, HAS_RESIDUAL)


@triton.jit
def _in_parts(products, LINES: tl.constexpr, DEPTH: tl.constexpr, PART: tl.constexpr):
    """Each thread sums what it holds side by side, so that it keeps one sum of PART and not PART sums."""
    return tl.sum(tl.reshape(products, (LINES, DEPTH // PART, PART)), 2)


@triton.jit
def _few(
    x, weight, scales, norm, residual, ahead, out, columns, depth, eps, ahead_bytes, ROWS: tl.constexpr,
    SCALED: tl.constexpr, HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr, HELD: tl.constexpr,
    PART: tl.constexpr, AHEAD: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    line = tl.minimum(column, columns - 1).to(tl.int64)[:, None] * depth
    up = columns.to(tl.int64) * depth
    if OVERLAP and HAS_RESIDUAL:
        let_the_next_one_start()
    if HELD > 0:
        held = tl.load(weight + line + tl.arange(0, HELD)[None, :], eviction_policy="evict_first")
    if OVERLAP:
        wait_for_the_one_before()
    if HELD > 0:
        held_1, _ = inputs(x, norm, 0, depth, HELD, HAS_NORM)
        if ROWS == 2:
            held_2, _ = inputs(x + depth, norm, 0, depth, HELD, HAS_NORM)
    if OVERLAP and not HAS_RESIDUAL and not GATED:
        let_the_next_one_start()
    y_1 = tl.zeros((BLOCK_N, BLOCK_K // PART), tl.float32)
    u_1, y_2, u_2 = y_1, y_1, y_1
    squares_1 = tl.zeros((BLOCK_K,), tl.float32)
    squares_2 = squares_1
    for start in tl.range(HELD, depth, BLOCK_K, num_stages=STAGES):
        inside = (k < depth - start)[None, :]
        ws = tl.load(weight + line + (start + k)[None, :], mask=inside, other=0.0).to(tl.float32)
        if GATED:
            ups = tl.load(weight + up + line + (start + k)[None, :], mask=inside, other=0.0).to(tl.float32)
        wide, more = inputs(x, norm, start, depth, BLOCK_K, HAS_NORM)
        squares_1 += more
        y_1 += _in_parts(ws * wide[None, :], BLOCK_N, BLOCK_K, PART)
        if GATED:
            u_1 += _in_parts(ups * wide[None, :], BLOCK_N, BLOCK_K, PART)
        if ROWS == 2:
            wide, more = inputs(x + depth, norm, start, depth, BLOCK_K, HAS_NORM)
            squares_2 += more
            y_2 += _in_parts(ws * wide[None, :], BLOCK_N, BLOCK_K, PART)
            if GATED:
                u_2 += _in_parts(ups * wide[None, :], BLOCK_N, BLOCK_K, PART)
    if OVERLAP and AHEAD > 0:
        call_ahead(ahead, ahead_bytes, AHEAD)
    if OVERLAP and GATED:  # it keeps every multiprocessor busy to its end: who starts before that is in its way
        let_the_next_one_start()
    y, u = tl.sum(y_1, 1), tl.sum(u_1, 1)
    if HELD > 0:
        y += tl.sum(held.to(tl.float32) * held_1[None, :], 1)
    give(y, u, squares_1, scales, residual, out, column, columns, depth, eps, SCALED, HAS_NORM, GATED, HAS_RESIDUAL)
    if ROWS == 2:
        y, u = tl.sum(y_2, 1), tl.sum(u_2, 1)
        if HELD > 0:
            y += tl.sum(held.to(tl.float32) * held_2[None, :], 1)
        give(
            y, u, squares_2, scales, residual + columns, out + columns, column, columns, depth, eps,
            SCALED, HAS_NORM, GATED, HAS_RESIDUAL,
        )  # fmt: skip


def through_few(
    x: Tensor,
    weight: Tensor,
    scales: Tensor | None,
    norm: Tensor | None,
    eps: float,
    gated: bool,
    residual: Tensor | None,
    idle: bool,
    ahead: Tensor | None,
) -> Tensor:
    """`linear` for at most FEW rows."""
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    out = torch.empty(rows, columns, device=x.device, dtype=x.dtype)
    tiles = _tiles(rows, columns, depth, gated, weight.element_size(), idle)
    launch(
        _few, (triton.cdiv(columns, tiles.block_n),),
        x, weight, x if scales is None else scales, x if norm is None else norm, x if residual is None else residual,
        x if ahead is None else ahead, out, columns, depth, eps, 0 if ahead is None else ahead.nbytes, ROWS=rows,
        SCALED=scales is not None, HAS_NORM=norm is not None, GATED=gated, HAS_RESIDUAL=residual is not None,
        BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, STAGES=tiles.num_stages,
        HELD=min(HELD, triton.next_power_of_2(depth) // 2) if idle else 0,
        PART=1 if scales is None and rows == 1 else PART // weight.element_size(),
        AHEAD=0 if ahead is None else AHEAD, OVERLAP=overlaps(x.device), num_warps=tiles.num_warps, **early(x.device),
    )  # fmt: skip
    return out


def _tiles(rows: int, columns: int, depth: int, gated: bool, item: int, idle: bool) -> Tiles:
    """The best measured on an H200 for one row and for two."""
    if idle:
        return Tiles(2, 512, 2, 4)
    if gated:
        one, two = (
            (Tiles(4, 256, 2, 3), Tiles(4, 256, 2, 6)) if item > 1 else (Tiles(8, 512, 2, 2), Tiles(8, 256, 2, 4))
        )
    elif columns > depth:
        one, two = (
            (Tiles(8, 256, 2, 4), Tiles(8, 256, 2, 4)) if item > 1 else (Tiles(16, 256, 2, 4), Tiles(4, 512, 1, 6))
        )
    else:
        one, two = Tiles(4, 512, 2, 4) if item > 1 else Tiles(4, 1024, 4, 4), Tiles(4, 512, 2, 4)
    return one if rows == 1 else two
