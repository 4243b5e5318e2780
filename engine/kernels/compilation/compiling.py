"""Launches whose results are ignored: to compile kernels before the first use, and as trial runs before a capture."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from triton import AsyncCompileMode, knobs

from engine.kernels.compilation.processes import CompilerProcesses, Specialisation

Item = TypeVar("Item")

_compiling: ContextVar[bool] = ContextVar("compiling", default=False)
_rehearsing: ContextVar[bool] = ContextVar("rehearsing", default=False)


def is_compiling() -> bool:
    """Whether this is inside `compiling`."""
    return _compiling.get()


def launched_alike(items: Sequence[Item]) -> Sequence[Item]:
    """Items that launch the same kernels; inside `compiling` only the first and the last."""
    return [items[0], items[-1]] if is_compiling() and len(items) > 2 else items


def layers_alike(layers: Sequence[Item]) -> Sequence[Item]:
    """The same for layers, of which one represents all: inside `rehearsing` too."""
    return [layers[0], layers[-1]] if _rehearsing.get() and len(layers) > 2 else launched_alike(layers)


@contextmanager
def rehearsing() -> Iterator[None]:
    """Code in this context loads every kernel onto the device and initialises what kernels keep; its results are
    ignored."""
    token = _rehearsing.set(True)
    try:
        yield
    finally:
        _rehearsing.reset(token)


@contextmanager
def compiling(processes: CompilerProcesses | None = None) -> Iterator[None]:
    """Launches in this context compute nothing: their kernels are compiled. Outputs keep their previous memory.

    Uses ``processes``, else as many threads as there are cores, which is enough for a few kernels: much of Triton's
    compiler holds Python's lock.
    """
    with _Compiler(processes) as compiler, AsyncCompileMode(compiler):  # waits for all kernels
        old_hook, knobs.runtime.jit_cache_hook = knobs.runtime.jit_cache_hook, compiler.note
        token = _compiling.set(True)
        try:
            yield
        finally:
            _compiling.reset(token)
            knobs.runtime.jit_cache_hook = old_hook


class _Compiler(ThreadPoolExecutor):
    """The executor that Triton uses for compiling: a process compiles first, then this one finds the kernel in the
    cache."""

    def __init__(self, processes: CompilerProcesses | None) -> None:
        super().__init__(len(processes) if processes else os.cpu_count(), "compiler")
        self._processes, self._next = processes, Specialisation("", "", "")

    def note(self, *, fn: Any, compile: dict[str, Any], **about: Any) -> bool:
        """Triton's hook, called before each `submit`: describes the next kernel so that other processes can compile
        it."""
        self._next = Specialisation(fn.module, fn.name, compile["specialization_data"])
        return False

    def submit(self, compile_here: Callable[[], Any]) -> Future[Any]:  # type: ignore[override]
        return super().submit(self._compile, self._next, compile_here)

    def _compile(self, specialisation: Specialisation, compile_here: Callable[[], Any]) -> Any:
        if self._processes:
            self._processes.compile(specialisation)
        return compile_here()
