"""uvicorn, listening on sockets that can be added and removed while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import uvicorn
from starlette.types import ASGIApp

from studio.serving.log_redaction import redact_logs
from studio.serving.public_port import PublicPort, Sockets
from studio.settings import Settings

GRACE_SECONDS = 5
"""Seconds for which a shutdown waits for open streams before it ends them."""


def config_of(app: ASGIApp, settings: Settings, **more: Any) -> uvicorn.Config:
    """The HTTP settings of each process of the studio."""
    logging.getLogger("uvicorn.error").addFilter(_is_a_fault)
    redact_logs()
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        # Explicit, so that it does not depend on installed packages: uvloop has other classes and is not faster, and
        # httptools answers an unusual method with its own message.
        loop="asyncio",
        http="h11",
        log_level=settings.log_level,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        **more,
    )


class Listening:
    """Listens on sockets until it is closed."""

    def __init__(self, servers: list[asyncio.Server], protocols: weakref.WeakSet[asyncio.Protocol]) -> None:
        self._servers, self._protocols = servers, protocols

    def close(self) -> None:
        """Accept no more connections; idle ones end now, others after their current answer."""
        for server in self._servers:
            server.close()
        for protocol in list(self._protocols):
            protocol.shutdown()  # type: ignore[attr-defined]  # uvicorn's protocols all have it


class ListeningServer(uvicorn.Server):
    """A server that does not listen at first."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.servers: list[asyncio.Server] = []

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets=[])

    async def listen(self, sockets: Sockets, wrapper: Callable[[ASGIApp], ASGIApp] | None = None) -> Listening:
        """Accept connections on sockets, which stay open when this ends; ``wrapper`` wraps the app for them."""
        config = self.config
        if wrapper is not None:
            config = copy.copy(config)
            config.loaded_app = wrapper(config.loaded_app)
            config.access_log = False  # the process that passed on a request has logged it
        protocols: weakref.WeakSet[asyncio.Protocol] = weakref.WeakSet()

        def protocol() -> asyncio.Protocol:
            connection = config.http_protocol_class(  # type: ignore[call-arg]
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            protocols.add(connection)
            return connection

        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(protocol, sock=socket.dup(), backlog=config.backlog) for socket in sockets]
        self.servers += servers
        return Listening(servers, protocols)


class FrontEnds(Protocol):
    """Processes that accept connections in place of the studio's own."""

    async def begin(self, server: ListeningServer, port: PublicPort) -> None:
        """Start listening; returns immediately."""

    async def stop(self) -> None:
        """End all processes."""


class StudioServer(ListeningServer):
    """The studio's own process: accepts all connections, except for those of its front ends."""

    def __init__(
        self, config: uvicorn.Config, port: PublicPort, serving: threading.Event, front_ends: FrontEnds | None = None
    ) -> None:
        """``serving`` is set once it listens, or cannot."""
        super().__init__(config)
        self._port, self._serving, self._front_ends = port, serving, front_ends

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn, do not raise the stop signal again: that would end the process before the rest of its
        shutdown, with an exit code that looks like a failure."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        try:
            await (self._front_ends.begin(self, self._port) if self._front_ends else self.listen(self._port.first))
        finally:  # else the engine's start would keep waiting, and a stop would wait for that
            self._serving.set()

    async def shutdown(self, sockets: object = None) -> None:
        self._port.close()
        if self._front_ends:
            await self._front_ends.stop()
        await super().shutdown()


class QuietServer(ListeningServer):
    """Installs no signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _is_a_fault(record: logging.LogRecord) -> bool:
    """Whether uvicorn reports a fault; it also logs a stack for streams that it cancels itself when it stops."""
    return not (record.exc_info and record.exc_info[0] is asyncio.CancelledError)
