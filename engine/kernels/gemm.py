"""Split-K GEMM on the tensor cores, for three rows and more: limited by reading the weights, like `gemv`.

out[m, n] = epilogue(Σₖ x[m, k] · W[n, k]) with x (rows, depth), W (columns, depth) and sums in float32. A tile is one
of outᵀ = W · xᵀ, because a tensor core's has at least 64 lines on one side and a frame has few rows. If the columns
are too few to keep every multiprocessor busy, the depth is split into SPLITS parts. Their partial sums are added up,
always in the same order, by the program that finishes last (`split_k`), or by the following norm kernel.

Tiles are loaded by Hopper's Tensor Memory Accelerator (TMA; CUDA C++ Programming Guide, "Asynchronous Data Copies using
the Tensor Memory Accelerator"), which needs no registers for addresses, and a multiprocessor runs one program whose
loads fill its shared memory: with several programs, those of the next kernel were distributed unevenly. While the
previous kernel still runs, the first weights are fetched into the L2 cache.

The order of a sum depends only on the shape of W, so a row has the same result, bit by bit, in any batch: batch
invariance, as in "Defeating Nondeterminism in LLM Inference" (He et al., Thinking Machines 2025). For prompts, tiles
that sum in another order are faster, where that is not needed.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from engine.kernels.gemv import MatmulTiles, store
from engine.kernels.launch import (
    SCRATCH,
    early_start,
    grid_wait,
    has_tma,
    launch,
    launch_dependents,
    prefetch_l2,
    semaphores,
    shared_memory,
)
from engine.kernels.quantised import GROUP, converts_by_ptx, paired_weights, six_bits
from engine.model.stored_weight import StoredWeight

EARLY_LINES: tl.constexpr = tl.constexpr(2)
"""Lines of 128 bytes per column fetched into the L2 cache before the grid wait: saves 0.05 ms a frame."""


@triton.jit(do_not_specialize=["rows"])
def _split_k_gemm(
    x, weight, x_tiles, weight_tiles, scales, residual, out, partial, semaphore, rows, columns, depth, share,
    SIX: tl.constexpr, PAIRED: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    SPLITS: tl.constexpr, SUM: tl.constexpr, TMA: tl.constexpr, PTX: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (columns / BLOCK_N, SPLITS, rows / BLOCK_M): a part `share` deep of a tile of x · Wᵀ, then `store`.

    x (rows, depth); weight (columns, depth), or where GATED (2 · columns, depth); x_tiles, weight_tiles: descriptors
    of both, cut into tiles, where TMA; where PAIRED words of two weights and scales (lines of weight,), where SIX words
    of six bits and scales a group as `StoredWeight` has them, and BLOCK_K is a group; residual and out (rows, columns);
    partial (SPLITS, rows, columns) float32, which is the result unless SUM. GATED goes with SPLITS 1.
    """
    PER: tl.constexpr = 2 if PAIRED else 16 if SIX else 1  # weights per step along a line, on average
    block, split = tl.program_id(0), tl.program_id(1)
    column = block * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
    place = semaphore + tl.program_id(2) * tl.num_programs(0) + block
    k = tl.arange(0, BLOCK_K)
    size = 3 * tl.multiple_of(depth // 16, 4) if SIX else depth // PER  # per line, in words or weights
    line, up = tl.minimum(column, columns - 1).to(tl.int64), columns.to(tl.int64) * size
    begin = split * share
    end = tl.minimum(depth, begin + share)
    x_at = x + tl.minimum(row, rows - 1)[:, None] * depth + k[None, :]
    lines = weight + line[:, None] * size
    if PDL:
        line_weights: tl.constexpr = 128 * 8 // weight.dtype.element_ty.primitive_bitwidth
        ahead = lines + begin // PER + tl.arange(0, EARLY_LINES)[None, :] * line_weights
        prefetch_l2(ahead)
        if GATED:
            prefetch_l2(ahead + up)
        grid_wait()
        launch_dependents()
    own, own_up = _row_scales(scales, line, PAIRED), _row_scales(scales, columns + line, PAIRED and GATED)
    total, total_up = tl.zeros((BLOCK_N, BLOCK_M), tl.float32), tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for start in range(begin, end, BLOCK_K):
        inside = (k < end - start)[None, :]
        if TMA:  # values outside the tensors are zero
            xs = x_tiles.load([tl.program_id(2) * BLOCK_M, start])
        else:
            xs = tl.load(x_at + start, mask=inside, other=0.0)
        total = _added(
            total, lines, weight_tiles, block * BLOCK_N, scales, line, own, start, depth, xs, SIX, PAIRED, TMA, PTX
        )
        if GATED:
            total_up = _added(
                total_up, lines + up, weight_tiles, columns + block * BLOCK_N, scales, columns + line, own_up,
                start, depth, xs, SIX, PAIRED, TMA, PTX,
            )  # fmt: skip
    mask = (column < columns)[:, None] & (row < rows)[None, :]
    cell = row[None, :] * columns + column[:, None]
    if SPLITS > 1:
        tl.store(partial + split * rows * columns + cell, total, mask=mask)
    if SUM:
        last = block >= 0
        if SPLITS > 1:  # the last program adds the parts up
            tl.debug_barrier()
            last = tl.atomic_add(place, 1, sem="acq_rel") == SPLITS - 1
            if last:
                total = _sum_of_parts(partial + cell, mask, rows * columns, SPLITS)
                tl.store(place, 0)
        if last:
            store(total, total_up, residual, out, cell, mask, GATED, HAS_RESIDUAL)


@triton.jit
def _row_scales(scales, line, SCALED: tl.constexpr):
    """The scales (lines, 1) of whole lines; 1 unless SCALED."""
    if SCALED:
        own = tl.load(scales + line)[:, None]
    else:
        own = 1.0
    return own


@triton.jit
def _added(
    total, lines, tiles, first, scales, line, own, start, depth, xs,
    SIX: tl.constexpr, PAIRED: tl.constexpr, TMA: tl.constexpr, PTX: tl.constexpr,
):  # fmt: skip
    """total (lines, rows) plus the product of x (rows, BLOCK_K) with the weights from `start` on of these lines.

    `lines` points to their beginnings, `first` is the number of the first; own (lines, 1) are their scales where
    PAIRED, BLOCK_K is a group where SIX. There, each step's sums are scaled and then added, so that its product ends
    within the step: while a product runs, the assembler does not let the registers of another be filled, and would
    insert a wait after every sixteen weights.
    """
    BLOCK_K: tl.constexpr = xs.shape[1]
    if SIX:
        words = tl.multiple_of(depth // 16, 4)
        word = tl.multiple_of(start // 16, 4) + tl.arange(0, GROUP // 16)[None, :]
        ws = six_bits((lines + word).to(tl.pointer_type(tl.uint32)), word < words, words, PTX)
        ws = (ws * 64.0 - 96.0).to(xs.dtype)
        own = tl.load(scales + line * (depth // GROUP) + start // GROUP).to(tl.float32)[:, None]
    else:
        PER: tl.constexpr = 2 if PAIRED else 1
        if TMA:
            ws = tiles.load([first, start // PER])
        else:
            at = start // PER + tl.arange(0, BLOCK_K // PER)[None, :]
            ws = tl.load(lines + at, mask=at < depth // PER, other=0)
        if PAIRED:
            ws = paired_weights(ws, xs.dtype, PTX)
    if SIX or PAIRED:
        total += tl.dot(ws, tl.trans(xs), input_precision="ieee") * own
    else:
        total = tl.dot(ws, tl.trans(xs), total, input_precision="ieee")
    return total


@triton.jit
def _sum_of_parts(at, mask, stride, SPLITS: tl.constexpr):
    """The sum of SPLITS parts, `stride` from each other, in a fixed order, so that the result is always the same."""
    total = tl.zeros(mask.shape, tl.float32)
    for part in range(SPLITS):
        total += tl.load(at + part * stride, mask=mask, other=0.0, cache_modifier=".cg")
    return total


def gemm(
    x: Tensor, weight: StoredWeight, gated: bool, residual: Tensor | None, dtype: torch.dtype, batch_invariant: bool
) -> Tensor:
    """`linear` for x (rows, depth) that is normed already; same parameters and result."""
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    out = torch.empty(len(x), columns, device=x.device, dtype=dtype)
    _run(x, weight, gated, residual, out, batch_invariant)
    return out


def is_split(weight: StoredWeight) -> bool:
    """Whether `gemm` splits the depth of a product with weight (columns, depth) without gates."""
    columns, depth = weight.shape
    return _tiles(columns, depth, False, weight).splits > 1


def gemm_parts(x: Tensor, weight: StoredWeight) -> Tensor:
    """The partial sums (splits, rows, columns) float32 of a split product."""
    return _run(x, weight, False, None, None, True)


def _run(
    x: Tensor, weight: StoredWeight, gated: bool, residual: Tensor | None, out: Tensor | None, batch_invariant: bool
) -> Tensor:
    """The partial sums; the result if ``out`` is given is written there."""
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    block_m = 128 if 0 <= -rows % 128 < 64 and rows > 64 else min(64, max(16, triton.next_power_of_2(rows)))
    values, paired = weight.values, weight.is_paired
    tiles = _tiles(columns, depth, gated, weight)
    if weight.is_paired and block_m > 64 and not gated and not batch_invariant:  # 1,024 rows: 21.5 ms, not 26.7
        tiles = replace(tiles, block_n=128, block_k=128, num_warps=8, num_stages=3)
    tiles = _fitted(tiles, block_m, x, weight, gated)
    partial = x if tiles.splits == 1 else torch.empty(tiles.splits, rows, columns, device=x.device)
    share = triton.cdiv(triton.cdiv(depth, tiles.splits), tiles.block_k) * tiles.block_k
    tma = (
        not weight.has_six_bits
        and has_tma(x.device)
        and all(t.stride(0) * t.element_size() % 16 == 0 for t in (x, values))
    )
    launch(
        _split_k_gemm, (triton.cdiv(columns, tiles.block_n), tiles.splits, triton.cdiv(rows, block_m)),
        x, values,
        TensorDescriptor.from_tensor(x, [block_m, tiles.block_k]) if tma else None,
        TensorDescriptor.from_tensor(values, [tiles.block_n, tiles.block_k // (1 + paired)]) if tma else None,
        x if weight.scales is None else weight.scales, x if residual is None else residual,
        x if out is None else out, partial, semaphores(x.device, "gemm"), rows, columns, depth, share,
        SIX=weight.has_six_bits, PAIRED=paired, GATED=gated, HAS_RESIDUAL=residual is not None,
        SPLITS=tiles.splits, SUM=out is not None, TMA=tma, PTX=converts_by_ptx(x.device),
        BLOCK_M=block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k,
        num_warps=tiles.num_warps, num_stages=tiles.num_stages, **early_start(x.device),
    )  # fmt: skip
    return partial


def _fitted(tiles: MatmulTiles, block_m: int, x: Tensor, weight: StoredWeight, gated: bool) -> MatmulTiles:
    """The tiles with as many stages as fit into the GPU's shared memory, which changes no sum."""
    lines = tiles.block_n * (2 if gated else 1)
    item = 1 if weight.scales is not None else weight.values.element_size()
    stage = tiles.block_k * (lines * item + block_m * x.element_size())
    return replace(tiles, num_stages=max(1, min(tiles.num_stages, (shared_memory(x.device) - SCRATCH) // stage)))


def _tiles(columns: int, depth: int, gated: bool, weight: StoredWeight) -> MatmulTiles:
    """The fastest measured on an H200, for eight bits on an H100; by shape alone, so that a row's sums are too.

    Tiles for six bits were never measured.
    """
    if weight.has_six_bits:
        return MatmulTiles(64, GROUP.value, 4, 3, 1 if gated or columns > depth else 4)
    if weight.values.dtype == torch.float32:  # takes twice the shared memory
        return MatmulTiles(64, 32, 4, 3, 1 if gated or columns > depth else 4)
    if weight.is_paired:
        if gated:
            return MatmulTiles(128, 128, 8, 4)
        return MatmulTiles(64, 256, 4, 4, 1 if columns > depth else 3)
    if gated:
        return MatmulTiles(128, 64, 4, 5)
    return MatmulTiles(64, 128, 4, 6) if columns > depth else MatmulTiles(64, 128, 4, 5, splits=3)
