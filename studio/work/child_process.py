"""Runs a function in a separate Python process with limits of time and memory, killed when its caller leaves.

A malicious file may crash the libraries that read it, but not the studio.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import math
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from studio.errors import StudioError, TooCostly
from studio.threads import run_uninterrupted
from studio.work.child import LENGTH
from studio.work.job import Job

Result = TypeVar("Result")


class _Unpickler(pickle.Unpickler):
    """Creates only plain values, the studio's errors and allowed classes."""

    def __init__(self, data: bytes, allowed: tuple[type, ...]) -> None:
        super().__init__(io.BytesIO(data))
        self._allowed = {(kind.__module__, kind.__qualname__): kind for kind in (*allowed, *_errors(StudioError))}

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed") from None


def _errors(kind: type[StudioError]) -> list[type]:
    return [kind, *(error for below in kind.__subclasses__() for error in _errors(below))]


async def in_child(
    job: Job, memory: int, allowed: tuple[type, ...], function: Callable[..., Result], *values: object
) -> Result:
    """Call a function of a module in a separate process and return its result; cancelling kills the process.

    Raises the StudioError that the function raises, and TooCostly for more than the job's seconds or ``memory`` bytes.
    """
    payload = await run_uninterrupted(pickle.dumps, (function, values))
    command = [sys.executable, "-m", "studio.work.child", str(memory), str(math.ceil(job.seconds))]
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
        start_new_session=True,  # Ctrl-C reaches only the studio; its own children are killed with it
    )
    try:
        answer = await asyncio.wait_for(_call(child, payload), job.seconds)
    except TimeoutError:
        raise TooCostly(job.too_long) from None
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
    if not answer:
        raise TooCostly(job.too_long if child.returncode == -signal.SIGXCPU else job.too_large)
    is_result, result = await run_uninterrupted(lambda: _Unpickler(answer, allowed).load())
    if is_result:
        return result
    raise result


async def _call(child: asyncio.subprocess.Process, payload: bytes) -> bytes:
    """The answer to a call; empty without one. The input stays open, because the child ends with it."""
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(ConnectionError):
        child.stdin.write(LENGTH.pack(len(payload)) + payload)
        await child.stdin.drain()
    return await child.stdout.read()


def _environment() -> dict[str, str]:
    """One thread per library, because each thread reserves memory."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return os.environ | threads | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
