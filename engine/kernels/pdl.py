"""Programmatic dependent launch (PDL) of Hopper: a kernel is set up while the previous one still runs.

CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization": `launch_dependents` is its
cudaTriggerProgrammaticLaunchCompletion (PTX griddepcontrol.launch_dependents), `grid_wait` its
cudaGridDependencySynchronize (griddepcontrol.wait).

A kernel waits for the previous one only before it reads that one's results, so the gaps between the few hundred kernels
of a frame shrink: 6.2 to 5.8 ms for two rows on an H200. With few rows a kernel launches its dependents before its own
wait, so several may be ready: 4.7 to 4.5 ms for one row. (With 32 rows that costs 0.4, so `gemm` waits first.) Values
that a kernel reads before its wait must therefore not be written within the same frame. The one exception is
attention, which reads the cache early: the product before it launches it after its own wait.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import cuda as tl_cuda

from engine.kernels.launch import is_hopper


def supports_pdl(device: torch.device) -> bool:
    """Whether kernels on this device may start early: on Hopper and later."""
    return is_hopper(device)


def pdl_launch(device: torch.device) -> dict[str, bool]:
    """Launch options of a kernel that calls `grid_wait`, so that it may start early where supported."""
    return {"launch_pdl": True} if supports_pdl(device) else {}


@triton.jit
def launch_dependents():
    """Let the next kernel of the stream be set up as soon as all programs of this one have reached this point.

    Called before `grid_wait`, even the previous kernel may still be running then; after it, only this one.
    """
    tl_cuda.gdc_launch_dependents()


@triton.jit
def grid_wait():
    """Wait until the previous kernel has ended and its writes are visible."""
    tl_cuda.gdc_wait()


@triton.jit
def prefetch_l2(at):
    """Prefetch into the L2 cache the lines of 128 bytes at these pointers."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.b32 $0, 0;", "=r,l", [at], dtype=tl.int32, is_pure=False, pack=1
    )
