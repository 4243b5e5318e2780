"""Split-K semaphores: counters by which programs that share a result determine which of them finishes last.

As in CUDA's sample threadFenceReduction, with a semaphore for each tile of the result as CUTLASS's split-K GEMM has:
each program stores its partial sums and then adds one to the semaphore; the one that completes the count reads
all partial sums, always in the same order, and computes the result.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor


@functools.cache
def semaphores(device: torch.device, kernel: str) -> Tensor:
    """Zeros (65536,) int32 for this kernel alone; the program that finishes last resets its semaphore to zero.

    Kernels of one stream take turns, even those that start early: they wait before they count.
    """
    return torch.zeros(65536, dtype=torch.int32, device=device)
