"""Processes that compile kernels into this one's cache, if an earlier start has left none."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import triton
from triton import knobs
from triton.runtime.cache import triton_key
from triton.runtime.driver import driver

MOST = 12
"""Maximum processes: an H200's hundred kernels take a core half a minute; each process imports torch for 3 s, and 400
MB."""
FEWEST_CORES = 4
"""With fewer cores, threads are as good."""
KERNELS = Path(__file__).resolve().parents[1]


class Specialisation(NamedTuple):
    """A kernel for arguments of some types, as `JITFunction.preload` takes it."""

    module: str
    function: str
    data: str


class CompilerProcesses:
    """`count` processes for a GPU of this target, which import while they wait for work. `close` ends them."""

    def __init__(self, count: int, target: dict[str, object]) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        command = [sys.executable, "-m", "engine.kernels.compilation.process", json.dumps(target)]
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


@dataclass(frozen=True, slots=True)
class CachedKernels:
    """Whether the cache has all kernels of an engine, and if not, the processes that compile them."""

    are_complete: bool = False
    processes: CompilerProcesses | None = None
    """None with few cores: then threads are as good."""


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
    cores = len(os.sched_getaffinity(0))
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
