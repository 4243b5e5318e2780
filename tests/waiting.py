"""Wait for a state in another thread or process without taking its processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

State = TypeVar("State")
PAUSE, LONGEST_PAUSE = 0.01, 0.05
"""Seconds between two checks, which grow with the wait: checking takes processor time from the awaited work."""


def wait_until(holds: Callable[[State], object], look: Callable[[], State], seconds: float = 60.0) -> State:
    """The state that ``look`` returns, as soon as it ``holds``; fails with the last one at the deadline."""
    began = time.monotonic()
    while not holds(state := look()):
        waited = time.monotonic() - began
        assert waited < seconds, f"still {state}"
        time.sleep(min(max(PAUSE, waited / 10), LONGEST_PAUSE))
    return state


def wait_until_true(look: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds; for conditions without a state to report."""
    wait_until(bool, look, seconds)
