"""Work that can be ended from outside, in the task that awaits it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class CancelToken:
    """Ends what is awaited through `unless`, by cancelling the awaiting task, as `asyncio.timeout` does.

    A task for the work would cost more than a piece of sound does otherwise. Used from one event loop, by one task at a
    time.
    """

    def __init__(self, error: Callable[[], Exception]) -> None:
        """``error``: makes what whoever waits is told."""
        self._error = error
        self._is_set = False
        self._task: asyncio.Task[Any] | None = None

    def set(self) -> None:
        """End what is awaited now, and whatever will be."""
        if self._task is not None and not self._is_set:
            self._task.cancel()
        self._is_set = True

    async def unless(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``; raises the error, the work ended, when `set` comes first."""
        if self._is_set:
            work.close()
            raise self._error()
        self._task = task = asyncio.current_task()
        assert task is not None, "it is awaited by a task"
        others = task.cancelling()
        try:
            return await work
        except asyncio.CancelledError:
            if not self._is_set:
                raise
            if task.uncancel() > others:
                raise  # somebody else has cancelled the task too
            raise self._error() from None
        finally:
            self._task = None
