"""Background work: a health check for each kind, and a restart after a failure."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from engine import EngineError
from studio.errors import StudioError

log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
"""Seconds before the first restart; the pause doubles each time."""
LONGEST_PAUSE = 60.0
"""Maximum pause; work that ran for longer than this before it failed starts with the first pause again."""
EXPECTED = (StudioError, EngineError, sqlite3.Error, OSError)
"""Errors that are logged without a traceback: an engine that is stopped for another model fails what it was doing."""


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """``error``: the current error, or None. ``failures``: number of failures since the start."""

    error: str | None
    failures: int


class HealthCheck:
    """The state of one kind of work. Thread-safe."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = WorkStatus(None, 0)
        self._lock = threading.Lock()

    def report_success(self) -> None:
        """Clear the error."""
        with self._lock:
            self.status = WorkStatus(None, self.status.failures)

    def report_failure(self, failure: str, error: Exception | None = None) -> None:
        """Set the error and log it; an error that repeats is logged once."""
        message = failure if error is None else f"{failure}: {str(error) or type(error).__name__}"
        with self._lock:
            is_new = message != self.status.error
            self.status = WorkStatus(message, self.status.failures + 1)
        if is_new:
            has_stack = error is not None and not isinstance(error, EXPECTED)
            level = logging.ERROR if has_stack else logging.WARNING
            log.log(level, "%s", message, exc_info=error if has_stack else None)

    @contextlib.contextmanager
    def guarded(self, failure: str) -> Iterator[None]:
        """Report any exception raised within, and continue. ``failure``: a sentence that describes the failure."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (a background failure must not go unnoticed)
            self.report_failure(failure, error)

    async def restart_forever(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run ``work`` until it returns; if it raises, run it again after a pause."""
        pause = FIRST_PAUSE
        while True:
            started = time.monotonic()
            with self.guarded(f"{self.name} failed and is being restarted"):
                await work()
                return
            if time.monotonic() - started > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Wait until one of the coroutines has ended; the others are cancelled, and end too. Raises its error."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end_tasks(*tasks)
    for task in tasks:
        if task in done:
            task.result()


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; their results and errors are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
