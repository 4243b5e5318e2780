"""A function in a Python of its own, with limits of time and memory, which is killed when its caller leaves.

A hostile file may crash the libraries that read it, but not the studio.
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
    """Makes nothing but plain values, errors of the studio's and the classes that are allowed."""

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
    """The result of a function of a module, called in a process of its own; being cancelled kills that.

    Raises the StudioError that the function raises, and TooCostly for more than the job's seconds or ``memory`` bytes.
    """
    called = await run_uninterrupted(pickle.dumps, (function, values))
    command = [sys.executable, "-m", "studio.work.child", str(memory), str(math.ceil(job.seconds))]
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
        start_new_session=True,  # Ctrl-C is for the studio; and what it starts is killed with it
    )
    try:
        answer = await asyncio.wait_for(_asked(child, called), job.seconds)
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


async def _asked(child: asyncio.subprocess.Process, called: bytes) -> bytes:
    """The answer to a call; empty where there is none. The input stays open: the child lives as long as it."""
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(ConnectionError):
        child.stdin.write(LENGTH.pack(len(called)) + called)
        await child.stdin.drain()
    return await child.stdout.read()


def _environment() -> dict[str, str]:
    """One thread for each library: more would each set memory aside."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return os.environ | threads | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
