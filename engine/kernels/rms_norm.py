"""RMSNorm (Zhang & Sennrich 2019) of a frame's rows as a kernel of its own, as before a GEMM; `gemv` has it built in.

out[m, k] = x[m, k] · (Σⱼ x[m, j]² / depth + eps)^-½ · gains[k], x (rows, depth); a program has a whole row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import launch
from engine.kernels.pdl import grid_wait, launch_dependents, pdl_launch, supports_pdl


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
    scale = tl.rsqrt(tl.sum(xs * xs, 0) / depth + eps)
    tl.store(out + row * depth + k, ((xs * scale).to(weight.dtype) * weight).to(out.dtype.element_ty), mask=k < depth)


def rms_norm(x: Tensor, gains: Tensor, eps: float, out: Tensor | None = None) -> Tensor:
    """x (rows, depth), contiguous, RMS-normalised with gains (depth,), into ``out`` where that is given."""
    out = torch.empty_like(x) if out is None else out
    if out.shape != x.shape or not (x.is_contiguous() and out.is_contiguous()):
        raise ValueError(f"x {tuple(x.shape)} and out {tuple(out.shape)} are not contiguous and of one shape")
    launch(
        _rms_norm, (x.shape[0],), x, gains, out, x.shape[1], eps,
        BLOCK=triton.next_power_of_2(x.shape[1]), PDL=supports_pdl(x.device), num_warps=4, **pdl_launch(x.device),
    )  # fmt: skip
    return out
