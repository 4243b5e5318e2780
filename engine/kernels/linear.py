"""Matrix products of a frame, bound by reading the weights: few rows on the CUDA cores, more on the tensor cores.

Measured on an H200 (2026-11-21, TB/s of weights read in a chain of like products, cuBLAS in brackets), S2 Pro's shapes:
one row: qkv 3.4 (2.7), output 2.4 (2.0), gate and up 3.9 (3.4), down 3.4 (2.9), head 3.1 (1.7);
32 rows: 2.7 (2.8), 2.0 (1.9), 3.4 (3.3), 2.7 (2.8), 2.0 (0.6). A plain read of memory moves 4.4. Few rows' kernels are
made for a frame, where each stands beside others: there the output's takes 5 µs, two fifths of what it takes here.

Each output is summed over depth in an order that depends on its shape alone, so the kernel for several rows gives a
row the same result in any company; the kernel for few rows sums in another order.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.gemv import FEW, Tiles, leave, through_few
from engine.kernels.launch import launch
from engine.kernels.packed12 import Twelve, through_twelve
from engine.kernels.pdl import early, let_the_next_one_start, overlaps, wait_for_the_one_before
from engine.kernels.split_k import arrivals

MANY, MANY_RESIDUAL = 64, 32
"""Above so many rows cuBLAS is faster than the kernel; with few columns, as before a residual, sooner."""


@triton.jit(do_not_specialize=["rows"])
def _many(
    x, weight, scales, residual, out, partial, arrived, rows, columns, depth, share,
    SCALED: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    # Columns of the result go down the tensor cores' tile, which has at least 64 of them, and rows across it.
    block, split = tl.program_id(0), tl.program_id(1)
    column = block * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
    place = arrived + tl.program_id(2) * tl.num_programs(0) + block
    k = tl.arange(0, BLOCK_K)
    up = columns.to(tl.int64) * depth
    begin = split * share
    end = tl.minimum(depth, begin + share)
    if OVERLAP:
        wait_for_the_one_before()
        let_the_next_one_start()
    total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    total_up = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    x_at = x + tl.minimum(row, rows - 1)[:, None] * depth + k[None, :]
    w_at = weight + tl.minimum(column, columns - 1).to(tl.int64)[:, None] * depth + k[None, :]
    for start in range(begin, end, BLOCK_K):
        inside = (k < end - start)[None, :]
        xs = tl.load(x_at + start, mask=inside, other=0.0)
        ws = tl.load(w_at + start, mask=inside, other=0.0)
        if SCALED and xs.dtype == tl.bfloat16:  # float8 becomes float16 in one step, bfloat16 in three
            xs = tl.clamp(xs.to(tl.float32), -65504.0, 65504.0).to(tl.float16)
        total = tl.dot(ws.to(xs.dtype), tl.trans(xs), total, input_precision="ieee")
        if GATED:
            ups = tl.load(w_at + up + start, mask=inside, other=0.0)
            total_up = tl.dot(ups.to(xs.dtype), tl.trans(xs), total_up, input_precision="ieee")
    mask = (column < columns)[:, None] & (row < rows)[None, :]
    cell = row[None, :] * columns + column[:, None]
    last = block >= 0
    if SPLITS > 1:  # whoever comes last adds the parts up, in their order, so that the sum is always the same
        size = rows * columns
        tl.store(partial + split * size + cell, total, mask=mask)
        tl.debug_barrier()
        last = tl.atomic_add(place, 1, sem="acq_rel") == SPLITS - 1
        if last:
            total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
            for part in range(SPLITS):
                total += tl.load(partial + part * size + cell, mask=mask, other=0.0, cache_modifier=".cg")
            tl.store(place, 0)
    if last:
        if SCALED:
            total *= tl.load(scales + column, mask=column < columns, other=0.0)[:, None]
            if GATED:
                total_up *= tl.load(scales + columns + column, mask=column < columns, other=0.0)[:, None]
        leave(total, total_up, residual, out, cell, mask, GATED, HAS_RESIDUAL)


@triton.jit
def _norm(x, gains, out, depth, eps, BLOCK: tl.constexpr, OVERLAP: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    weight = tl.load(gains + k, mask=k < depth, other=0.0)
    if OVERLAP:
        wait_for_the_one_before()
        let_the_next_one_start()
    xs = tl.load(x + row * depth + k, mask=k < depth, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(xs * xs, 0) / depth + eps)
    tl.store(out + row * depth + k, ((xs * scale).to(weight.dtype) * weight).to(out.dtype.element_ty), mask=k < depth)


def linear(
    x: Tensor,
    weight: Tensor,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
    scales: Tensor | None = None,
    twelve: Twelve | None = None,
    alike: bool = False,
    idle: bool = False,
    ahead: Tensor | None = None,
) -> Tensor:
    """x (rows, depth) times weight (columns, depth) transposed → (rows, columns).

    norm (depth,): x is RMS-normalised with these gains and eps first. gated: weight holds gate rows over up rows
    (2 · columns, depth), and the result is silu(gate) · up. residual (rows, columns) is added last, and may be
    overwritten by the result. scales (rows of weight,) float32: weight is float8 (`quantised`), times these.
    twelve: the same weights in twelve bits, which few rows read instead.
    alike: a row's result shall not depend on how many rows there are, at the price of speed for few rows and for many.
    idle: the kernel before leaves memory idle: with few rows, half of the weights or all are read before it has ended.
    ahead: what the next product reads: few rows with float8 weights call the beginning of it into the L2 cache.
    """
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    if weight.shape[1] != depth or (norm is not None and norm.shape != (depth,)):
        raise ValueError(f"x {tuple(x.shape)} does not fit weight {tuple(weight.shape)}")
    if residual is not None and residual.shape != (rows, columns):
        raise ValueError(f"residual {tuple(residual.shape)} is not {(rows, columns)}")
    if not (x.is_contiguous() and weight.is_contiguous()):
        raise ValueError("x and weight must be contiguous")
    if idle and (norm is not None or gated):
        raise ValueError("weights of a product with a norm or gates are not read early")
    if (scales is None) != (weight.dtype == x.dtype) or (scales is not None and scales.shape != weight.shape[:1]):
        raise ValueError(f"weight {weight.dtype} for x {x.dtype} needs {'a scale a row' if scales is None else 'none'}")
    if twelve is not None and twelve.shape != weight.shape:
        raise ValueError(f"weights in twelve bits {twelve.shape} are not those of weight {tuple(weight.shape)}")
    if twelve is not None and gated and columns % 4:
        raise ValueError(f"gates in twelve bits come by fours, not {columns}")
    if rows <= FEW and not alike:
        if twelve is not None:
            return through_twelve(x, twelve, norm, eps, gated, residual, idle)
        return through_few(x, weight, scales, norm, eps, gated, residual, idle, ahead if scales is not None else None)
    if norm is not None:
        x = rms_norm(x, norm, eps)
    if rows > (MANY if residual is None else MANY_RESIDUAL) and not alike and scales is None:
        return _through_cublas(x, weight, gated, residual)
    return _through_many(x, weight, scales, gated, residual)


def rms_norm(x: Tensor, gains: Tensor, eps: float) -> Tensor:
    """x (rows, depth), contiguous, RMS-normalised with gains (depth,)."""
    out = torch.empty_like(x)
    launch(
        _norm, (x.shape[0],), x, gains, out, x.shape[1], eps,
        BLOCK=triton.next_power_of_2(x.shape[1]), OVERLAP=overlaps(x.device), num_warps=4, **early(x.device),
    )  # fmt: skip
    return out


def _through_many(
    x: Tensor,
    weight: Tensor,
    scales: Tensor | None,
    gated: bool,
    residual: Tensor | None,
) -> Tensor:
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    tiles = _tiles(columns, depth, gated, weight.element_size())
    out = torch.empty(rows, columns, device=x.device, dtype=x.dtype)
    partial = torch.empty(tiles.splits, rows, columns, device=x.device) if tiles.splits > 1 else out
    share = triton.cdiv(triton.cdiv(depth, tiles.splits), tiles.block_k) * tiles.block_k
    block_m = min(64, max(16, triton.next_power_of_2(rows)))
    launch(
        _many, (triton.cdiv(columns, tiles.block_n), tiles.splits, triton.cdiv(rows, block_m)),
        x, weight, x if scales is None else scales, x if residual is None else residual,
        out, partial, arrivals(x.device, "linear"), rows, columns, depth, share,
        SCALED=scales is not None, GATED=gated, HAS_RESIDUAL=residual is not None, SPLITS=tiles.splits,
        BLOCK_M=block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k,
        OVERLAP=overlaps(x.device), num_warps=tiles.num_warps, num_stages=tiles.num_stages, **early(x.device),
    )  # fmt: skip
    return out


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight (rows, depth) as float8 (e4m3) and a float32 scale for each row, so that the largest entry is kept."""
    largest = torch.finfo(torch.float8_e4m3fn).max
    scales = weight.float().abs().amax(1).clamp(min=1e-12) / largest
    return (weight.float() / scales[:, None]).to(torch.float8_e4m3fn), scales


