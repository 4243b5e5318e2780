"""One piece of long work: its time limit, and whether its caller still wants it; its loops call `check_job`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from studio.errors import Cancelled, TooCostly

Result = TypeVar("Result")

_JOB: ContextVar[Job | None] = ContextVar("job", default=None)


@dataclass(eq=False, slots=True)
class Job:
    """Runs in one thread at a time; `abandon` may be called from another."""

    seconds: float
    """Seconds it may run in total, not counting the wait."""
    too_long: str
    """The refusal once that is over; ``too_large`` that of one whose process has no memory left."""
    too_large: str
    is_abandoned: bool = False
    _used: float = 0.0
    _since: float | None = None

    def abandon(self) -> None:
        """End it at its next check: its caller has left."""
        self.is_abandoned = True

    def run(self, function: Callable[..., Result], *values: object) -> Result:
        """The result of the function or of its next step, within what is left of the time. Blocking.

        Raises TooCostly, Cancelled, and what the function raises.
        """
        token = _JOB.set(self)
        self._since = time.monotonic()
        try:
            self.check()
            return function(*values)
        finally:
            self._used += time.monotonic() - self._since
            self._since = None
            _JOB.reset(token)

    def check(self) -> None:
        """Raises TooCostly, Cancelled."""
        if self.is_abandoned:
            raise Cancelled("the caller has left")
        running = 0.0 if self._since is None else time.monotonic() - self._since
        if self._used + running > self.seconds:
            raise TooCostly(self.too_long)


def check_job() -> None:
    """End the work of this thread if its time is over or its caller has left; does nothing outside of a queue.

    Call it in every loop over a stranger's data. Raises TooCostly, Cancelled.
    """
    if (job := _JOB.get()) is not None:
        job.check()
