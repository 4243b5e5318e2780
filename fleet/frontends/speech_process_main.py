"""A speech process: accepts connections, generates speech, and passes all other requests on to the studio's process."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing.connection
import os
import shutil
import signal
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine import freeze_heap
from fleet.frontends.messages import (
    Accept,
    Answer,
    Cancel,
    Channel,
    Draining,
    Failed,
    Message,
    Ready,
    StartArguments,
    Stop,
)
from fleet.frontends.relay import Relay
from fleet.frontends.reporting_register import ReportingRegister, WarningsToStudio
from fleet.frontends.speech_app import SpeechApi
from studio.engine_host import EngineHost, trim_heap_regularly
from studio.errors import NotFound, StudioError
from studio.library import Library
from studio.serving.public_port import Sockets
from studio.serving.server import GRACE_SECONDS, QuietServer, config_of
from studio.settings import Settings
from studio.speech.reading import normalised
from studio.speech.speech_service import SpeechService
from studio.supervisor import first_of, is_set
from studio.takes.limits import Limits
from studio.takes.recorder import Retention
from studio.voices.bundled import read_aliases
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.resolver import VoiceResolver

WRITE_SECONDS = 10.0
"""Seconds beyond the streams' grace, for writing takes."""


def run(name: str, arguments: StartArguments, end: socket.socket, sockets: Sockets) -> None:
    """Run the process; ``end`` is its end of the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in the terminal: the studio decides when to end
    log_format = f"%(levelname)s {name}: %(name)s: %(message)s"
    logging.basicConfig(level=arguments.settings.log_level.upper(), format=log_format)
    threading.Thread(target=_end_with_studio, args=(arguments,), daemon=True).start()
    asyncio.run(_Process(arguments, sockets).run(end))


class _Process:
    def __init__(self, arguments: StartArguments, sockets: Sockets) -> None:
        self._arguments, self._sockets = arguments, sockets
        self._accept, self._leave = asyncio.Event(), asyncio.Event()
        self._register: ReportingRegister | None = None

    async def run(self, end: socket.socket) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._leave.set)
        channel = await Channel.open(end, self._handle, self._leave.set)
        logging.getLogger().addHandler(WarningsToStudio(channel))
        try:
            await self._live(channel)
        except (StudioError, OSError) as error:
            channel.send(Failed(str(error)))
        finally:
            channel.close()
            await asyncio.sleep(0)  # sends the remaining messages

    async def _live(self, channel: Channel) -> None:
        host = EngineHost(self._arguments.config, self._arguments.start_engine)
        voices = await asyncio.to_thread(_voices, self._arguments.settings)
        service = _service(self._arguments.settings, host, voices, channel)
        assert isinstance(service.register, ReportingRegister)
        self._register = service.register
        housekeeping = [asyncio.create_task(work()) for work in (service.register.report_changes, trim_heap_regularly)]
        host.start()
        try:
            await first_of(host.wait_until_ready(), is_set(self._leave))
            if host.status.state == "ready":
                await self._serve(service, channel)
            elif not self._leave.is_set():
                channel.send(Failed(host.status.error or "the engine did not start"))
        finally:
            await asyncio.to_thread(service.close)
            await asyncio.to_thread(host.stop)
            for task in housekeeping:  # only now: a process that is silent while it ends would be killed
                task.cancel()

    async def _serve(self, service: SpeechService, channel: Channel) -> None:
        if service.host.engine().info.card.normalize:
            await asyncio.to_thread(normalised, "It is 5 pm.")  # compiles its rules before the first request
        api = SpeechApi(service, self._arguments.settings)
        relay = Relay(api.app, api.answers, self._arguments.studio)
        server = QuietServer(config_of(relay, self._arguments.settings, lifespan="off", log_config=None))
        server_task = asyncio.create_task(server.serve())
        await asyncio.to_thread(freeze_heap)
        channel.send(Ready())
        await first_of(is_set(self._accept), is_set(self._leave))
        if not self._leave.is_set():
            await server.listen(self._sockets)
            await self._leave.wait()
        channel.send(Draining())
        server.should_exit = True
        await server_task
        await relay.aclose()

    def _handle(self, message: Message) -> None:
        if isinstance(message, Accept):
            self._accept.set()
        elif isinstance(message, Stop):
            self._leave.set()
        elif isinstance(message, Answer) and self._register is not None:
            self._register.handle_answer(message)
        elif isinstance(message, Cancel) and self._register is not None:
            with suppress(NotFound):  # has ended meanwhile
                self._register.cancel(message.request_id)


def _voices(settings: Settings) -> VoiceResolver:
    """The voices of the library that the studio has opened. Blocking."""
    library = Library(Path(settings.home), settings.trash_days, bool(settings.api_keys))
    return VoiceResolver(library, read_aliases(Path(settings.voices)))


def _service(settings: Settings, host: EngineHost, voices: VoiceResolver, channel: Channel) -> SpeechService:
    """A service like the studio's own, except that the studio counts and lists its takes."""
    retention = Retention(settings.keep_takes, settings.take_bytes) if settings.keep_takes else None
    fetcher = ClipFetcher(settings.ref_folder, settings.ref_networks)
    limits = Limits(settings.max_per_caller, settings.requests_per_minute)
    return SpeechService(host, voices, limits, retention, fetcher, partial(ReportingRegister, channel))


def _end_with_studio(arguments: StartArguments) -> None:
    """End with the studio, however it ends. The event loop sees the channel close; this is for a loop that is stuck."""
    studio = multiprocessing.parent_process()
    assert studio is not None
    multiprocessing.connection.wait([studio.sentinel])
    shutil.rmtree(Path(arguments.studio).parent, ignore_errors=True)  # in case it was killed and could not
    time.sleep(GRACE_SECONDS + WRITE_SECONDS)
    os._exit(1)
