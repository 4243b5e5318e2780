"""SwiGLU (Shazeer 2020) after a cuBLAS product; `gemv` and `gemm` have it in their epilogue.

out[m, n] = silu(y[m, n]) · y[m, columns + n], y (rows, 2 · columns) with gates before ups; both factors are rounded
before they are multiplied, as in the plain model. A program handles BLOCK columns of a row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import launch
from engine.kernels.pdl import grid_wait, launch_dependents, pdl_launch, supports_pdl

BLOCK = 1024


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
        BLOCK=BLOCK, PDL=supports_pdl(y.device), num_warps=4, **pdl_launch(y.device),
    )  # fmt: skip
    return out
