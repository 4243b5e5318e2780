"""Manages one speech process for the studio: starts, instructs, watches and ends it."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import socket
from typing import Any

from fleet.frontends.messages import Accept, Channel, Draining, Failed, Message, Ready, StartArguments, Stop
from fleet.frontends.remote_takes import RemoteTakes
from fleet.frontends.reporting_register import REPORT_SECONDS
from studio.serving.public_port import Sockets
from studio.speech.speech_service import SpeechService

FIRST_SECONDS = 120.0
"""Seconds of silence after which a new process is killed."""
SILENT_SECONDS = 10.0
"""Seconds of silence after which a process that has reported before is killed."""
END_SECONDS = 30.0
"""Seconds for a stopped process to end its streams and write their takes."""


class SpeechProcess:
    """Used from the studio's event loop."""

    def __init__(self, name: str, arguments: StartArguments, sockets: Sockets, service: SpeechService) -> None:
        self.name = name
        self.is_ready, self.is_leaving, self.has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._arguments, self._sockets = arguments, sockets
        self._takes = RemoteTakes(name, service)
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
            self._takes.channel = await Channel.open(studio_end, self._handle, self._end)
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
                self._reason = "it stopped responding and was killed"
                self.kill()

    async def ended(self) -> str:
        """Wait until the process has ended completely; returns the reason."""
        await asyncio.gather(self._start_task, return_exceptions=True)
        if self._takes.channel is None:
            return "it was not started"
        await self.has_ended.wait()
        await asyncio.to_thread(self._process.join, END_SECONDS)
        if self._process.exitcode is None:
            self.kill()
            await asyncio.to_thread(self._process.join)
        code = self._process.exitcode
        cause = f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with code {code}"
        return self._reason or cause

    def _handle(self, message: Message) -> None:
        self._silent_seconds = 0.0
        if isinstance(message, Ready):
            self.is_ready.set()
        elif isinstance(message, Failed):
            self._reason = f"it could not start: {message.reason}"
        elif isinstance(message, Draining):
            self.is_leaving.set()
        else:
            self._takes.handle(message)

    def _end(self) -> None:
        self._takes.process_ended()
        self.has_ended.set()

    def _send(self, message: Message) -> None:
        if self._takes.channel is not None:
            self._takes.channel.send(message)
