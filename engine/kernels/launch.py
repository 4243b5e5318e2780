"""Launches kernels, and reports the GPU's properties that launchers need."""

from __future__ import annotations

import functools
from typing import Any

import torch
import triton

from engine.kernels.compilation.compiling import is_compiling

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
