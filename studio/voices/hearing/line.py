"""Work on clips that takes seconds of a processor: one at a time, in a thread, behind a short line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from studio.errors import LineFull

MAX_WAITING = 4
"""So many clips may wait for the one before them."""

Result = TypeVar("Result")


class ShortLine:
    """Used from one event loop."""

    def __init__(self, wanted: str) -> None:
        """``wanted``: what the clips wait for, such as "to be transcribed"."""
        self._wanted = wanted
        self._one = CapacityLimiter(1)
        self._waiting = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """What ``work`` gives, which blocks, in its turn. Raises LineFull, and what it raises."""
        if self._waiting > MAX_WAITING:
            raise LineFull(f"too many clips are waiting {self._wanted}; try again in a moment", retry_after=5)
        self._waiting += 1
        try:
            return await to_thread.run_sync(work, limiter=self._one)
        finally:
            self._waiting -= 1
