"""uvicorn, listening on sockets that can be added and removed while it runs; its log hides what is secret."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import math
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from urllib.parse import unquote

import h11
import httpx
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from studio.public_port import PublicPort, Sockets
from studio.settings import Settings

GRACE_SECONDS = 5  # for which a shutdown waits for open streams before it ends them
HEAD_SECONDS = 75.0
"""Time to send a request, from the start of a connection or its last answer; browsers open some in advance."""
HEAD_BYTES = 65_536  # of a request's address and headers: a thousand ids
SEND_SECONDS, SEND_BYTES = 60.0, 16_384
"""Time in which a client must receive so much of what waits for it, or all: an answer keeps its place, its file and its
row as long as it is sent, and one in one piece its memory."""
READ_BYTES = 8192
"""Bytes that a connection reads at a time: 256 KiB, asyncio's number, can be 40,000 pieces of a body or a message. All
others would wait for seconds while these are taken apart, before any key is checked."""
BODY_READ_BYTES = 65_536
"""The same within a body of known length, which is one piece: a clip in 8 KiB at a time takes 5 ms longer."""
TINY_READ_BYTES = 512
"""The same while a chunked body has pieces of fewer than PIECE_BYTES on average, such as of a JSON encoder that writes
each token as it comes: each takes some 25 µs, whatever its size."""
PIECE_BYTES = 64
SPARE_FILES = 256  # that connections leave to the library, to models and to child processes

log = logging.getLogger(__name__)

HIDDEN = "[redacted]"
_GRADIO = "/gradio_api"
_IN_PATHS = re.compile(
    r"(/shared/|/(?:takes|projects)/[^/?\s]+/(?:shares|feeds)/"
    rf"|{_GRADIO}/file(?:/|=|%3D)"
    rf"|{_GRADIO}/(?:stream|heartbeat)/"
    rf"|{_GRADIO}/call/(?:v2/)?[^/?\s]+/)"
    r"[^?\s]+",
    re.IGNORECASE,
)
"""The text before a secret, then the secret, which may have several segments."""
_IN_QUERIES = re.compile(r"([?&;])([^=&;?\s]+)=([^&;\s]*)")
_SECRET_NAMES = frozenset(
    {"session_hash", "event_id", "upload_id", "deep_link", "token", "access_token", "key", "api_key", "password"}
)
_FOREIGN_QUERY = re.compile(r"(https?://(?:(?!https?://)[^?\s])*+)\?\S*")
"""An address from which the studio downloads; its query may contain a signature."""
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_HEADER_LINES = frozenset({"< %s: %s", "> %s: %s"})
"""The format in which websockets logs the headers of a handshake, at the level debug."""
_LOGGERS = ("uvicorn.access", "uvicorn.error", "httpx")


def config_of(app: ASGIApp, settings: Settings, **more: Any) -> uvicorn.Config:
    """The HTTP settings of each process of the studio."""
    logging.getLogger("uvicorn.error").addFilter(_is_a_fault)
    redact_logs()
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        # Explicit, so that it does not depend on installed packages: uvloop has other classes and is not faster.
        loop="asyncio",
        h11_max_incomplete_event_size=HEAD_BYTES,
        http=H11Protocol,  # `Connection`; httptools answers an unusual method with its own message
        ws_per_message_deflate=False,  # a message of 16 KB could become 16 MB before its key is read
        log_level=settings.log_level,
        workers=1,  # whatever WEB_CONCURRENCY says
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        **more,
    )


def most_connections() -> int:
    """Return how many connections this process can hold, after raising its limit of open files as far as it may."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # macOS has another limit below the hard one
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return max(soft - SPARE_FILES, soft // 2) if soft != resource.RLIM_INFINITY else sys.maxsize


class _Reader(h11.Connection):
    """Reads requests, and tells how much of them to take apart at a time."""

    pieces = size = length = 0

    @property
    def read_bytes(self) -> int:
        if self.size < self.pieces * PIECE_BYTES:
            return TINY_READ_BYTES
        return min(BODY_READ_BYTES, max(READ_BYTES, self.length - self.size))  # not beyond the end of the body

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.pieces = self.size = 0
            headers = dict(event.headers)
            self.length = 0 if b"transfer-encoding" in headers else int(headers.get(b"content-length", 0))
        elif isinstance(event, h11.Data):
            self.pieces, self.size = self.pieces + event.chunk_start, self.size + len(event.data)
        return event


class Connection(H11Protocol):
    """uvicorn's connection, which ends if it sends no request: in time, or at once if others need its place. Otherwise
    one client that opens connections and says nothing would use up the files of the process."""

    def __init__(self, silent: dict[Connection, None], most: int, **given: Any) -> None:
        """``silent``: the server's connections without a request, the oldest first; ``most``: of all connections."""
        super().__init__(**given)
        self.conn = _Reader(h11.SERVER, self.conn._max_incomplete_event_size)
        self._silent, self._most = silent, most
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > self._most:
            next(iter(self._silent))._end()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            if isinstance(error := sys.exception(), h11.RemoteProtocolError) and error.error_status_hint == 431:
                msg = f"The address and headers are larger than {HEAD_BYTES >> 10} KiB. Send long lists in parts."
            super().send_400_response(msg)
        else:  # it has been answered already, such as by a 401
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_progress(math.inf)

    def _await_progress(self, most: float) -> None:
        """End it if more than ``most`` bytes are still to be sent."""
        if (left := self.transport.get_write_buffer_size()) > most:
            request_id = (self.scope or {}).get("state", {}).get("request_id")
            log.warning("request %s was cancelled: the client stopped receiving", request_id)
            self._end()
        else:
            self._stalled = self.loop.call_later(SEND_SECONDS, self._await_progress, left - SEND_BYTES)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        self.resume_writing()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Limit the next bytes; end it in time if the last ones began no request, nor belong to one to be answered."""
        is_socket = self not in self.connections
        # It is an attribute of asyncio's transports, but not on Windows.
        self.transport.max_size = READ_BYTES if is_socket else self.conn.read_bytes  # type: ignore[attr-defined]
        if is_socket or (self.cycle is not None and not self.cycle.response_complete):
            self._settle()
        elif self not in self._silent:
            self._silent[self] = None
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._end)

    def _settle(self) -> None:
        self._silent.pop(self, None)
        self._deadline.cancel()

    def _end(self) -> None:
        self._settle()
        self.connections.discard(self)
        self.transport.abort()


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
        self._silent: dict[Connection, None] = {}

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
        most = most_connections()

        def protocol() -> asyncio.Protocol:
            connection = Connection(
                self._silent, most, config=config, server_state=self.server_state, app_state=self.lifespan.state
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
        if self.force_exit:  # by a second Ctrl-C: uvicorn leaves out the app's end, which then ended with a traceback
            for task in self.server_state.tasks:
                task.cancel()
            await self.lifespan.shutdown()


class QuietServer(ListeningServer):
    """Installs no signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _is_a_fault(record: logging.LogRecord) -> bool:
    """Whether uvicorn reports a fault; it also logs a stack for streams that it cancels itself when it stops."""
    return not (record.exc_info and record.exc_info[0] is asyncio.CancelledError)


def redacted(address: str) -> str:
    """A path with its query, or a whole address, without the secrets that give access."""
    address = _FOREIGN_QUERY.sub(rf"\1?{HIDDEN}", address)
    address = _IN_PATHS.sub(rf"\1{HIDDEN}", address)
    return _IN_QUERIES.sub(_redacted_value, address)


def redact_logs() -> None:
    """Redact secrets in the log of this process."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_REDACTION)
    # At the level debug it logs the headers of every answer, including the cookie of a sign-in that was passed on.
    logging.getLogger("httpcore").setLevel(logging.INFO)


class LogRedaction(logging.Filter):
    """Accepts every record, and applies `redacted` to its arguments."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            values = tuple(redacted(str(arg)) if isinstance(arg, str | httpx.URL) else arg for arg in record.args)
            if record.msg in _HEADER_LINES and str(values[0]).lower() in _SECRET_HEADERS:
                values = (values[0], HIDDEN)
            record.args = values
        return True


_REDACTION = LogRedaction()


def _redacted_value(parameter: re.Match[str]) -> str:
    before, name, value = parameter.groups()
    return f"{before}{name}={HIDDEN if unquote(name).lower() in _SECRET_NAMES else value}"
