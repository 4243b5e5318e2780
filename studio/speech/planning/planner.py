"""Plans requests: short texts at once in the event loop, all others in a thread."""

from __future__ import annotations

import time

from engine import ModelCard
from studio.errors import LibraryUnavailable
from studio.speech.planning.plan import Plan, plan_of
from studio.speech.request import SpeechRequest
from studio.voices.resolver import VoiceResolver
from studio.work.work_queue import WorkQueue

SHORT = 500
"""Characters of a text that is planned in the event loop: a millisecond's work, or three with numbers to read. A
thread exchanges the interpreter's lock with the loop at every access to the library; when 64 requests arrive at once,
they would wait longer for that than for everything else."""
QUICK_SECONDS = 0.01
"""Seconds of CPU time, not of wall time: under load some plans wait, and would then be sent to the threads. If a plan
takes more, as with a dictionary of thousands of entries …"""
SLOW_SECONDS = 10.0
"""… all plans are made in threads for this many seconds."""


class Planner:
    """Plans requests with the library's voices. Used from one event loop."""

    def __init__(self, voices: VoiceResolver, queue: WorkQueue) -> None:
        """``queue``: where longer texts are planned."""
        self._voices = voices
        self._queue = queue
        self._warm_for: set[bool] = set()
        """The values of ``normalize`` planned before: the rules for numbers are compiled at their first use."""
        self._slow_until = 0.0

    async def plan(self, request: SpeechRequest, card: ModelCard, caller: str, patient: bool = False) -> Plan:
        """With the voices that the caller may use.

        Raises the errors of `plan_of`, and unless ``patient`` QueueFull and TooManyRequests.
        """
        voices = self._voices.seen_by(caller)
        normalizes = card.normalize if request.normalize is None else request.normalize
        is_short = len(request.text) <= SHORT and normalizes in self._warm_for
        if is_short and time.monotonic() >= self._slow_until:
            start = time.thread_time()
            try:
                with voices.library.store.one_view():
                    return plan_of(request, voices, card)
            except LibraryUnavailable:
                pass  # planned in a thread, which can wait
            finally:
                if time.thread_time() - start > QUICK_SECONDS:
                    self._slow_until = time.monotonic() + SLOW_SECONDS
        async with self._queue.turn(caller, patient) as turn:
            plan = await turn.run(plan_of, request, voices, card)
        self._warm_for.add(normalizes)
        return plan
