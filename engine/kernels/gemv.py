"""GEMV: matrix-vector products for one row or two, on the CUDA cores, limited by reading the weights.

out[m, n] = epilogue(Σₖ x[m, k] · W[n, k]) with x (1 or 2, depth), W (columns, depth) and sums in float32. A program
handles BLOCK_N columns over the whole depth, BLOCK_K at a time, so that nothing is reduced between programs. With
RMSNorm it is Σₖ x[k] · g[k] · W[n, k] · (Σₖ x[k]² / depth + eps)^-½: the factor is applied to the sums, and x is read
once. The usual GEMV of decoding; the preloads and prefetches around the grid wait are our own.

The kernel's weight is (columns, depth), or where GATED (2 · columns, depth); where SIX words of six bits and scales a
group as `StoredWeight` has them, where PAIRED words of two weights and scales (lines of weight,); norm (depth,),
residual and out (ROWS, columns). PRELOAD weights per column are read before the grid wait, which the launcher allows
only without norm and gates; PREFETCH bytes of `prefetch` go to the L2 cache at the end.

Made for use inside a frame: it is set up before the previous kernel has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents, prefetch_l2
from engine.kernels.quantised import GROUP, PAIR, converts_by_ptx, pair_as_float32, six_bits
from engine.model.stored_weight import StoredWeight

GEMV_ROWS = 2
"""Up to this many rows GEMV is faster than a GEMM on the tensor cores: 4.9 ms for a frame of two rows, against 5.6."""
PRELOAD = 2048
"""Weights per column read into registers before the grid wait, where the previous kernel leaves memory idle."""
PREFETCH = 8192
"""Bytes of the next product's weights that a program prefetches into L2 as it ends, if weights are quantised."""
PART = 16
"""Bytes of weights that a thread holds side by side and sums at once if it has too few registers for separate sums:
with quantised weights, and with two rows."""


@dataclass(frozen=True, slots=True)
class MatmulTiles:
    """Tiling of a product: columns and depth that a program handles at a time, warps, stages, splits of the depth."""

    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    splits: int = 1


@triton.jit
def load_inputs(x, norm, start, depth, BLOCK_K: tl.constexpr, HAS_NORM: tl.constexpr):
    """BLOCK_K inputs from `start` on as float32, with the norm's gains, and their squares."""
    return _inputs_at(x, norm, start + tl.arange(0, BLOCK_K), depth, HAS_NORM)


@triton.jit
def _inputs_at(x, norm, k, depth, HAS_NORM: tl.constexpr):
    """The inputs at k, as `load_inputs`."""
    xs = tl.load(x + k, mask=k < depth, other=0.0)
    wide = xs.to(tl.float32)
    squares = wide * wide
    if HAS_NORM:
        wide = (wide * tl.load(norm + k, mask=k < depth, other=0.0).to(tl.float32)).to(xs.dtype).to(tl.float32)
    return wide, squares


@triton.jit
def store(y, u, residual, out, cell, mask, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr):
    """The end of every epilogue: out[cell] = residual[cell] + silu(y) · u, rounded before the residual is added."""
    if GATED:
        y = y * tl.sigmoid(y) * u
    if HAS_RESIDUAL:
        y = y.to(out.dtype.element_ty).to(tl.float32)
        y += tl.load(residual + cell, mask=mask, other=0.0).to(tl.float32)
    if out.dtype.element_ty == tl.float16:
        y = tl.clamp(y, -65504.0, 65504.0)
    tl.store(out + cell, y.to(out.dtype.element_ty), mask=mask)


@triton.jit
def epilogue(
    y, u, squares, scales, residual, out, column, columns, depth, eps,
    SCALED: tl.constexpr, HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
):  # fmt: skip
    """Converts a row's sums y and, where GATED, u (BLOCK_N,) to outputs: a row's scales, RMSNorm's factor, `store`."""
    inside = column < columns
    if SCALED:
        y *= tl.load(scales + column, mask=inside, other=0.0)
        if GATED:
            u *= tl.load(scales + columns + column, mask=inside, other=0.0)
    if HAS_NORM:
        scale = tl.rsqrt(tl.sum(squares, 0) / depth + eps)
        y *= scale
        u *= scale
    store(y, u, residual, out, column, inside, GATED, HAS_RESIDUAL)


