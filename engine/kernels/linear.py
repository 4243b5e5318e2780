"""Matrix products for a few rows: the weights are read once, at memory speed, with norm, gate and residual fused in.

At one row a product of S2 Pro's is bound by reading its weights; cuBLAS reaches two thirds of an H200's bandwidth
there. Each program owns a few output columns and walks the whole input dimension in one fixed order, so a row's
result does not depend on how many other rows there are.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

MAX_ROWS = 16
"""Rows that share one tensor-core tile; beyond it cuBLAS reads the weights as well and computes faster."""


@triton.jit
def _linear(
    x, weight, norm, residual, out, rows, columns, depth, eps,
    HAS_NORM: tl.constexpr, GATED: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.arange(0, ROWS)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    row_mask = row < rows
    column_mask = column < columns
    x_at = x + row[:, None] * depth + k[None, :]
    weight_at = weight + column[:, None].to(tl.int64) * depth + k[None, :]
    total = tl.zeros((ROWS, BLOCK_N), tl.float32)
    total_up = tl.zeros((ROWS, BLOCK_N), tl.float32)
    squares = tl.zeros((ROWS,), tl.float32)
    for start in range(0, depth, BLOCK_K):
        k_mask = k < depth - start
        xs = tl.load(x_at + start, mask=row_mask[:, None] & k_mask[None, :], other=0.0)
        if HAS_NORM:
            wide = xs.to(tl.float32)
            squares += tl.sum(wide * wide, 1)
            gain = tl.load(norm + start + k, mask=k_mask, other=0.0).to(tl.float32)
            xs = (wide * gain[None, :]).to(xs.dtype)
        mask = column_mask[:, None] & k_mask[None, :]
        ws = tl.load(weight_at + start, mask=mask, other=0.0)
        total = tl.dot(xs, tl.trans(ws), total, input_precision="ieee")
        if GATED:
            ups = tl.load(weight_at + columns.to(tl.int64) * depth + start, mask=mask, other=0.0)
            total_up = tl.dot(xs, tl.trans(ups), total_up, input_precision="ieee")
    if HAS_NORM:
        scale = tl.rsqrt(squares / depth + eps)
        total *= scale[:, None]
        total_up *= scale[:, None]
    if GATED:
        total = total * tl.sigmoid(total) * total_up
    at = row[:, None] * columns + column[None, :]
    mask = row_mask[:, None] & column_mask[None, :]
    if HAS_RESIDUAL:
        total = total.to(out.dtype.element_ty).to(tl.float32)
        total += tl.load(residual + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=mask)


def linear(
    x: Tensor,
    weight: Tensor,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
    block_n: int = 16,
    block_k: int = 256,
    num_warps: int = 4,
    num_stages: int = 4,
) -> Tensor:
    """x (rows ≤ MAX_ROWS, depth) times weight (columns, depth) transposed → (rows, columns).

    norm (depth,): x is RMS-normalised with these gains and eps first. gated: weight holds gate rows over up rows
    (2 · columns, depth), and the result is silu(gate) · up. residual (rows, columns) is added last.
    """
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    if not 0 < rows <= MAX_ROWS:
        raise ValueError(f"linear takes 1 to {MAX_ROWS} rows, not {rows}")
    if weight.shape[1] != depth or (norm is not None and norm.shape != (depth,)):
        raise ValueError(f"x {tuple(x.shape)} does not fit weight {tuple(weight.shape)}")
    if residual is not None and residual.shape != (rows, columns):
        raise ValueError(f"residual {tuple(residual.shape)} is not {(rows, columns)}")
    if not (x.is_contiguous() and weight.is_contiguous()):
        raise ValueError("x and weight must be contiguous")
    out = torch.empty(rows, columns, device=x.device, dtype=x.dtype)
    _linear[(triton.cdiv(columns, block_n),)](
        x, weight, x if norm is None else norm, x if residual is None else residual, out, rows, columns, depth, eps,
        HAS_NORM=norm is not None, GATED=gated, HAS_RESIDUAL=residual is not None,
        ROWS=MAX_ROWS, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    return out


def linear_twin(
    x: Tensor,
    weight: Tensor,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
) -> Tensor:
    """The same in plain torch, rounding where the plain model rounds. Takes any number of rows."""
    if norm is not None:
        x = F.rms_norm(x.float(), x.shape[-1:], None, eps).to(x.dtype) * norm
    y = F.linear(x, weight)
    if gated:
        gate, up = y.chunk(2, -1)
        y = F.silu(gate) * up
    return y if residual is None else residual + y
