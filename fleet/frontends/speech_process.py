"""Manages one speech process for the studio: starts, instructs, watches and ends it, and lists and limits its takes."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fleet.frontends.messages import (
    Accept,
    Answer,
    Cancel,
    Channel,
    Draining,
    Failed,
    LogLine,
    Message,
    Ready,
    RequestBegun,
    StartArguments,
    Stop,
    TakeEnded,
    TakesChanged,
    TakeStored,
)
from fleet.frontends.reporting_register import REPORT_SECONDS
from studio.diagnostics import WARNINGS
from studio.errors import TooManyRequests
from studio.library.take import Take
from studio.public_port import Sockets
from studio.speech.speech_service import SpeechService

FIRST_SECONDS = 120.0  # seconds of silence after which a new process is killed
SILENT_SECONDS = 10.0  # seconds of silence after which a process that has reported before is killed
END_SECONDS = 30.0  # seconds for a stopped process to end its streams and write their takes


@dataclass(eq=False, slots=True)
class RemoteTake:
    """A request that another process answers."""

    take: Take
    ask_to_cancel: Callable[[], None]
    is_background = False

    def cancel(self, reason: str = "") -> None:
        """Cancel it in its process, which words the reason itself."""
        self.ask_to_cancel()


class SpeechProcess:
    """Used from the studio's event loop."""

    def __init__(self, name: str, arguments: StartArguments, sockets: Sockets, service: SpeechService) -> None:
        self.name = name
        self.is_ready, self.is_leaving, self.has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._arguments, self._sockets = arguments, sockets
        self._channel: Channel | None = None
        self._register, self._recorder = service.register, service.recorder
        self._takes: dict[str, RemoteTake] = {}
        self._unwritten: set[str] = set()
        self._process: Any = None
        self._start_task: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reason: str | None = None
        self._is_stopping = False
        self._silent_seconds = SILENT_SECONDS - FIRST_SECONDS
        """Seconds since the last message, counted by this loop: while the loop itself is stalled, none are counted."""

    async def start(self) -> None:
        """Start the process, which reports later that it `is_ready`. Cancelling does not stop the start."""
        self._start_task = asyncio.ensure_future(self._start())
        await asyncio.shield(self._start_task)

    async def _start(self) -> None:
        from fleet.frontends.speech_process_main import run  # imports the API, which takes a second

        studio_end, process_end = socket.socketpair()
        context = multiprocessing.get_context("spawn")
        args = self.name, self._arguments, process_end, self._sockets
        self._process = context.Process(target=run, args=args, name=self.name, daemon=True)
        try:
            try:
                await asyncio.to_thread(self._process.start)
            finally:
                process_end.close()
            self._channel = await Channel.open(studio_end, self._handle, self._end)
        except BaseException:
            studio_end.close()
            raise
        if self._is_stopping:  # since before there was a channel
            self._send(Stop())

    def accept(self) -> None:
        """Make the process accept connections."""
        self._send(Accept())

    def stop(self) -> None:
        """Make the process end when its streams end, also one that is still being started."""
        self._is_stopping = True
        self._send(Stop())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    async def watch(self) -> None:
        """Kill the process if it goes silent; returns when it has ended."""
        while not self.has_ended.is_set():
            await asyncio.sleep(REPORT_SECONDS)
            self._silent_seconds += REPORT_SECONDS
            if self._silent_seconds > SILENT_SECONDS:
                self._reason = "the process stopped responding and was killed"
                self.kill()

    async def ended(self) -> str:
        """Wait until the process has ended completely; returns the reason."""
        await asyncio.gather(self._start_task, return_exceptions=True)
        if self._channel is None:
            return "the process was not started"
        await self.has_ended.wait()
        await asyncio.to_thread(self._process.join, END_SECONDS)
        if self._process.exitcode is None:
            self.kill()
            await asyncio.to_thread(self._process.join)
        code = self._process.exitcode
        end = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return self._reason or f"the process {end}"

    def _handle(self, message: Message) -> None:
        self._silent_seconds = 0.0
        if isinstance(message, Ready):
            self.is_ready.set()
        elif isinstance(message, Failed):
            self._reason = f"the process could not start: {message.reason}"
        elif isinstance(message, Draining):
            self.is_leaving.set()
        elif isinstance(message, RequestBegun):
            self._enter(message.take, message.question)
        elif isinstance(message, TakesChanged):
            for take in message.takes:
                if entry := self._takes.get(take.id):
                    entry.take = take
        elif isinstance(message, TakeEnded):
            self._leave(message.take)
        elif isinstance(message, TakeStored):
            self._record(message)
        elif isinstance(message, LogLine):
            WARNINGS.add(f"{self.name}: {message.line}")

    def _end(self) -> None:
        """End the takes of a process that has ended, and stop waiting for their records."""
        for entry in list(self._takes.values()):
            self._leave(replace(entry.take, state="failed", error="the process that generated it has ended"))
        for take_id in self._unwritten:
            if self._recorder is not None:
                self._recorder.mark_written(take_id)
        self._unwritten.clear()
        self.has_ended.set()

    def _enter(self, take: Take, question: int | None) -> None:
        refusal: str | None = None
        retry_after = 0
        try:
            self._register.enter(take)
        except TooManyRequests as error:
            refusal, retry_after = str(error), error.retry_after
        else:
            entry = self._takes[take.id] = RemoteTake(take, lambda: self._send(Cancel(take.id)))
            self._register.add(entry)
        if question is not None:
            self._send(Answer(question, refusal, retry_after))

    def _leave(self, take: Take) -> None:
        if self._takes.pop(take.id, None) is not None:  # else it was refused, and left before the refusal arrived
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

    def _send(self, message: Message) -> None:
        if self._channel is not None:
            self._channel.send(message)
