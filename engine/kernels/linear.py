"""A frame's matrix products, and the choice of kernel: `gemv` up to two rows, split-K `gemm`, for many cuBLAS.

If weights have a second copy in twelve bits, `gemv` reads that, and so do gates and ups up to eight rows. Quantised
weights (`StoredWeight`) are dequantised in registers, by `gemm` for any number of rows.

out = residual + act(norm(x) · Wᵀ), x (rows, depth), W (columns, depth); act is silu(gate) · up (SwiGLU, Shazeer 2020)
where W holds gates over ups.

Measured on an H200 (2026-11-21, TB/s of weights read in a chain of equal products, cuBLAS in brackets), S2 Pro's
shapes:
one row: qkv 3.4 (2.7), output 2.4 (2.0), gate and up 3.9 (3.4), down 3.4 (2.9), head 3.1 (1.7);
32 rows: 2.7 (2.8), 2.0 (1.9), 3.4 (3.3), 2.7 (2.8), 2.0 (0.6). A plain read of memory moves 4.4. `gemv` is made for
a frame, where each kernel overlaps others: there the output's takes 5 µs, two fifths of what it takes here.

Each output is summed over depth in an order that depends only on its shape, so `gemm` is batch-invariant: it
gives a row the same result in any batch. `gemv` sums in another order.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.gemm import gemm, gemm_parts, is_split
from engine.kernels.gemv import GEMV_ROWS, gemv
from engine.kernels.packed12 import Packed12
from engine.kernels.packed_gemm import PACKED12_ROWS, gated_packed12
from engine.kernels.packed_gemv import gemv_packed12
from engine.kernels.rms_norm import add_rms_norm, rms_norm, swiglu
from engine.model.stored_weight import StoredWeight

CUBLAS_ROWS, CUBLAS_ROWS_RESIDUAL = 64, 32
"""Rows above which cuBLAS is faster than the kernel; with few columns, as before a residual, sooner, unless the next
norm adds the parts up (`linear_norm`)."""


def linear(
    x: Tensor,
    weight: StoredWeight,
    norm: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    residual: Tensor | None = None,
    packed12: Packed12 | None = None,
    batch_invariant: bool = False,
    preload: bool = False,
    prefetch: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """x (rows, depth) times weight (columns, depth) transposed → (rows, columns).

    norm (depth,): x is RMS-normalised with these gains and eps first. gated: weight holds gate rows over up rows
    (2 · columns, depth), and the result is silu(gate) · up. residual (rows, columns) is added last, and may be
    overwritten by the result. packed12: the same weights in twelve bits, which GEMV reads instead; with tiles, gates
    and ups of few rows too.
    batch_invariant: a row's result must not depend on how many rows there are; always `gemm`, which costs speed.
    preload: the previous kernel leaves memory idle: GEMV reads half of its weights or all before that kernel has ended.
    prefetch: the next product's weights: GEMV with quantised weights prefetches their beginning into the L2 cache.
    dtype: of the result, if `gemm` reads quantised weights; None: that of x. Quantised weights become float16 in fewer
    steps than bfloat16, so x should be float16. In eight bits they are pairs (`StoredWeight.paired`).
    """
    rows, depth = x.shape
    columns = weight.shape[0] // 2 if gated else weight.shape[0]
    if weight.shape[1] != depth or (norm is not None and norm.shape != (depth,)):
        raise ValueError(f"x {tuple(x.shape)} does not fit weight {weight.shape}")
    if residual is not None and residual.shape != (rows, columns):
        raise ValueError(f"residual {tuple(residual.shape)} is not {(rows, columns)}")
    if not (x.is_contiguous() and weight.values.is_contiguous()):
        raise ValueError("x and weight must be contiguous")
    if preload and (norm is not None or gated):
        raise ValueError("weights of a product with a norm or gates cannot be preloaded")
    if (weight.scales is None) != (weight.values.dtype == x.dtype):
        raise ValueError(
            f"weight {weight.values.dtype} for x {x.dtype} needs {'scales' if weight.scales is None else 'none'}"
        )
    if weight.values.dtype == torch.int8:
        raise ValueError("kernels read weights in eight bits as pairs")
    if packed12 is not None and packed12.shape != weight.shape:
        raise ValueError(f"weights in twelve bits {packed12.shape} do not match weight {weight.shape}")
    if packed12 is not None and gated and columns % 4:
        raise ValueError(f"gates in twelve bits need a multiple of four columns, not {columns}")
    if rows <= GEMV_ROWS and not batch_invariant:
        if packed12 is not None:
            return gemv_packed12(x, packed12, norm, eps, gated, residual, preload)
        return gemv(x, weight, norm, eps, gated, residual, preload, prefetch if weight.scales is not None else None)
    if norm is not None:
        x = rms_norm(x, norm, eps)
    if gated and rows <= PACKED12_ROWS and packed12 is not None and packed12.tiles is not None and not batch_invariant:
        return gated_packed12(x, packed12)
    is_wide = rows > (CUBLAS_ROWS if residual is None else CUBLAS_ROWS_RESIDUAL)
    if is_wide and not batch_invariant and weight.scales is None:
        return _cublas(x, weight.values, gated, residual)
    return gemm(x, weight, gated, residual, dtype or x.dtype, batch_invariant)


def linear_norm(
    x: Tensor,
    weight: StoredWeight,
    residual: Tensor,
    norm: Tensor,
    eps: float,
    batch_invariant: bool = False,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """`linear` with a residual, and its result RMS-normalised with the gains norm (columns,): both (rows, columns).

    The first has the residual's type, the second ``dtype``; None: the residual's too.

    For more rows than GEMV takes. If many rows are split, the norm adds the parts up: on an H200 a frame of 64 rows
    takes 0.13 ms less than with cuBLAS, but 0.06 more with 32, and 0.18 with 16. The two norms round differently.
    """
    if CUBLAS_ROWS_RESIDUAL < x.shape[0] <= CUBLAS_ROWS and is_split(weight) and not batch_invariant:
        return add_rms_norm(gemm_parts(x, weight), residual, norm, eps, dtype)
    y = linear(x, weight, residual=residual, batch_invariant=batch_invariant, dtype=residual.dtype)
    return y, rms_norm(y, norm, eps, dtype=dtype)


def _cublas(x: Tensor, weight: Tensor, gated: bool, residual: Tensor | None) -> Tensor:
    if residual is not None:
        return residual.addmm_(x, weight.t())
    y = F.linear(x, weight)
    return swiglu(y) if gated else y
