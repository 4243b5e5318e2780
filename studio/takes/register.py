"""Requests under way, in whichever process of the studio: shares of callers, how each is ended, what became of it."""

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
"""Takes that are remembered: more than are ever under way, in all processes together."""


class OpenRequest(Protocol):
    """A request that waits or speaks."""

    @property
    def take(self) -> Take:
        """What is known of it by now."""

    def cancel(self) -> None:
        """End it from outside."""


class Register:
    """Used from one event loop. Each request enters, is added, put as often as it changes, and leaves."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.takes = RecentTakes(RECENT)
        self.speech_processes: tuple[int, int] | None = None
        """How many take connections, of how many there are to be; None where this process does."""
        self._limits = limits
        self._metrics = metrics
        self._active: dict[str, OpenRequest] = {}
        self.outcomes: Counter[Outcome] = Counter()
        """What became of the takes that were to be kept, since the start."""
        self._lock = threading.Lock()

    @property
    def at_a_time(self) -> int | None:
        """How many requests one caller may have at a time; None: no limit."""
        return self._limits.at_a_time

    async def enter(self, take: Take) -> None:
        """Count a request to its caller's share; `left` must follow. Raises TooManyRequests, and then it must not."""
        self.count_in(take)

    def count_in(self, take: Take) -> None:
        """As `enter`, at once."""
        self._limits.enter(take.caller)

    def add(self, request: OpenRequest) -> None:
        """From now on it can be found and ended by its id."""
        self._active[request.take.id] = request

    def put(self, take: Take) -> None:
        """What is known of a take now."""
        self.takes.put(take)

    def left(self, take: Take) -> None:
        """It has come to its end, whatever end."""
        self._limits.leave(take.caller)
        self.part_left(take)

    def part_left(self, take: Take) -> None:
        """As `left`, for a part of a project, which has not entered: it counts to nobody's share."""
        self._active.pop(take.id, None)
        self._metrics.ended(take)

    def recorded(self, take_id: str, outcome: Outcome | None) -> None:
        """What the library kept of a take; None: that is to be seen. Any thread may call it."""
        if outcome is not None:
            with self._lock:
                self.outcomes[outcome] += 1
            self._metrics.recorded(outcome)

    def active(self, caller: str) -> list[Take]:
        """A caller's requests that wait or speak, oldest first."""
        return [request.take for request in self._active.values() if request.take.caller == caller]

    def cancel(self, request_id: str) -> None:
        """End a request that waits or speaks. Raises NotFound when there is none under way."""
        request = self._active.get(request_id)
        if request is None:
            raise NotFound(f"there is no request {request_id[:80]!r} under way", "request_id")
        request.cancel()

    def cancel_all(self, prefix: str) -> None:
        """End every request under way whose id begins so."""
        for request_id, request in self._active.items():
            if request_id.startswith(prefix):
                request.cancel()
