"""Programmatic dependent launch: a kernel starts, and fetches its weights, while the one before it still runs.

Every kernel of a frame waits for the one before it only before it touches what that one made. Weights never change,
so their first bytes are called into the L2 cache before the wait, and memory is busy across the gap between kernels.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from triton.language.extra import cuda as tl_cuda


@functools.cache
def overlaps(device: torch.device) -> bool:
    """Whether kernels on this device may start early: compute capability 9.0 (Hopper) or later."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def early(device: torch.device) -> dict[str, bool]:
    """What a kernel is launched with so that it may start early."""
    return {"launch_pdl": True} if overlaps(device) else {}


@triton.jit
def wait_for_the_one_before():
    """Wait until the kernel before has ended and its writes are seen, then let the one after this start."""
    tl_cuda.gdc_wait()
    tl_cuda.gdc_launch_dependents()


@triton.jit
def fetch(pointers, nbytes):
    """Call `nbytes` (a multiple of 16) from each of these pointers (aligned to 16) into the L2 cache, without waiting.

    As many pointers as threads: more threads than pointers ask twice.
    """
    tl.inline_asm_elementwise(
        "cp.async.bulk.prefetch.L2.global [$1], $2; mov.u32 $0, 0;",
        "=r,l,r",
        [pointers.to(tl.int64), nbytes],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
