"""Cancels work from outside, in the task that awaits it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class CancelToken:
    """Cancels what is awaited through `run` by cancelling the awaiting task, as `asyncio.timeout` does.

    A task for the work would cost more than generating a piece of audio. Used from one event loop, by one task at a
    time.
    """

    def __init__(self, error: Callable[[], Exception]) -> None:
        """``error`` creates the exception raised in the awaiting task."""
        self._error = error
        self._is_cancelled = False
        self._task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        """Cancel the work awaited now and any awaited later."""
        if self._task is not None and not self._is_cancelled:
            self._task.cancel()
        self._is_cancelled = True

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of ``work``; if `cancel` is called first, the work is cancelled and the error raised."""
        if self._is_cancelled:
            work.close()
            raise self._error()
        self._task = task = asyncio.current_task()
        assert task is not None, "only a task can await it"
        cancel_count = task.cancelling()
        try:
            return await work
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            if task.uncancel() > cancel_count:
                raise  # the task was also cancelled by someone else
            raise self._error() from None
        finally:
            self._task = None
