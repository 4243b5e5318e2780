"""Processes that compile kernels into the cache that this one reads, where an earlier start has left none."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import triton
from triton import knobs
from triton.runtime.driver import driver

MOST = 12
"""Processes: an H200's hundred kernels take a core half a minute; each process imports torch for 3 s, and 400 MB."""
FEWEST_CORES = 4
"""With fewer, threads are as good."""
KERNELS = Path(__file__).resolve().parents[1]


class Specialisation(NamedTuple):
    """A kernel for arguments of some types, as `JITFunction.preload` takes it."""

    module: str
    function: str
    data: str


class CompilerProcesses:
    """`count` of them for a GPU of this target, importing what they need until they are asked. `close` ends them."""

    def __init__(self, count: int, target: dict[str, object]) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        command = [sys.executable, "-m", "engine.kernels.compilation.process", json.dumps(target)]
        pipe = subprocess.PIPE
        self._all = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) for _ in range(count)
        ]
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)

    def __len__(self) -> int:
        return len(self._all)

    def compile(self, specialisation: Specialisation) -> None:
        """Have it compiled by the next process that is free; blocking. One that has died compiles nothing."""
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


@contextmanager
def compilers_where_needed() -> Iterator[CompilerProcesses | None]:
    """Processes for the current GPU; None where a start of this code has left its kernels, or cores are few.

    What was compiled inside is taken to be all that such a start needs.
    """
    target = vars(driver.active.get_current_target())
    kept = Path(knobs.cache.dir) / f"engine-{_fingerprint(target)}"
    cores = len(os.sched_getaffinity(0))
    if kept.exists() or cores < FEWEST_CORES:
        yield None
        return
    processes = CompilerProcesses(min(cores, MOST), target)
    try:
        yield processes
    finally:
        processes.close()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.touch()


def _fingerprint(target: dict[str, object]) -> str:
    """Of what kernels are compiled from: their sources, Triton and the GPU's kind."""
    digest = hashlib.sha256(f"{triton.__version__} {json.dumps(target)}".encode())
    for path in sorted(KERNELS.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
