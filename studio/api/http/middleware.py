"""What every HTTP exchange gets: a request id, an address without NUL, and on our own routes never a cached answer."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.http.errors import describe, error_response
from studio.errors import InvalidRequest
from studio.speech.request import new_request_id
from studio.strings import check_strings

EXPOSED = (
    "etag",
    "x-request-id",
    "retry-after",
    "x-seed",
    "x-voice",
    "x-voice-revision",
    "x-queue-ms",
    "x-first-audio-ms",
    "x-sample-rate",
)
"""Response headers that scripts of other origins may read."""


class RequestIds:
    """Pure ASGI, so that streams pass untouched: names each request, in scope["state"] and the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        ours = scope["path"].startswith("/v1/") or scope["path"] == "/health"

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if ours:
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, send_named)


class CleanAddresses:
    """Pure ASGI: an address whose path or query has a NUL is refused; other bytes that are no text are replaced."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                check_strings(scope["path"], "path")
                if b"%00" in scope["query_string"]:
                    check_strings(dict(parse_qsl(scope["query_string"].decode("latin-1"))))
            except InvalidRequest as error:
                await error_response(describe(error))(scope, receive, send)
                return
        await self._app(scope, receive, send)
