"""Active and recent requests: limits per caller, cancellation and outcomes."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from studio.errors import NotFound, TooManyRequests
from studio.library.take import Take
from studio.speech.metrics import Metrics
from studio.speech.recorder import Outcome

RECENT = 4096
"""Number of takes that are remembered after their end."""
REMEMBERED = 10_000
"""Maximum callers stored; the one with the oldest request is dropped first."""


@dataclass(slots=True)
class _Caller:
    open: int = 0
    tokens: float = 0.0
    refilled_at: float = 0.0


class Limits:
    """Limits per caller: speech requests queued or generating at a time, and started per minute; None removes a limit.

    A bucket per caller is refilled evenly over the minute. Other long work has the limits of `studio.work`. Used from
    one event loop.
    """

    def __init__(
        self, max_concurrent: int | None, max_per_minute: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_concurrent = max_concurrent
        self._max_per_minute = max_per_minute
        self._clock = clock
        self._callers: OrderedDict[str, _Caller] = OrderedDict()

    def enter(self, caller: str) -> None:
        """Count a request in; `leave` must follow. After TooManyRequests it must not."""
        state = self._state(caller)
        if self.max_concurrent is not None and state.open >= self.max_concurrent:
            allowed = f"at most {self.max_concurrent} at a time are allowed"
            raise TooManyRequests(f"{state.open} of your requests are active; {allowed}: wait for one to finish", 1)
        if self._max_per_minute is not None:
            now = self._clock()
            rate = self._max_per_minute / 60
            state.tokens = min(self._max_per_minute, state.tokens + (now - state.refilled_at) * rate)
            state.refilled_at = now
            if state.tokens < 1:
                wait = min(max(math.ceil((1 - state.tokens) / rate), 1), 30)
                raise TooManyRequests(f"at most {self._max_per_minute} requests a minute are allowed", wait)
            state.tokens -= 1
        state.open += 1

    def leave(self, caller: str) -> None:
        """Count a request out."""
        state = self._callers.get(caller)
        if state is not None and state.open:
            state.open -= 1

    def _state(self, caller: str) -> _Caller:
        state = self._callers.get(caller)
        if state is None:
            idle = (name for name, known in self._callers.items() if not known.open)
            if len(self._callers) >= REMEMBERED and (oldest := next(idle, None)) is not None:
                del self._callers[oldest]
            state = _Caller(tokens=float(self._max_per_minute or 0), refilled_at=self._clock())
            self._callers[caller] = state
        self._callers.move_to_end(caller)
        return state


class OpenRequest(Protocol):
    """A request that is queued or generating."""

    is_background: bool
    """Whether nobody listens to it and something else stores it: exempt from its caller's limit, and not listed."""

    @property
    def take(self) -> Take: ...

    def cancel(self, reason: str = ...) -> None: ...


class Register:
    """Used from one event loop. For each request: `enter`, `add`, `leave`."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._active: dict[str, OpenRequest] = {}
        self._ended: OrderedDict[str, Take] = OrderedDict()
        """The last RECENT takes that have ended, without those of projects."""
        self.outcomes: Counter[Outcome] = Counter()
        """Number of takes by outcome, since the start."""
        self._lock = threading.Lock()

    @property
    def max_concurrent(self) -> int | None:
        """Concurrent requests allowed per caller; None: no limit."""
        return self._limits.max_concurrent

    def enter(self, take: Take) -> None:
        """Count a request towards its caller's limit; call `leave` when it ends, unless this raises TooManyRequests."""
        self._limits.enter(take.caller)

    def add(self, request: OpenRequest) -> None:
        """Make a request available to `active`, `get` and `cancel`."""
        self._active[request.take.id] = request

    def leave(self, take: Take) -> None:
        """Remove a request that has ended, however it ended."""
        request = self._active.pop(take.id)
        self._metrics.count_take(take)
        if request.is_background:
            return
        self._limits.leave(take.caller)
        self.remember(take)

    def remember(self, take: Take) -> None:
        """Add a take that has ended to the recent ones."""
        self._ended[take.id] = take
        if len(self._ended) > RECENT:
            self._ended.popitem(last=False)

    def record_outcome(self, take_id: str, outcome: Outcome | None) -> None:
        """Count a take's outcome in the library; None: not known yet. Any thread may call it."""
        if outcome is not None:
            with self._lock:
                self.outcomes[outcome] += 1
            self._metrics.count_outcome(outcome)

    def get(self, take_id: str, caller: str | None = None) -> Take:
        """An active or a recent take. Raises NotFound if this caller (None: any caller) has no such take."""
        request = self._active.get(take_id)
        take = request.take if request is not None and not request.is_background else self._ended.get(take_id)
        if take is None or (caller is not None and take.caller != caller):
            raise NotFound(f"there is no take {take_id[:80]!r}", "take_id")
        return take

    def active(self, caller: str | None, with_background: bool = True) -> list[Take]:
        """The active requests of a caller (None: of all), oldest first; ``with_background``: also unheard ones."""
        requests = (request for request in self._active.values() if with_background or not request.is_background)
        return [request.take for request in requests if caller in (None, request.take.caller)]

    def recent(self, caller: str | None = None) -> list[Take]:
        """The recent takes of a caller (None: of all) that have ended, newest first."""
        return [take for take in reversed(self._ended.values()) if caller in (None, take.caller)]

    def forget(self, take_id: str) -> None:
        """Remove a take from the recent ones, if it is there."""
        self._ended.pop(take_id, None)

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

    def end_streams(self, reason: str) -> None:
        """Cancel every active request that somebody listens to; listeners get the reason."""
        for request in [*self._active.values()]:
            if not request.is_background:
                request.cancel(reason)

    def cancel_all(self, prefix: str) -> None:
        """Cancel every active request whose id begins with ``prefix``."""
        for request_id, request in self._active.items():
            if request_id.startswith(prefix):
                request.cancel()
