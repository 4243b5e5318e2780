"""A speech process's side of its takes: reports each one to the studio, which applies the limits."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from itertools import count
from typing import Any

from engine import EngineInfo
from fleet.frontends.messages import Answer, Channel, LogLine, RequestBegun, TakeEnded, TakesChanged, TakeStored
from studio.engine_host import EngineHost
from studio.errors import TooManyRequests
from studio.library.take import Take
from studio.speech.delivery import Speech
from studio.speech.metrics import Metrics
from studio.speech.plan import Plan, Planner
from studio.speech.recorder import Outcome, Retention
from studio.speech.register import Limits, Register
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.resolver import VoiceResolver
from studio.work import WorkQueue

REPORT_SECONDS = 1.0
"""Seconds between reports of active takes, which also show that the process is alive."""


class ReportingRegister(Register):
    """Counts nothing itself: the studio keeps limits and counts over all processes. For each request first: `ask`."""

    def __init__(self, channel: Channel, has_limits: bool, limits: Limits, metrics: Metrics) -> None:
        """``has_limits``: whether the studio answers when it is asked."""
        super().__init__(limits, metrics)
        self._channel = channel
        self._has_limits = has_limits
        self._loop = asyncio.get_running_loop()
        self._numbers = count()
        self._questions: dict[int, asyncio.Future[Answer]] = {}

    async def ask(self, take: Take) -> None:
        """Announce a request to the studio; `leave` must follow. Raises TooManyRequests if the studio refuses it."""
        if not self._has_limits:
            self._channel.send(RequestBegun(take, None))
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

    def handle_answer(self, answer: Answer) -> None:
        question = self._questions.get(answer.question)
        if question is not None and not question.done():
            question.set_result(answer)

    def enter(self, take: Take) -> None:
        """Do nothing: the studio has counted the request, see `ask`."""

    def leave(self, take: Take) -> None:
        self._active.pop(take.id)
        self.remember(take)
        self._channel.send(TakeEnded(take))

    def record_outcome(self, take_id: str, outcome: Outcome | None) -> None:
        if outcome is None:  # on the event loop, as the take has just left
            self._channel.send(TakeStored(take_id, None))
        else:
            self._loop.call_soon_threadsafe(self._channel.send, TakeStored(take_id, outcome))

    def report(self, *takes: Take) -> None:
        """Report the progress of active takes."""
        self._channel.send(TakesChanged(takes))

    async def report_changes(self) -> None:
        """Report the progress of all active takes again and again, until cancelled."""
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            speaking = (take for take in self.active(None) if take.state == "speaking")
            self.report(*(() if self._channel.is_full else speaking))


class AskingPlanner(Planner):
    """Asks the studio whether a request may begin once it is planned."""

    def __init__(self, voices: VoiceResolver, queue: WorkQueue, register: ReportingRegister) -> None:
        super().__init__(voices, queue)
        self._register = register

    async def plan(self, request: SpeechRequest, info: EngineInfo, origin: Origin) -> Plan:
        plan = await super().plan(request, info, origin)
        take = Take(origin.request_id, time.time(), plan.label, plan.seed, caller=origin.caller, live=origin.live)
        await self._register.ask(take)
        return plan


class ReportingService(SpeechService):
    """Asks the studio before each take, and reports its beginning."""

    def __init__(
        self,
        register: ReportingRegister,
        host: EngineHost,
        voices: VoiceResolver,
        retention: Retention | None,
        fetcher: ClipFetcher,
    ) -> None:
        super().__init__(host, voices, None, retention, fetcher, register)
        self.planner = AskingPlanner(voices, self.queues.texts, register)
        self._reports = register

    async def speak(self, *args: Any, **options: Any) -> Speech:
        speech = await super().speak(*args, **options)
        self._reports.report(speech.take)
        return speech


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
