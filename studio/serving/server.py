"""uvicorn over sockets that it begins and ceases to listen at while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from studio.serving.log_redaction import redact_logs
from studio.serving.public_port import Sockets
from studio.settings import Settings

GRACE_SECONDS = 5
"""How long a shutdown waits for streams under way; then they are ended."""


def config_of(app: ASGIApp, settings: Settings, **more: Any) -> uvicorn.Config:
    """How each process of the studio speaks HTTP."""
    logging.getLogger("uvicorn.error").addFilter(_is_a_fault)
    redact_logs()
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        # Named, so that it is the same whatever is installed: uvloop has other classes and takes as much of a core, and
        # httptools answers an unusual method in its own words.
        loop="asyncio",
        http="h11",
        log_level=settings.log_level,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        **more,
    )


class Listening:
    """Listens at sockets until it is closed."""

    def __init__(self, servers: list[asyncio.Server], protocols: weakref.WeakSet[asyncio.Protocol]) -> None:
        self._servers, self._protocols = servers, protocols

    def close(self) -> None:
        """Take no more connections; those that are idle end, others with the answer that is under way."""
        for server in self._servers:
            server.close()
        for protocol in list(self._protocols):
            protocol.shutdown()  # type: ignore[attr-defined]  # uvicorn's protocols all have it


class ListeningServer(uvicorn.Server):
    """At first it listens nowhere."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.servers: list[asyncio.Server] = []

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets=[])

    async def listen(self, sockets: Sockets, around: Callable[[ASGIApp], ASGIApp] | None = None) -> Listening:
        """Take connections at sockets, which stay open when this ends; ``around`` wraps the app for them."""
        config = self.config
        if around is not None:
            config = copy.copy(config)
            config.loaded_app = around(config.loaded_app)
            config.access_log = False  # whoever passed a request on has logged it
        protocols: weakref.WeakSet[asyncio.Protocol] = weakref.WeakSet()

        def protocol() -> asyncio.Protocol:
            made = config.http_protocol_class(  # type: ignore[call-arg]
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            protocols.add(made)
            return made

        loop = asyncio.get_running_loop()
        servers = [await loop.create_server(protocol, sock=each.dup(), backlog=config.backlog) for each in sockets]
        self.servers += servers
        return Listening(servers, protocols)


class QuietServer(ListeningServer):
    """Leaves signals to others."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _is_a_fault(record: logging.LogRecord) -> bool:
    """Whether uvicorn tells of a fault: of a stream that it has cancelled itself at a stop it logs a stack as well."""
    return not (record.exc_info and record.exc_info[0] is asyncio.CancelledError)
