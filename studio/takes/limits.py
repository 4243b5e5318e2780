"""Limits per caller: speech requests queued or generating at a time, and started per minute.

Other long work has the limits of `studio.work`.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from studio.errors import TooManyRequests

REMEMBERED = 10_000
"""Maximum callers stored; the one with the oldest request is dropped first."""


@dataclass(slots=True)
class _Caller:
    open: int = 0
    tokens: float = 0.0
    refilled_at: float = 0.0


class Limits:
    """A bucket per caller, refilled evenly over the minute; None removes a limit. Used from one event loop."""

    def __init__(
        self, max_concurrent: int | None, max_per_minute: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_concurrent = max_concurrent
        self._max_per_minute = max_per_minute
        self._clock = clock
        self._callers: OrderedDict[str, _Caller] = OrderedDict()

    @property
    def has_any(self) -> bool:
        """Whether any limit is set."""
        return self.max_concurrent is not None or self._max_per_minute is not None

    def enter(self, caller: str) -> None:
        """Count a request in; `leave` must follow. After TooManyRequests it must not."""
        state = self._state(caller)
        if self.max_concurrent is not None and state.open >= self.max_concurrent:
            raise TooManyRequests(
                f"you have {state.open} active requests; at most {self.max_concurrent} are allowed at a time", 1
            )
        if self._max_per_minute is not None:
            now = self._clock()
            rate = self._max_per_minute / 60
            state.tokens = min(self._max_per_minute, state.tokens + (now - state.refilled_at) * rate)
            state.refilled_at = now
            if state.tokens < 1:
                wait = math.ceil((1 - state.tokens) / rate)
                raise TooManyRequests(
                    f"at most {self._max_per_minute} requests a minute are allowed", min(max(wait, 1), 30)
                )
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
            state = _Caller(tokens=float(self._max_per_minute or 0), refilled_at=self._clock())
            self._callers[caller] = state
            self._forget()
        self._callers.move_to_end(caller)
        return state

    def _forget(self) -> None:
        if len(self._callers) > REMEMBERED:
            idle_caller = next((name for name, state in self._callers.items() if not state.open), None)
            if idle_caller is not None:
                del self._callers[idle_caller]