@triton.jit
def _inputs(x, norm, start, depth, BLOCK_K: tl.constexpr, HAS_NORM: tl.constexpr, PAIRED: tl.constexpr):
    """`load_inputs` as `_sums` takes them: where PAIRED those of the words' first weights and of their second."""
    if PAIRED:
        word = tl.arange(0, BLOCK_K // 2)
        k = start + word // PAIR * (2 * PAIR) + word % PAIR
        first, squares = _inputs_at(x, norm, k, depth, HAS_NORM)
        second, more = _inputs_at(x, norm, k + PAIR, depth, HAS_NORM)
        squares += more
    else:
        first, squares = load_inputs(x, norm, start, depth, BLOCK_K, HAS_NORM)
        second = first
    return first, second, squares


@triton.jit
def _loaded(lines, start, depth, BLOCK_K: tl.constexpr, SIX: tl.constexpr, PAIRED: tl.constexpr, PTX: tl.constexpr):
    """BLOCK_K weights of each line from `start` on, before their scales; where PAIRED as words."""
    if SIX:
        words = tl.multiple_of(depth // 16, 4)
        word = tl.multiple_of(start // 16, 4) + tl.arange(0, BLOCK_K // 16)[None, :]
        ws = six_bits((lines + word).to(tl.pointer_type(tl.uint32)), word < words, words, PTX)
    elif PAIRED:
        at = start // 2 + tl.arange(0, BLOCK_K // 2)[None, :]
        ws = tl.load(lines + at, mask=at < depth // 2, other=0)
    else:
        k = start + tl.arange(0, BLOCK_K)[None, :]
        ws = tl.load(lines + k, mask=k < depth, other=0.0)
    return ws


@triton.jit
def _sums(
    ws, xs, xs_second, LINES: tl.constexpr, SPAN: tl.constexpr, PART: tl.constexpr, SIX: tl.constexpr,
    PAIRED: tl.constexpr, PTX: tl.constexpr,
):  # fmt: skip
    """Weights (lines, SPAN) times inputs (SPAN,), where PAIRED both of each word times theirs: (lines, SPAN / PART).

    Each thread sums PART products that it holds side by side, so that it keeps one sum of them.
    """
    if PAIRED:
        first, second = pair_as_float32(ws, PTX)
        sums = tl.sum(tl.reshape(first * xs[None, :], (LINES, SPAN // PART, PART)), 2)
        sums += tl.sum(tl.reshape(second * xs_second[None, :], (LINES, SPAN // PART, PART)), 2)
    else:
        sums = tl.sum(tl.reshape(ws.to(tl.float32) * xs[None, :], (LINES, SPAN // PART, PART)), 2)
    if SIX:
        inputs = tl.sum(tl.reshape(xs, (SPAN // PART, PART)), 1)
        sums = 64.0 * sums - 96.0 * inputs[None, :]
    return sums


@triton.jit
def _group_scales(scales, line, start, depth, BLOCK_K: tl.constexpr, SIX: tl.constexpr):
    """Scales of each line's groups from `start` on; 1 without scales."""
    if SIX:
        group = start // GROUP + tl.arange(0, BLOCK_K // GROUP)[None, :]
        pointers = scales + line * (depth // GROUP) + group
        group_scales = tl.load(pointers, mask=group < depth // GROUP, other=0.0).to(tl.float32)
    else:
        group_scales = 1.0
    return group_scales


@triton.jit
def _gemv(
    x, weight, scales, norm, residual, prefetch, out, columns, depth, eps, prefetch_bytes, ROWS: tl.constexpr,
    SIX: tl.constexpr, PAIRED: tl.constexpr, HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr, PRELOAD: tl.constexpr,
    PART: tl.constexpr, PREFETCH: tl.constexpr, PTX: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (columns / BLOCK_N,); shapes and constants in the module's docstring."""
    PER: tl.constexpr = 2 if PAIRED else 1
    SPAN: tl.constexpr = BLOCK_K // PER
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    size = 3 * tl.multiple_of(depth // 16, 4) if SIX else depth // PER  # per line, in words or weights
    own_line = tl.minimum(column, columns - 1).to(tl.int64)[:, None]
    line, up = own_line * size, columns.to(tl.int64) * size
    if PDL and HAS_RESIDUAL:
        launch_dependents()
    if PRELOAD > 0:
        preloaded = tl.load(weight + line + tl.arange(0, PRELOAD // PER)[None, :], eviction_policy="evict_first")
    if PDL:
        grid_wait()
    if PRELOAD > 0:
        early, early_second, _ = _inputs(x, norm, 0, depth, PRELOAD, HAS_NORM, PAIRED)
    if PRELOAD > 0 and ROWS == 2:
        early_2, early_2_second, _ = _inputs(x + depth, norm, 0, depth, PRELOAD, HAS_NORM, PAIRED)
    if PDL and not HAS_RESIDUAL and not GATED:
        launch_dependents()
    y_1, squares_1 = tl.zeros((BLOCK_N, SPAN // PART), tl.float32), tl.zeros((SPAN,), tl.float32)
    u_1, y_2, u_2, squares_2 = y_1, y_1, y_1, squares_1
    for start in tl.range(PRELOAD, depth, BLOCK_K, num_stages=STAGES):
        ws = _loaded(weight + line, start, depth, BLOCK_K, SIX, PAIRED, PTX)
        w_scales = _group_scales(scales, own_line, start, depth, BLOCK_K, SIX)
        if GATED:
            ups = _loaded(weight + up + line, start, depth, BLOCK_K, SIX, PAIRED, PTX)
            up_scales = _group_scales(scales, columns + own_line, start, depth, BLOCK_K, SIX)
        xs, xs_second, more = _inputs(x, norm, start, depth, BLOCK_K, HAS_NORM, PAIRED)
        squares_1 += more
        y_1 += _sums(ws, xs, xs_second, BLOCK_N, SPAN, PART, SIX, PAIRED, PTX) * w_scales
        if GATED:
            u_1 += _sums(ups, xs, xs_second, BLOCK_N, SPAN, PART, SIX, PAIRED, PTX) * up_scales
        if ROWS == 2:
            xs, xs_second, more = _inputs(x + depth, norm, start, depth, BLOCK_K, HAS_NORM, PAIRED)
            squares_2 += more
            y_2 += _sums(ws, xs, xs_second, BLOCK_N, SPAN, PART, SIX, PAIRED, PTX) * w_scales
            if GATED:
                u_2 += _sums(ups, xs, xs_second, BLOCK_N, SPAN, PART, SIX, PAIRED, PTX) * up_scales
    if PDL and PREFETCH > 0:
        line = tl.program_id(0).to(tl.int64) * PREFETCH + tl.arange(0, PREFETCH // 128) * 128
        prefetch_l2(prefetch.to(tl.pointer_type(tl.uint8)) + tl.minimum(line, prefetch_bytes - 128))
    if PDL and GATED:  # keeps every multiprocessor busy to its end: a kernel that starts earlier would slow it down
        launch_dependents()
    y, u = tl.sum(y_1, 1), tl.sum(u_1, 1)
    if PRELOAD > 0:
        y += tl.sum(_sums(preloaded, early, early_second, BLOCK_N, PRELOAD // PER, PART, SIX, PAIRED, PTX), 1)
    epilogue(y, u, squares_1, scales, residual, out, column, columns, depth, eps, PAIRED, HAS_NORM, GATED, HAS_RESIDUAL)
    if ROWS == 2:
        y, u = tl.sum(y_2, 1), tl.sum(u_2, 1)
        if PRELOAD > 0:
            y += tl.sum(_sums(preloaded, early_2, early_2_second, BLOCK_N, PRELOAD // PER, PART, SIX, PAIRED, PTX), 1)
        epilogue(
            y, u, squares_2, scales, residual + columns, out + columns, column, columns, depth, eps,
            PAIRED, HAS_NORM, GATED, HAS_RESIDUAL,
        )  # fmt: skip


def gemv(
    x: Tensor,
    weight: StoredWeight,
    norm: Tensor | None,
    eps: float,
    gated: bool,
    residual: Tensor | None,
    preload: bool,
    prefetch: Tensor | None,
) -> Tensor:
    """`linear` for x (at most GEMV_ROWS, depth); same parameters and result."""
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    out = torch.empty(rows, columns, device=x.device, dtype=x.dtype)
    values, six = weight.values, weight.has_six_bits
    preload = preload and not six
    tiles = _tiles(rows, columns, depth, gated, weight, preload)
    part = GROUP.value if six else PART // values.element_size()  # of pairs a word is one product
    launch(
        _gemv, (triton.cdiv(columns, tiles.block_n),),
        x, values, x if weight.scales is None else weight.scales, x if norm is None else norm,
        x if residual is None else residual, x if prefetch is None else prefetch, out, columns, depth, eps,
        0 if prefetch is None else prefetch.nbytes,
        ROWS=rows, SIX=six, PAIRED=weight.is_paired, HAS_NORM=norm is not None, GATED=gated,
        HAS_RESIDUAL=residual is not None, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, STAGES=tiles.num_stages,
        PRELOAD=min(PRELOAD, triton.next_power_of_2(depth) // 2) if preload else 0,
        PART=1 if weight.scales is None and rows == 1 else part,
        PREFETCH=0 if prefetch is None else PREFETCH, PTX=converts_by_ptx(x.device),
        num_warps=tiles.num_warps, **early_start(x.device),
    )  # fmt: skip
    return out


def _tiles(rows: int, columns: int, depth: int, gated: bool, weight: StoredWeight, preload: bool) -> MatmulTiles:
    """The fastest tiles measured in a frame for one row and two, on an H200, for eight and six bits on an H100.

    Six bits are converted by so many instructions that loads ahead of them, which cost registers, gain nothing.
    """
    if weight.has_six_bits:
        if gated:
            return MatmulTiles(16, 512, 4, 1)
        if columns <= depth:
            return MatmulTiles(4, 1024, 2, 1)
        return MatmulTiles(16, 512, 2, 1) if rows == 1 else MatmulTiles(8, 512, 1, 1)
    if not weight.is_paired:
        if preload:
            return MatmulTiles(2, 512, 2, 4)
        if gated:
            return MatmulTiles(4, 256, 2, 3) if rows == 1 else MatmulTiles(4, 256, 2, 6)
        return MatmulTiles(8, 256, 2, 4) if columns > depth else MatmulTiles(4, 512, 2, 4)
    if preload:
        return MatmulTiles(4, 512, 4, 4)
    if gated:
        return MatmulTiles(8, 512, 2, 2) if rows == 1 else MatmulTiles(8, 256, 2, 3)
    return MatmulTiles(8, 512, 2, 3) if columns > depth else MatmulTiles(4, 512, 2, 5)
