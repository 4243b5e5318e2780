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
    """Maximum total seconds of running, without waiting."""
    too_long: str
    """The refusal once they are over; ``too_large``: for a process without memory left."""
    too_large: str
    is_abandoned: bool = False
    _elapsed: float = 0.0
    _started_at: float | None = None

    def abandon(self) -> None:
        """End the job at its next check, because its caller has left."""
        self.is_abandoned = True

    def run(self, function: Callable[..., Result], *values: object) -> Result:
        """Run the function, or its next step, within the remaining time. Blocking.

        Raises TooCostly, Cancelled, and the errors of the function.
        """
        token = _JOB.set(self)
        self._started_at = time.monotonic()
        try:
            self.check()
            return function(*values)
        finally:
            self._elapsed += time.monotonic() - self._started_at
            self._started_at = None
            _JOB.reset(token)

    def check(self) -> None:
        """Raises TooCostly, Cancelled."""
        if self.is_abandoned:
            raise Cancelled("the caller has left")
        running = 0.0 if self._started_at is None else time.monotonic() - self._started_at
        if self._elapsed + running > self.seconds:
            raise TooCostly(self.too_long)


def check_job() -> None:
    """End this thread's work if its time is over or its caller has left; does nothing outside a queue.

    Call it in every loop over untrusted data. Raises TooCostly, Cancelled.
    """
    if (job := _JOB.get()) is not None:
        job.check()
