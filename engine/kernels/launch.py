"""Launches kernels: properties of the GPU that launchers need, early starts, and semaphores for split products.

Programmatic dependent launch (PDL) of Hopper: a kernel is set up while the previous one still runs.

CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization": `launch_dependents` is its
cudaTriggerProgrammaticLaunchCompletion (PTX griddepcontrol.launch_dependents), `grid_wait` its
cudaGridDependencySynchronize (griddepcontrol.wait).

A kernel waits for the previous one only before it reads that one's results, so the gaps between the few hundred kernels
of a frame shrink: 6.2 to 5.8 ms for two rows on an H200. With few rows a kernel launches its dependents before its own
wait, so several may be ready: 4.7 to 4.5 ms for one row. (With 32 rows that costs 0.4, so `gemm` waits first.) Values
that a kernel reads before its wait must therefore not be written within the same frame. The one exception is
attention, which reads the cache early: the product before it launches it after its own wait.

Split-K semaphores: counters by which programs that share a result determine which of them finishes last.

As in CUDA's sample threadFenceReduction, with a semaphore for each tile of the result as CUTLASS's split-K GEMM has:
each program stores its partial sums and then adds one to the semaphore; the one that completes the count reads
all partial sums, always in the same order, and computes the result.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import cuda as tl_cuda

from engine.kernels.compilation import is_compiling

SCRATCH = 4096
"""Bytes of shared memory that the compiler may need beside a kernel's loads."""


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Run a Triton kernel with these arguments; inside `compiling`, only have it compiled."""
    if is_compiling():
        kernel.warmup(*arguments, grid=grid, **options)
    else:
        kernel[grid](*arguments, **options)


@functools.cache
def shared_memory(device: torch.device) -> int:
    """Bytes of shared memory available to a program on this GPU; for a CPU those of the GPU the tiles were tuned
    for."""
    if device.type == "cpu":
        return 227 * 1024
    return int(triton.runtime.driver.active.utils.get_device_properties(device.index)["max_shared_mem"])


@functools.cache
def is_hopper(device: torch.device) -> bool:
    """Whether this is a GPU of compute capability 9.0 (Hopper) or later."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def has_tma(device: torch.device) -> bool:
    """Whether the Tensor Memory Accelerator can load tiles: on Hopper and later, and in Triton's interpreter."""
    return device.type == "cpu" or is_hopper(device)


def early_start(device: torch.device) -> dict[str, bool]:
    """Launch options of a kernel that calls `grid_wait`: it may start early on Hopper and later."""
    return {"PDL": True, "launch_pdl": True} if is_hopper(device) else {"PDL": False}


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


@functools.cache
def semaphores(device: torch.device, kernel: str) -> Tensor:
    """Zeros (65536,) int32 for this kernel alone; the program that finishes last resets its semaphore to zero.

    Kernels of one stream take turns, even those that start early: they wait before they count.
    """
    return torch.zeros(65536, dtype=torch.int32, device=device)
