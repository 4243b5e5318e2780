"""Where requests are planned: a short text at once, in the event loop, any other in a thread."""

from __future__ import annotations

import time

from engine import ModelCard
from studio.errors import LibraryUnavailable
from studio.speech.planning.plan import Plan, plan_of
from studio.speech.request import SpeechRequest
from studio.voices.resolver import VoiceResolver
from studio.work.work_queue import WorkQueue

SHORT = 500
"""Characters of a text that is planned in the event loop: a millisecond's work, three with its numbers read. A thread
hands the interpreter's lock back and forth with the loop at every look into the library, and 64 who come at once then
wait for that longer than for all else that is done for them."""
QUICK_SECONDS = 0.01
"""Of the processor, not by the clock: a crowd itself makes some plans wait, and would then be sent to the threads.
Where one takes more, as with a dictionary of thousands of entries …"""
SLOW_SECONDS = 10.0
"""… all are planned in threads for so long."""


class Planner:
    """Plans requests by the library's voices. Used from one event loop."""

    def __init__(self, voices: VoiceResolver, queue: WorkQueue) -> None:
        """``queue``: in which texts are planned that are not short."""
        self._voices = voices
        self._queue = queue
        self._warm_for: set[bool] = set()
        """Whether numbers are read as words, of what was planned before: the rules are compiled at their first use."""
        self._slow_until = 0.0

    async def plan(self, request: SpeechRequest, card: ModelCard, caller: str, patient: bool = False) -> Plan:
        """Raises what `plan_of` raises, QueueFull and TooManyRequests; never these two to one that is ``patient``."""
        normalizes = card.normalize if request.normalize is None else request.normalize
        is_short = len(request.text) <= SHORT and normalizes in self._warm_for
        if is_short and time.monotonic() >= self._slow_until:
            began = time.thread_time()
            try:
                with self._voices.library.store.one_view():
                    return plan_of(request, self._voices, card)
            except LibraryUnavailable:
                pass  # a thread can wait for it
            finally:
                if time.thread_time() - began > QUICK_SECONDS:
                    self._slow_until = time.monotonic() + SLOW_SECONDS
        async with self._queue.turn(caller, patient) as turn:
            plan = await turn.run(plan_of, request, self._voices, card)
        self._warm_for.add(normalizes)
        return plan
