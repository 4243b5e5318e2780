"""The studio's view of a speech process: its takes, their callers, and how to end it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from fleet.frontends.messages import (
    Answer,
    Cancel,
    Channel,
    LogLine,
    Message,
    RequestBegun,
    TakeEnded,
    TakesChanged,
    TakeStored,
)
from studio.diagnostics import WARNINGS
from studio.errors import TooManyRequests
from studio.library.takes.take import Take
from studio.speech.speech_service import SpeechService


@dataclass(eq=False, slots=True)
class RemoteTake:
    """A request that another process answers."""

    take: Take
    cancel: Callable[[], None]


class RemoteTakes:
    """Handles a process's messages about its takes. Used from the studio's event loop."""

    def __init__(self, name: str, service: SpeechService) -> None:
        self.name = name
        self.channel: Channel | None = None
        self._register, self._recorder = service.register, service.recorder
        self._takes: dict[str, RemoteTake] = {}
        self._unwritten: set[str] = set()

    def handle(self, message: Message) -> None:
        """Handle a message about takes; ignores all others."""
        if isinstance(message, RequestBegun):
            self._enter(message.take, message.question)
        elif isinstance(message, TakesChanged):
            for take in message.takes:
                if entry := self._takes.get(take.id):
                    entry.take = take
                    self._register.put(take)
        elif isinstance(message, TakeEnded):
            self._leave(message.take)
        elif isinstance(message, TakeStored):
            self._record(message)
        elif isinstance(message, LogLine):
            WARNINGS.add(f"{self.name}: {message.line}")

    def process_ended(self) -> None:
        """End the takes of a process that has ended, and stop waiting for their records."""
        for entry in list(self._takes.values()):
            self._leave(replace(entry.take, state="failed", error="the process that generated it has ended"))
        for take_id in self._unwritten:
            if self._recorder is not None:
                self._recorder.mark_written(take_id)
        self._unwritten.clear()

    def _enter(self, take: Take, question: int | None) -> None:
        try:
            self._register.count_in(take)
        except TooManyRequests as error:
            self._answer(question, str(error), error.retry_after)
            return
        entry = self._takes[take.id] = RemoteTake(take, partial(self._cancel, take.id))
        self._register.add(entry)
        self._register.put(take)
        self._answer(question, None)

    def _leave(self, take: Take) -> None:
        if self._takes.pop(take.id, None) is not None:  # else it was refused, and left before the refusal arrived
            self._register.put(take)
            self._register.leave(take)

    def _record(self, message: TakeStored) -> None:
        self._register.record_outcome(message.take_id, message.outcome)
        if self._recorder is None:
            return
        if message.outcome is None:
            self._unwritten.add(message.take_id)
            self._recorder.expect(message.take_id)
        else:
            self._unwritten.discard(message.take_id)
            self._recorder.mark_written(message.take_id)

    def _answer(self, question: int | None, refusal: str | None, retry_after: int = 0) -> None:
        if question is not None and self.channel is not None:
            self.channel.send(Answer(question, refusal, retry_after))

    def _cancel(self, request_id: str) -> None:
        if self.channel is not None:
            self.channel.send(Cancel(request_id))
