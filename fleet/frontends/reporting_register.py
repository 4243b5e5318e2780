"""A speech process's register of requests: reports each one to the studio, which applies the limits."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from itertools import count

from fleet.frontends.messages import Answer, Channel, LogLine, RequestBegun, TakeEnded, TakesChanged, TakeStored
from studio.errors import TooManyRequests
from studio.library.takes.take import Take, TakeState
from studio.takes.limits import Limits
from studio.takes.metrics import Metrics
from studio.takes.recorder import Outcome
from studio.takes.register import Register

REPORT_SECONDS = 1.0
"""Seconds between reports of active takes, which also show that the process is alive."""


class ReportingRegister(Register):
    """Counts nothing itself: the studio keeps limits and counts over all processes."""

    def __init__(self, channel: Channel, limits: Limits, metrics: Metrics) -> None:
        super().__init__(limits, metrics)
        self._channel = channel
        self._has_limits = limits.has_any
        self._loop = asyncio.get_running_loop()
        self._numbers = count()
        self._questions: dict[int, asyncio.Future[Answer]] = {}
        self._states: dict[str, TakeState] = {}
        self._changed: dict[str, Take] = {}

    async def enter(self, take: Take) -> None:
        if not self._has_limits:
            self._channel.send(RequestBegun(take, None))
            self._states[take.id] = take.state
            return
        number = next(self._numbers)
        question = self._questions[number] = self._loop.create_future()
        self._channel.send(RequestBegun(take, number))
        try:
            answer = await question
        except asyncio.CancelledError:
            self._channel.send(TakeEnded(replace(take, state="cancelled")))
            raise
        finally:
            del self._questions[number]
        if answer.refusal is not None:
            raise TooManyRequests(answer.refusal, answer.retry_after)
        self._states[take.id] = take.state

    def handle_answer(self, answer: Answer) -> None:
        question = self._questions.get(answer.question)
        if question is not None and not question.done():
            question.set_result(answer)

    def put(self, take: Take) -> None:
        super().put(take)
        if take.ended or take.id not in self._states:
            return  # `leave` follows
        if self._states[take.id] == take.state:
            self._changed[take.id] = take
        else:
            self._states[take.id] = take.state
            self._changed.pop(take.id, None)  # an older state, which would overwrite this one
            self._channel.send(TakesChanged((take,)))

    def leave(self, take: Take) -> None:
        self._states.pop(take.id, None)
        self._changed.pop(take.id, None)
        self._active.pop(take.id, None)
        self._channel.send(TakeEnded(take))

    def record_outcome(self, take_id: str, outcome: Outcome | None) -> None:
        if outcome is None:  # on the event loop, as the take has just left
            self._channel.send(TakeStored(take_id, None))
        else:
            self._loop.call_soon_threadsafe(self._channel.send, TakeStored(take_id, outcome))

    async def report_changes(self) -> None:
        """Report the progress of active takes, until cancelled."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            takes, self._changed = self._changed, {}
            self._channel.send(TakesChanged(() if self._channel.is_full else tuple(takes.values())))


class WarningsToStudio(logging.Handler):
    """Copies the process's warnings to the studio, for its diagnostics file."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(logging.WARNING)
        self._channel, self._loop = channel, asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        if self._loop.is_closed():
            return
        try:
            line = LogLine(f"{record.levelname} {record.name}: {record.getMessage()}")
            self._loop.call_soon_threadsafe(self._channel.send, line)
        except (RuntimeError, TypeError, ValueError, KeyError):  # closed meanwhile; arguments that do not fit
            self.handleError(record)
