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
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import Match
from starlette.types import Scope

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
from fleet.frontends.reporting_register import ReportingRegister, ReportingService, WarningsToStudio
from protocols.elevenlabs import eleven_routes_of_speech
from protocols.fish import fish_speech_routes
from speechtext.reading import normalised
from studio.api.error_responses import below_prefix
from studio.api.middleware import install_layers
from studio.api.routes.batch import batch_routes
from studio.api.routes.socket import socket_routes
from studio.api.routes.speech_routes import speech_routes
from studio.api.text_socket import SocketConnection
from studio.engine_host import EngineHost, trim_heap_regularly
from studio.errors import REFUSALS, NotFound
from studio.library import Library
from studio.output import background_output
from studio.public_port import Sockets
from studio.server import GRACE_SECONDS, QuietServer, config_of
from studio.settings import Settings
from studio.speech.metrics import Metrics
from studio.speech.recorder import Retention
from studio.speech.register import Limits
from studio.speech.speech_service import SpeechService
from studio.supervisor import first_of
from studio.voices.bundled import read_aliases
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.resolver import VoiceResolver

WRITE_SECONDS = 10.0  # seconds beyond the streams' grace, for writing takes


def run(name: str, arguments: StartArguments, end: socket.socket, sockets: Sockets) -> None:
    """Run the process; ``end`` is its end of the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in the terminal: the studio decides when to end
    threading.Thread(target=_end_with_studio, args=(arguments,), daemon=True).start()
    with background_output():
        log_format = f"%(levelname)s {name}: %(name)s: %(message)s"
        logging.basicConfig(level=arguments.settings.log_level.upper(), format=log_format)
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
        except (*REFUSALS, OSError) as error:
            channel.send(Failed(str(error)))
        finally:
            channel.close()
            await asyncio.sleep(0)  # sends the remaining messages

    async def _live(self, channel: Channel) -> None:
        host = EngineHost(self._arguments.config, self._arguments.start_engine)
        voices = await asyncio.to_thread(_voices, self._arguments.settings, self._arguments.library_type)
        self._register = register = _register(self._arguments.settings, host, channel)
        service = _service(self._arguments.settings, host, voices, register)
        housekeeping = [asyncio.create_task(work()) for work in (register.report_changes, trim_heap_regularly)]
        host.start()
        try:
            await first_of(host.wait_until_ready(), self._leave.wait())
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
        api = _SpeechApi(service, self._arguments.settings)
        relay = Relay(api.app, api.answers, self._arguments.studio)
        settings = self._arguments.settings
        server = QuietServer(config_of(relay, settings, ws=SocketConnection, lifespan="off", log_config=None))
        server_task = asyncio.create_task(server.serve())
        await asyncio.to_thread(freeze_heap)
        channel.send(Ready())
        await first_of(self._accept.wait(), self._leave.wait())
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


class _SpeechApi:
    """The routes that a speech process answers itself, all that send speech, as an ASGI app."""

    def __init__(self, service: SpeechService, settings: Settings) -> None:
        routers = (
            speech_routes(service),
            batch_routes(service),
            socket_routes(service),
            *fish_speech_routes(service),
            *eleven_routes_of_speech(service),
        )
        self.app = FastAPI(openapi_url=None)
        self.app.state.queues = service.queues
        install_layers(self.app, settings)
        for router in routers:
            self.app.router.routes.extend(router.routes)
        self._routes = [route for router in routers for route in router.routes]

    def answers(self, scope: Scope) -> bool:
        """Whether it answers a request or socket; the studio answers all others, including refusals."""
        meant = below_prefix(scope)
        return any(route.matches(meant)[0] is Match.FULL for route in self._routes)


def _voices(settings: Settings, library_type: type[Library]) -> VoiceResolver:
    """The voices of the library that the studio has opened. Blocking."""
    library = library_type(Path(settings.home), settings.trash_days, bool(settings.api_keys))
    return VoiceResolver(library, read_aliases(Path(settings.voices)))


def _register(settings: Settings, host: EngineHost, channel: Channel) -> ReportingRegister:
    limits = Limits(settings.max_per_caller, settings.requests_per_minute)
    has_limits = settings.max_per_caller is not None or settings.requests_per_minute is not None
    return ReportingRegister(channel, has_limits, limits, Metrics(host, []))


def _service(
    settings: Settings, host: EngineHost, voices: VoiceResolver, register: ReportingRegister
) -> ReportingService:
    """A service like the studio's own, except that the studio counts and lists its takes."""
    fetcher = ClipFetcher(settings.ref_folder, settings.ref_networks)
    return ReportingService(register, host, voices, Retention.of(settings), fetcher)


def _end_with_studio(arguments: StartArguments) -> None:
    """End with the studio, however it ends. The event loop sees the channel close; this is for a loop that is stuck."""
    studio = multiprocessing.parent_process()
    assert studio is not None
    multiprocessing.connection.wait([studio.sentinel])
    shutil.rmtree(Path(arguments.studio).parent, ignore_errors=True)  # in case it was killed and could not
    time.sleep(GRACE_SECONDS + WRITE_SECONDS)
    os._exit(1)
