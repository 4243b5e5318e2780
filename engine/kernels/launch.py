"""Launching a kernel, or only compiling it: all variants that will be needed, side by side, before the first is."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import triton
from triton import AsyncCompileMode

SCRATCH = 4096
"""Bytes of shared memory that the compiler may want beside a kernel's loads."""

_compiling: ContextVar[bool] = ContextVar("compiling", default=False)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **how: Any) -> None:
    """Run a Triton kernel with these arguments; inside `compiling`, see to it that it can be run."""
    if _compiling.get():
        kernel.warmup(*arguments, grid=grid, **how)
    else:
        kernel[grid](*arguments, **how)


@functools.cache
def shared_memory(device: torch.device) -> int:
    """Bytes of shared memory that a program may take on this GPU; for a CPU those of the GPU they are made for."""
    if device.type == "cpu":
        return 227 * 1024
    return int(triton.runtime.driver.active.utils.get_device_properties(device.index)["max_shared_mem"])


@functools.cache
def is_hopper(device: torch.device) -> bool:
    """Whether this is a GPU of compute capability 9.0 (Hopper) or later."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def has_tma(device: torch.device) -> bool:
    """Whether tiles may come by the Tensor Memory Accelerator: on Hopper and later, and under Triton's interpreter."""
    return device.type == "cpu" or is_hopper(device)


@contextmanager
def compiling() -> Iterator[None]:
    """Launches in here compute nothing: their kernels are compiled, on as many threads as there are cores.

    The compiler works outside of Python's lock, so threads are enough. Outputs keep what was in their memory.
    """
    with ThreadPoolExecutor(os.cpu_count()) as threads, AsyncCompileMode(threads):
        token = _compiling.set(True)
        try:
            yield
        finally:
            _compiling.reset(token)
