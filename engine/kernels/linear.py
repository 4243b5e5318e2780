"""Matrix products of a frame: one row by a kernel at memory speed, more through cuBLAS; norm, gate, residual fused in.

One row's product is bound by reading the weights. Measured on an H200 (2026-11-21, TB/s read, cuBLAS in brackets):
qkv 3.0 (2.9), output 2.7 (2.0), gate and up 3.9 (3.3), down 3.3 (2.8), head 2.4 (1.7). For several rows a
tensor-core tile of the kernel's own stayed near 2 TB/s at best where cuBLAS reads 2.9, so those are left to cuBLAS.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a product is cut up: columns and depth a program takes at a time, and its warps."""

    block_n: int
    block_k: int
    num_warps: int


WIDE = Tiles(block_n=8, block_k=512, num_warps=4)
"""Best on an H200 where there are more columns than depth, 2026-11-21."""
DEEP = Tiles(block_n=2, block_k=2048, num_warps=4)
"""Best where the depth is larger."""


@triton.jit
def _row(
    x, weight, norm, residual, out, columns, depth, eps,
    HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    column_mask = column < columns
    base = column[:, None].to(tl.int64) * depth + k[None, :]
    up = columns.to(tl.int64) * depth
    total = tl.zeros((BLOCK_N,), tl.float32)
    total_up = tl.zeros((BLOCK_N,), tl.float32)
    squares = 0.0
    for start in range(0, depth, BLOCK_K):
        k_mask = k < depth - start
        mask = column_mask[:, None] & k_mask[None, :]
        ws = tl.load(weight + base + start, mask=mask, other=0.0, eviction_policy="evict_first")
        xs = tl.load(x + start + k, mask=k_mask, other=0.0)
        wide = xs.to(tl.float32)
        if HAS_NORM:
            squares += tl.sum(wide * wide, 0)
            wide = (wide * tl.load(norm + start + k, mask=k_mask, other=0.0).to(tl.float32)).to(xs.dtype).to(tl.float32)
        total += tl.sum(ws.to(tl.float32) * wide[None, :], 1)
        if GATED:
            ups = tl.load(weight + up + base + start, mask=mask, other=0.0, eviction_policy="evict_first")
            total_up += tl.sum(ups.to(tl.float32) * wide[None, :], 1)
    if HAS_NORM:
        scale = tl.rsqrt(squares / depth + eps)
        total *= scale
        total_up *= scale
    if GATED:
        total = total * tl.sigmoid(total) * total_up
    if HAS_RESIDUAL:
        total = total.to(out.dtype.element_ty).to(tl.float32)
        total += tl.load(residual + column, mask=column_mask, other=0.0).to(tl.float32)
    tl.store(out + column, total.to(out.dtype.element_ty), mask=column_mask)


@triton.jit
def _gate(both, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    a = tl.load(both + row * 2 * columns + column, mask=mask).to(tl.float32)
    b = tl.load(both + row * 2 * columns + columns + column, mask=mask).to(tl.float32)
    tl.store(out + row * columns + column, (a * tl.sigmoid(a) * b).to(out.dtype.element_ty), mask=mask)


def linear(
    x: Tensor,
    weight: Tensor,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
    tiles: Tiles | None = None,
) -> Tensor:
    """x (rows, depth) times weight (columns, depth) transposed → (rows, columns).

    norm (depth,): x is RMS-normalised with these gains and eps first. gated: weight holds gate rows over up rows
    (2 · columns, depth), and the result is silu(gate) · up. residual (rows, columns) is added last.
    """
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    if weight.shape[1] != depth or (norm is not None and norm.shape != (depth,)):
        raise ValueError(f"x {tuple(x.shape)} does not fit weight {tuple(weight.shape)}")
    if residual is not None and residual.shape != (rows, columns):
        raise ValueError(f"residual {tuple(residual.shape)} is not {(rows, columns)}")
    if not (x.is_contiguous() and weight.is_contiguous()):
        raise ValueError("x and weight must be contiguous")
    if rows > 1:
        return _through_cublas(x, weight, norm, eps, gated, residual)
    tiles = tiles or (WIDE if columns >= depth else DEEP)
    out = torch.empty(rows, columns, device=x.device, dtype=x.dtype)
    _row[(triton.cdiv(columns, tiles.block_n),)](
        x, weight, x if norm is None else norm, x if residual is None else residual, out, columns, depth, eps,
        HAS_NORM=norm is not None, GATED=gated, HAS_RESIDUAL=residual is not None,
        BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, num_warps=tiles.num_warps, num_stages=1,
    )  # fmt: skip
    return out


def _through_cublas(
    x: Tensor, weight: Tensor, norm: Tensor | None, eps: float, gated: bool, residual: Tensor | None
) -> Tensor:
    if norm is not None:
        x = F.rms_norm(x, x.shape[-1:], norm, eps)
    if residual is not None:
        return torch.addmm(residual, x, weight.t())
    y = F.linear(x, weight)
    return gate(y) if gated else y


def gate(both: Tensor) -> Tensor:
    """silu(gate) · up of (rows, gate columns then up columns), contiguous → (rows, columns)."""
    rows, columns = both.shape[0], both.shape[1] // 2
    out = torch.empty(rows, columns, device=both.device, dtype=both.dtype)
    _gate[(rows, triton.cdiv(columns, 1024))](both, out, columns, BLOCK=1024, num_warps=4)
    return out


def linear_twin(
    x: Tensor,
    weight: Tensor,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """The same in plain torch, rounding where the plain model rounds."""
    if norm is not None:
        x = F.rms_norm(x.float(), x.shape[-1:], None, eps).to(x.dtype) * norm
    y = F.linear(x, weight)
    if gated:
        gates, ups = y.chunk(2, -1)
        y = F.silu(gates) * ups
    return y if residual is None else residual + y
