"""Work that nobody waits for: how each kind of it goes, for whoever asks; and begun again when it breaks off."""

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

from studio.errors import StudioError

log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
"""Seconds until work that broke off is begun again, twice as long each time …"""
LONGEST_PAUSE = 60.0
"""… up to this; work that went on for longer before it broke off begins with the first one."""
FORESEEN = (StudioError, sqlite3.Error, OSError)
"""What needs no stack in the log."""


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """``error``: what is wrong now; None: nothing. ``failures``: how often something was since the start."""

    error: str | None
    failures: int


class HealthCheck:
    """Over one kind of work, by its name. Any thread may use it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._status = WorkStatus(None, 0)
        self._lock = threading.Lock()

    @property
    def status(self) -> WorkStatus:
        return self._status

    def report_success(self) -> None:
        """What was wrong is over."""
        with self._lock:
            self._status = WorkStatus(None, self._status.failures)

    def report_failure(self, what: str, error: Exception | None = None) -> None:
        """Note and log it; the same again and again is logged once."""
        told = what if error is None else f"{what}: {str(error) or type(error).__name__}"
        with self._lock:
            is_new = told != self._status.error
            self._status = WorkStatus(told, self._status.failures + 1)
        if is_new:
            has_stack = error is not None and not isinstance(error, FORESEEN)
            log.log(logging.ERROR if has_stack else logging.WARNING, "%s", told, exc_info=error if has_stack else None)

    @contextlib.contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Note whatever goes wrong within, and go on after it. ``what`` could not be done then, in words."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (work that nobody waits for must not end unheard)
            self.report_failure(what, error)

    async def restart_forever(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do ``work`` until it returns; whenever it breaks off it is begun again, after a pause."""
        pause = FIRST_PAUSE
        while True:
            begun = time.monotonic()
            with self.guarded(f"{self.name} broke off and is being restarted"):
                await work()
                return
            if time.monotonic() - begun > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Until one of them is done; the others are ended."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def is_set(event: asyncio.Event) -> None:
    """Until it is; one of the works of `first_of`."""
    await event.wait()
