"""Launching a kernel, or only compiling it: all variants that will be needed, side by side, before the first is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from triton import AsyncCompileMode

_compiling: ContextVar[bool] = ContextVar("compiling", default=False)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **how: Any) -> None:
    """Run a Triton kernel with these arguments; inside `compiling`, see to it that it can be run."""
    if _compiling.get():
        kernel.warmup(*arguments, grid=grid, **how)
    else:
        kernel[grid](*arguments, **how)


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
