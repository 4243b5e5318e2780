"""Active requests in all processes of the studio: limits per caller, cancellation and outcomes."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Protocol

from studio.errors import NotFound
from studio.library.takes.take import Take
from studio.takes.limits import Limits
from studio.takes.metrics import Metrics
from studio.takes.recent_takes import RecentTakes
from studio.takes.recorder import Outcome

RECENT = 4096
"""Number of takes stored: more than are ever active in all processes."""


class OpenRequest(Protocol):
    """A request that is queued or generating."""

    @property
    def take(self) -> Take:
        """The take so far."""

    def cancel(self) -> None:
        """Cancel the request."""


class Register:
    """Used from one event loop. For each request: `enter`, `add`, `put` after each change, `leave`."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.takes = RecentTakes(RECENT)
        self.speech_processes: tuple[int, int] | None = None
        """Processes that accept connections, and processes configured; None if this process does the work."""
        self._limits = limits
        self._metrics = metrics
        self._active: dict[str, OpenRequest] = {}
        self.outcomes: Counter[Outcome] = Counter()
        """Number of takes by outcome, since the start."""
        self._lock = threading.Lock()

    @property
    def max_concurrent(self) -> int | None:
        """Concurrent requests allowed per caller; None: no limit."""
        return self._limits.max_concurrent

    async def enter(self, take: Take) -> None:
        """Count a request towards its caller's limit; call `leave` when it ends, unless this raises TooManyRequests."""
        self.count_in(take)

    def count_in(self, take: Take) -> None:
        """As `enter`, but synchronous."""
        self._limits.enter(take.caller)

    def add(self, request: OpenRequest) -> None:
        """Make a request available to `active` and `cancel`."""
        self._active[request.take.id] = request

    def put(self, take: Take) -> None:
        """Update a take."""
        self.takes.put(take)

    def leave(self, take: Take) -> None:
        """Remove a request that has ended, however it ended."""
        self._limits.leave(take.caller)
        self.leave_part(take)

    def leave_part(self, take: Take) -> None:
        """As `leave`, for a part of a project, which does not count towards a caller's limit."""
        self._active.pop(take.id, None)
        self._metrics.count_take(take)

    def record_outcome(self, take_id: str, outcome: Outcome | None) -> None:
        """Count a take's outcome in the library; None: not known yet. Any thread may call it."""
        if outcome is not None:
            with self._lock:
                self.outcomes[outcome] += 1
            self._metrics.count_outcome(outcome)

    def active(self, caller: str) -> list[Take]:
        """A caller's active requests, oldest first."""
        return [request.take for request in self._active.values() if request.take.caller == caller]

    @property
    def active_count(self) -> int:
        """Active requests of all callers, and parts of projects."""
        return len(self._active)

    def cancel(self, request_id: str) -> None:
        """Cancel an active request. Raises NotFound if there is none with this id."""
        request = self._active.get(request_id)
        if request is None:
            raise NotFound(f"there is no active request {request_id[:80]!r}", "request_id")
        request.cancel()

    def cancel_all(self, prefix: str) -> None:
        """Cancel every active request whose id begins with ``prefix``."""
        for request_id, request in self._active.items():
            if request_id.startswith(prefix):
                request.cancel()
