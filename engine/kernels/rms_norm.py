"""RMSNorm (Zhang & Sennrich 2019) of a frame's rows as a separate kernel, as before a GEMM; `gemv` includes it.

out[m, k] = x[m, k] · (Σⱼ x[m, j]² / depth + eps)^-½ · gains[k], x (rows, depth); a program handles a whole row. If x is
a residual plus the partial sums of a split product (`gemm`), the same kernel adds these up.

SwiGLU (Shazeer 2020) after a cuBLAS product; `gemv` and `gemm` have it in their epilogue.

out[m, n] = silu(y[m, n]) · y[m, columns + n], y (rows, 2 · columns) with gates before ups; both factors are rounded
before they are multiplied, as in the plain model. A program handles BLOCK columns of a row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents

BLOCK = 1024


@triton.jit
def _rms_norm(x, gains, out, depth, eps, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """Grid (rows,): x and out (rows, depth), gains (depth,); BLOCK is the depth as a power of two."""
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    weight = tl.load(gains + k, mask=k < depth, other=0.0)
    if PDL:
        grid_wait()
        launch_dependents()
    xs = tl.load(x + row * depth + k, mask=k < depth, other=0.0).to(tl.float32)
    tl.store(out + row * depth + k, _normed(xs, weight, depth, eps).to(out.dtype.element_ty), mask=k < depth)


@triton.jit(do_not_specialize=["rows"])
def _add_rms_norm(
    parts, residual, gains, total, out, rows, depth, eps, SPLITS: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr
):
    """Grid (rows,): parts (SPLITS, rows, depth) float32, the others as in `_rms_norm`."""
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    inside = k < depth
    cell = row * depth + k
    weight = tl.load(gains + k, mask=inside, other=0.0)
    if PDL:
        grid_wait()
        launch_dependents()
    y = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(SPLITS):  # in a fixed order, so that the sum is always the same
        y += tl.load(parts + part * rows * depth + cell, mask=inside, other=0.0)
    before = tl.load(residual + cell, mask=inside, other=0.0)
    xs = (y.to(before.dtype).to(tl.float32) + before.to(tl.float32)).to(before.dtype)
    tl.store(total + cell, xs, mask=inside)
    tl.store(out + cell, _normed(xs.to(tl.float32), weight, depth, eps).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _normed(xs, weight, depth, eps):
    """xs (BLOCK,) float32, zeros beyond depth, normed and rounded to the gains' type before these are applied."""
    scale = tl.rsqrt(tl.sum(xs * xs, 0) / depth + eps)
    return (xs * scale).to(weight.dtype) * weight


def rms_norm(
    x: Tensor, gains: Tensor, eps: float, out: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """x (rows, depth), contiguous, RMS-normalised with gains (depth,), written to ``out`` if given.

    dtype: of the result; None: that of x.
    """
    out = torch.empty_like(x, dtype=dtype) if out is None else out
    if out.shape != x.shape or not (x.is_contiguous() and out.is_contiguous()):
        raise ValueError(f"x {tuple(x.shape)} and out {tuple(out.shape)} must be contiguous and of one shape")
    launch(
        _rms_norm, (x.shape[0],), x, gains, out, x.shape[1], eps,
        BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=4, **early_start(x.device),
    )  # fmt: skip
    return out


def add_rms_norm(
    parts: Tensor, residual: Tensor, gains: Tensor, eps: float, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """residual (rows, depth) plus the sum of parts (splits, rows, depth) float32, and the same RMS-normalised.

    The sum is rounded to the residual's type before it is added, as `linear` does.
    dtype: of the second result; None: that of the residual.
    """
    total, out = torch.empty_like(residual), torch.empty_like(residual, dtype=dtype)
    rows, depth = residual.shape
    launch(
        _add_rms_norm, (rows,), parts, residual, gains, total, out, rows, depth, eps,
        SPLITS=parts.shape[0], BLOCK=triton.next_power_of_2(depth),
        num_warps=2, **early_start(residual.device),
    )  # fmt: skip
    return total, out


@triton.jit
def _swiglu(y, out, columns, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """Grid (columns / BLOCK, rows)."""
    row = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    if PDL:
        grid_wait()
        launch_dependents()
    gate = tl.load(y + row * 2 * columns + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(y + row * 2 * columns + columns + at, mask=inside, other=0.0)
    silu = (gate * tl.sigmoid(gate)).to(up.dtype)
    tl.store(out + row * columns + at, silu * up, mask=inside)


def swiglu(y: Tensor) -> Tensor:
    """y (rows, 2 · columns), contiguous, gates before ups → (rows, columns)."""
    rows, columns = y.shape[0], y.shape[1] // 2
    out = torch.empty(rows, columns, device=y.device, dtype=y.dtype)
    launch(
        _swiglu, (triton.cdiv(columns, BLOCK), rows), y, out, columns,
        BLOCK=BLOCK, num_warps=4, **early_start(y.device),
    )  # fmt: skip
    return out