def _through_cublas(x: Tensor, weight: Tensor, gated: bool, residual: Tensor | None) -> Tensor:
    if residual is not None:
        return residual.addmm_(x, weight.t())
    y = F.linear(x, weight)
    return F.silu(y[:, : y.shape[1] // 2]) * y[:, y.shape[1] // 2 :] if gated else y


def _tiles(columns: int, depth: int, gated: bool, item: int) -> Tiles:
    """The best measured on an H200, by shape alone so that a row's sums do not depend on how many rows there are."""
    if item > 2:  # float32 takes twice the shared memory
        return Tiles(64, 32, 4, 3, 1 if gated or columns > depth else 4)
    if gated:
        return Tiles(128, 64, 4, 4) if item > 1 else Tiles(128, 128, 8, 3)
    if columns > depth:
        return Tiles(64, 128, 4, 4)
    return Tiles(64, 64, 4, 5, splits=4) if item > 1 else Tiles(64, 128, 4, 4, splits=4)


def linear_twin(
    x: Tensor,
    weight: Tensor,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
    scales: Tensor | None = None,
    twelve: Twelve | None = None,
    alike: bool = False,
    idle: bool = False,
    ahead: Tensor | None = None,
) -> Tensor:
    """The same in plain torch, rounding where the plain model rounds."""
    if norm is not None:
        x = F.rms_norm(x.float(), x.shape[-1:], None, eps).to(x.dtype) * norm
    y = F.linear(x, weight if scales is None else (weight.float() * scales[:, None]).to(x.dtype))
    if gated:
        gates, ups = y.chunk(2, -1)
        y = F.silu(gates) * ups
    return y if residual is None else residual + y
