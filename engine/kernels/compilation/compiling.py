"""Launches whose results do not count: kernels are compiled before the first is used, rehearsed before a capture."""

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
    """The same of layers, of which one may take another's place: inside `rehearsing` too."""
    return [layers[0], layers[-1]] if _rehearsing.get() and len(layers) > 2 else launched_alike(layers)


@contextmanager
def rehearsing() -> Iterator[None]:
    """What runs in here puts every kernel on the device and makes what kernels keep; its results do not count."""
    token = _rehearsing.set(True)
    try:
        yield
    finally:
        _rehearsing.reset(token)


@contextmanager
def compiling(processes: CompilerProcesses | None = None) -> Iterator[None]:
    """Launches in here compute nothing: their kernels are compiled. Outputs keep what was in their memory.

    By ``processes``, else on as many threads as there are cores, which does for a few: much of Triton's compiler works
    under Python's lock.
    """
    with _Compiler(processes) as compiler, AsyncCompileMode(compiler):  # which waits for all
        before, knobs.runtime.jit_cache_hook = knobs.runtime.jit_cache_hook, compiler.note
        token = _compiling.set(True)
        try:
            yield
        finally:
            _compiling.reset(token)
            knobs.runtime.jit_cache_hook = before


class _Compiler(ThreadPoolExecutor):
    """What Triton hands its compiling to: first one of the processes does it, then this one finds it in the cache."""

    def __init__(self, processes: CompilerProcesses | None) -> None:
        super().__init__(len(processes) if processes else os.cpu_count(), "compiler")
        self._processes, self._next = processes, Specialisation("", "", "")

    def note(self, *, fn: Any, compile: dict[str, Any], **about: Any) -> bool:
        """Triton's hook, called before each `submit`: which kernel it is about, in words that other processes know."""
        self._next = Specialisation(fn.module, fn.name, compile["specialization_data"])
        return False

    def submit(self, compile_here: Callable[[], Any]) -> Future[Any]:  # type: ignore[override]
        return super().submit(self._compile, self._next, compile_here)

    def _compile(self, specialisation: Specialisation, compile_here: Callable[[], Any]) -> Any:
        if self._processes:
            self._processes.compile(specialisation)
        return compile_here()
