"""GEMV over packed 12-bit weights, for one row or two: `engine.kernels.gemv` except for reading the weights."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.gemv import MatmulTiles, epilogue, load_inputs
from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents
from engine.kernels.packed12 import Packed12, pairs, to_float32


@triton.jit
def _unpack(words, start, groups, QUADS: tl.constexpr, GROUPS: tl.constexpr):
    """Eight times GROUPS weights of these quads of columns, (QUADS, GROUPS, 4, 8) float32, before their scales."""
    group = start + tl.arange(0, GROUPS)[None, :, None]
    at, inside = words + group * 4, group < groups
    first = tl.load(at, mask=inside, other=0)
    second = tl.load(at + 4 * groups, mask=inside, other=0)
    third = tl.load(at + 8 * groups, mask=inside, other=0)
    p0, p1, p2, p3 = pairs(first, second, third)
    w0, w1 = to_float32(p0)
    w2, w3 = to_float32(p1)
    w4, w5 = to_float32(p2)
    w6, w7 = to_float32(p3)
    even = tl.join(tl.join(w0, w4), tl.join(w2, w6))
    odd = tl.join(tl.join(w1, w5), tl.join(w3, w7))
    return tl.reshape(tl.join(even, odd), (QUADS, GROUPS, 4, 8))


@triton.jit
def _gemv_packed12(
    x, words, scales, norm, residual, out, columns, depth, eps, ROWS: tl.constexpr,
    HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    QUADS: tl.constexpr, GROUPS: tl.constexpr, STAGES: tl.constexpr, PRELOAD: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (columns / (4 · QUADS),); words and scales as in `Packed12`, PRELOAD groups read before the wait."""
    groups = tl.multiple_of(depth // 8, 16)
    quads = tl.cdiv(columns, 4)
    quad = tl.minimum(tl.program_id(0) * QUADS + tl.arange(0, QUADS), quads - 1).to(tl.int64)[:, None, None]
    words = words.to(tl.pointer_type(tl.uint32)) + tl.arange(0, 4)[None, None, :]
    gates, ups = words + quad * (12 * groups), words + (quads + quad) * (12 * groups)
    if PDL and HAS_RESIDUAL:
        launch_dependents()
    if PRELOAD > 0:
        preloaded = _unpack(gates, 0, groups, QUADS, PRELOAD)
    if PDL:
        grid_wait()
    if PDL and not HAS_RESIDUAL and not GATED:
        launch_dependents()
    y_1 = tl.zeros((QUADS, GROUPS, 4), tl.float32)
    u_1, y_2, u_2 = y_1, y_1, y_1
    squares_1 = tl.zeros((8 * GROUPS,), tl.float32)
    squares_2 = squares_1
    for start in tl.range(PRELOAD, groups, GROUPS, num_stages=STAGES):
        # Inputs come first, so that their layout suits the weights: after these they would be moved.
        wide_1, more = load_inputs(x, norm, 8 * start, depth, 8 * GROUPS, HAS_NORM)
        wide_1 = tl.reshape(wide_1, (1, GROUPS, 1, 8))
        squares_1 += more
        if ROWS == 2:
            wide_2, more = load_inputs(x + depth, norm, 8 * start, depth, 8 * GROUPS, HAS_NORM)
            wide_2 = tl.reshape(wide_2, (1, GROUPS, 1, 8))
            squares_2 += more
        ws = _unpack(gates, start, groups, QUADS, GROUPS)
        y_1 += tl.sum(ws * wide_1, 3)
        if ROWS == 2:
            y_2 += tl.sum(ws * wide_2, 3)
        if GATED:
            us = _unpack(ups, start, groups, QUADS, GROUPS)
            u_1 += tl.sum(us * wide_1, 3)
            if ROWS == 2:
                u_2 += tl.sum(us * wide_2, 3)
    if PDL and GATED:  # as in `_gemv`: a kernel that starts earlier would slow it down
        launch_dependents()
    y, u = tl.sum(y_1, 1), tl.sum(u_1, 1)
    if PRELOAD > 0:
        y += _preloaded_sums(preloaded, x, norm, depth, PRELOAD)
    column = tl.program_id(0) * 4 * QUADS + tl.arange(0, 4 * QUADS)
    y, u = tl.reshape(y, (4 * QUADS,)), tl.reshape(u, (4 * QUADS,))
    epilogue(y, u, squares_1, scales, residual, out, column, columns, depth, eps, True, HAS_NORM, GATED, HAS_RESIDUAL)
    if ROWS == 2:
        y, u = tl.sum(y_2, 1), tl.sum(u_2, 1)
        if PRELOAD > 0:
            y += _preloaded_sums(preloaded, x + depth, norm, depth, PRELOAD)
        y, u = tl.reshape(y, (4 * QUADS,)), tl.reshape(u, (4 * QUADS,))
        epilogue(
            y, u, squares_2, scales, residual + columns, out + columns, column, columns, depth, eps,
            True, HAS_NORM, GATED, HAS_RESIDUAL,
        )  # fmt: skip


@triton.jit
def _preloaded_sums(preloaded, x, norm, depth, PRELOAD: tl.constexpr):
    """The preloaded weights' contribution to the sums (QUADS, 4)."""
    wide, _ = load_inputs(x, norm, 0, depth, 8 * PRELOAD, False)
    return tl.sum(tl.sum(preloaded * tl.reshape(wide, (1, PRELOAD, 1, 8)), 3), 1)


def gemv_packed12(
    x: Tensor, weight: Packed12, norm: Tensor | None, eps: float, gated: bool, residual: Tensor | None, preload: bool
) -> Tensor:
    """`linear` for x (at most GEMV_ROWS, depth) over packed weights; parameters and result as there."""
    columns, depth = weight.shape
    columns = columns // 2 if gated else columns
    out = torch.empty(len(x), columns, device=x.device, dtype=x.dtype)
    tiles = _tiles(len(x), columns, depth, gated, preload)
    launch(
        _gemv_packed12, (triton.cdiv(columns, tiles.block_n),),
        x, weight.words, weight.scales, x if norm is None else norm, x if residual is None else residual,
        out, columns, depth, eps, ROWS=len(x),
        HAS_NORM=norm is not None, GATED=gated, HAS_RESIDUAL=residual is not None,
        QUADS=tiles.block_n // 4, GROUPS=tiles.block_k // 8, STAGES=tiles.num_stages,
        PRELOAD=min(512 // len(x), 1 << (depth // 8).bit_length() - 1) if preload else 0,
        num_warps=tiles.num_warps, **early_start(x.device),
    )  # fmt: skip
    return out


def _tiles(rows: int, columns: int, depth: int, gated: bool, preload: bool) -> MatmulTiles:
    """The fastest tiles measured on an H200 for one row and for two."""
    if preload:
        return MatmulTiles(4, 1024, 4, 1) if rows == 1 else MatmulTiles(4, 512, 2, 3)
    if gated:
        return MatmulTiles(4, 256, 1, 6) if rows == 1 else MatmulTiles(4, 256, 1, 5)
    if columns > depth:
        return MatmulTiles(4, 256, 1, 4) if rows == 1 else MatmulTiles(8, 256, 2, 4)
    return MatmulTiles(4, 512, 2, 4)
