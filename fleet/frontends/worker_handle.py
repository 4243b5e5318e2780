"""One speech process as the studio runs it: started, told what to do, watched, ended."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import socket
from typing import Any

from fleet.frontends.messages import Accept, Channel, Failed, Leaving, Message, Order, Ready, Stop
from fleet.frontends.remote_register import TOLD_SECONDS
from fleet.frontends.worker_state import WorkerState
from studio.serving.public_port import Sockets
from studio.speech.speech_service import SpeechService

FIRST_SECONDS = 120.0
"""A new process may be silent for so long, …"""
SILENT_SECONDS = 10.0
"""… one that has said something for so long: then it is killed."""
END_SECONDS = 30.0
"""Within which a process that was told to end has ended: its streams, and what it writes of them."""


class WorkerHandle:
    """Used from the studio's event loop."""

    def __init__(self, name: str, order: Order, sockets: Sockets, service: SpeechService) -> None:
        self.name = name
        self.is_ready, self.leaves, self.has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._order, self._sockets = order, sockets
        self._member = WorkerState(name, service)
        self._process: Any = None
        self._starting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._why: str | None = None
        self._silent = SILENT_SECONDS - FIRST_SECONDS
        """Seconds since a word came, by this loop's rounds: while the loop itself stands still, none are counted."""

    async def start(self) -> None:
        """Its process is there then, and says when it `is_ready`. Being cancelled, it starts nevertheless."""
        self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        from fleet.frontends.worker_main import run  # it knows the API, which takes a second to import

        ours, theirs = socket.socketpair()
        spawning = multiprocessing.get_context("spawn")
        arguments = self.name, self._order, theirs, self._sockets
        self._process = spawning.Process(target=run, args=arguments, name=self.name, daemon=True)
        try:
            await asyncio.to_thread(self._process.start)
        finally:
            theirs.close()
        self._member.channel = await Channel.open(ours, self._hear, self._end)

    def accept(self) -> None:
        """Have it take connections."""
        self._send(Accept())

    def stop(self) -> None:
        """Have it end with the streams that it has."""
        self._send(Stop())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    async def watch(self) -> None:
        """Until it has ended: kill it when it says nothing any more."""
        while not self.has_ended.is_set():
            await asyncio.sleep(TOLD_SECONDS)
            self._silent += TOLD_SECONDS
            if self._silent > SILENT_SECONDS:
                self._why = "it said nothing any more and was killed"
                self.kill()

    async def ended(self) -> str:
        """Wait until nothing is left of it; why it has ended."""
        await asyncio.gather(self._starting, return_exceptions=True)
        if self._member.channel is None:
            return "it was not started"
        await self.has_ended.wait()
        await asyncio.to_thread(self._process.join, END_SECONDS)
        if self._process.exitcode is None:
            self.kill()
            await asyncio.to_thread(self._process.join)
        code = self._process.exitcode
        ended = f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with code {code}"
        return self._why or ended

    def _hear(self, message: Message) -> None:
        self._silent = 0.0
        if isinstance(message, Ready):
            self.is_ready.set()
        elif isinstance(message, Failed):
            self._why = f"it could not start: {message.why}"
        elif isinstance(message, Leaving):
            self.leaves.set()
        else:
            self._member.hear(message)

    def _end(self) -> None:
        self._member.gone()
        self.has_ended.set()

    def _send(self, message: Message) -> None:
        if self._member.channel is not None:
            self._member.channel.send(message)
