"""Compiles all kernels before their first use, in processes of their own if the cache has none."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import triton
from triton import AsyncCompileMode, knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import triton_key
from triton.runtime.driver import driver

MOST = 12
"""Maximum processes: an H200's hundred kernels take a core half a minute; each process imports torch for 3 s, and 400
MB."""
FEWEST_CORES = 4
"""Threads are as good with fewer cores."""
KERNELS = Path(__file__).resolve().parent

Item = TypeVar("Item")

_compiling: ContextVar[bool] = ContextVar("compiling", default=False)
_rehearsing: ContextVar[bool] = ContextVar("rehearsing", default=False)


class Specialisation(NamedTuple):
    """A kernel for arguments of some types, as `JITFunction.preload` takes it."""

    module: str
    function: str
    data: str


class CompilerProcesses:
    """`count` processes for a GPU of this target, which import while they wait for work. `close` ends them."""

    def __init__(self, count: int, target: dict[str, object]) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        program = "from engine.kernels.compilation import compile_requests; compile_requests()"
        command = [sys.executable, "-c", program, json.dumps(target)]
        pipe = subprocess.PIPE
        self._all = [  # in their own sessions: Ctrl-C is for this process, and their input ends with it
            subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True, start_new_session=True)
            for _ in range(count)
        ]
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)

    def __len__(self) -> int:
        return len(self._all)

    def compile(self, specialisation: Specialisation) -> None:
        """Compile in the next free process; blocking. Does nothing if that process has died."""
        process = self._idle.get()
        assert process.stdin and process.stdout
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(specialisation) + "\n")
            process.stdin.flush()
            process.stdout.readline()
        self._idle.put(process)

    def close(self) -> None:
        for process in self._all:
            assert process.stdin and process.stdout
            with contextlib.suppress(OSError):
                process.stdin.close()
        for process in self._all:
            process.wait()
            assert process.stdout
            process.stdout.close()


class CompilingDriver:
    """The part of Triton's driver that compiling needs: there is one GPU, of this target."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return self._target


def compile_requests() -> None:
    """The program of a compiler process, which does not use the GPU; its argument is a GPUTarget in JSON.

    Each line of the input is a `Specialisation` in JSON; an empty line answers it, once the kernel is in Triton's
    cache. A kernel that cannot be compiled ends the process with Triton's error, and the caller then compiles it alone.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that printed text is not taken for an answer
    driver.set_active(CompilingDriver(GPUTarget(**json.loads(sys.argv[1]))))
    for line in sys.stdin:
        specialisation = Specialisation(*json.loads(line))
        getattr(importlib.import_module(specialisation.module), specialisation.function).preload(specialisation.data)
        print(file=answers, flush=True)


@dataclass(frozen=True, slots=True)
class CachedKernels:
    """Whether the cache has all kernels of an engine, and if not, the processes that compile them."""

    are_complete: bool = False
    processes: CompilerProcesses | None = None


@contextmanager
def cached_kernels(settings: str) -> Iterator[CachedKernels]:
    """The kernels for the current GPU and an engine with these settings.

    A file in the cache marks them as complete; it is written if this context ends without an error.
    """
    threading.Thread(target=triton_key, daemon=True).start()  # hashes all of Triton, half a second before any kernel
    target = vars(driver.active.get_current_target())
    mark = Path(knobs.cache.dir) / f"complete-{_fingerprint(f'{settings} {json.dumps(target)}')}"
    if mark.exists():
        yield CachedKernels(are_complete=True)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1  # Windows has no Triton
    processes = CompilerProcesses(min(cores, MOST), target) if cores >= FEWEST_CORES else None
    try:
        yield CachedKernels(processes=processes)
    finally:
        if processes:
            processes.close()
    with contextlib.suppress(OSError):  # a read-only cache is checked at each start
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def _fingerprint(settings: str) -> str:
    """A hash of everything kernels are compiled from: their sources, Triton, and the target."""
    digest = hashlib.sha256(f"{triton.__version__} {settings}".encode())
    for path in sorted(KERNELS.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def is_compiling() -> bool:
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
