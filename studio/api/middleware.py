"""Middleware of all HTTP requests: request ids, checked paths, limited bodies and times, framing and cache headers."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import anyio
import httpx
import numpy as np
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.access import Access
from studio.api.body import MAX_BODY, converted, read_body
from studio.api.error_responses import (
    ApiError,
    UnexpectedErrors,
    below_prefix,
    describe,
    error_response,
    install_errors,
    is_api,
)
from studio.errors import InvalidRequest, RetryLater
from studio.settings import Settings, on_space
from studio.speech.request import new_request_id
from studio.unicode_text import check_strings

EXPOSED = (
    "etag", "x-request-id", "retry-after", "x-seed", "x-voice",
    "x-voice-revision", "x-queue-ms", "x-first-audio-ms", "x-sample-rate", "x-model",
)  # fmt: skip
"""Response headers that scripts of other origins may read."""
MAX_CALL = 4 * 1024 * 1024
"""Bytes of a Gradio call, which stays in memory until it has run; files are uploaded separately."""
MAX_LISTS, MAX_VALUES = 1000, 25_000
"""Lists and objects in a call, of which an endpoint needs a few, and values in them: 20,000 texts. Gradio parses and
copies calls in the event loop, each list for 4 µs, each value for 0.5 µs."""
_HOST = re.compile(rb"[A-Za-z0-9._-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")
HUB_PAGES = ("https://huggingface.co", "https://*.hf.space")
"""Sites that show Spaces in frames."""


class Layer:
    """ASGI middleware around an app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app


class ResponseHeaders(Layer):
    """ASGI middleware: adds a request id, also in scope["state"], prevents caching of API answers, and restricts the
    sites that may show a page in a frame.

    Another site could cover the frame with its own content and trick a signed-in visitor into clicking hidden buttons.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app)
        # Not "*", which lets any page call the API with a key, but not use the visitor's sign-in.
        origins = [origin for origin in settings.cors_origins if origin != "*"]
        hub = HUB_PAGES if on_space() else ()
        self._policy = " ".join(["frame-ancestors 'self'", *origins, *hub])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        is_private = is_api(scope["path"]) or scope["path"] == "/health"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                if is_private:
                    headers.setdefault("cache-control", "no-store")
                if headers.get("content-type", "").lower().startswith("text/html"):
                    policy = headers.get("content-security-policy")
                    headers["content-security-policy"] = f"{policy}; {self._policy}" if policy else self._policy
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Prefixes(Layer):
    """ASGI middleware: moves requests at the root that can only mean another protocol below its prefix."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope if scope["type"] == "lifespan" else below_prefix(scope), receive, send)


class CleanAddresses(Layer):
    """ASGI middleware: refuses a path or query with NUL; other bytes that are not text are replaced.

    It drops a malformed X-Forwarded-Host, and X-Gradio-Server, which could make answers point to another server.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [pair for pair in scope["headers"] if _is_clean(*pair)]}
            try:
                check_strings(scope["path"], "path")
                if b"%00" in scope["query_string"]:
                    check_strings(dict(parse_qsl(scope["query_string"].decode("latin-1"))))
            except InvalidRequest as error:
                await error_response(describe(error), scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_clean(name: bytes, value: bytes) -> bool:
    if name == b"x-forwarded-host":
        try:
            hosts = [_HOST.fullmatch(host.strip()) for host in value.split(b",", 9)]  # more are malformed
            return all(host and httpx.URL(f"http://{host[0].decode()}") for host in hosts)  # as Gradio reads it
        except httpx.InvalidURL:
            return False
    return name != b"x-gradio-server"


class HeadAsGet(Layer):
    """ASGI middleware: answers HEAD like GET, without the body, which players and download managers request first.

    What GET would send piece by piece is cancelled after its headers.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
            elif message.get("more_body"):
                rest.cancel()

        with anyio.CancelScope() as rest:
            await self._app({**scope, "method": "GET", "is_head": True}, receive, send_headers)


class BoundedBodies(Layer):
    """ASGI middleware: reads and checks bodies for Gradio and MCP, which would parse any in the event loop. The
    routes of the studio limit theirs themselves."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_none, path = scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"), scope.get("path", "")
        if has_none or is_api(path) or path == "/gradio_api/upload":
            await self._app(scope, receive, send)
            return
        try:
            limit = MAX_CALL if path.startswith("/gradio_api/") else MAX_BODY  # for MCP
            body = await read_body(request := Request(scope, receive), limit)
            await converted(request, body, _check_call)
        except (ApiError, RetryLater) as error:
            await error_response(describe(error), path)(scope, receive, send)
            return
        except ClientDisconnect:
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(messages, None) or await receive()

        await self._app(scope, replay, send)


def _check_call(body: bytes) -> None:
    """Check the cost of a call outside its texts. Raises ApiError."""
    signs = np.frombuffer(body.replace(rb"\\", b"").replace(rb"\"", b""), np.uint8)
    signs = signs[np.cumsum(signs == ord('"'), dtype=np.uint8) % 2 == 0]
    lists, values = (sum(int(np.count_nonzero(signs == sign)) for sign in kind) for kind in (b"[{", b",:"))
    if lists > MAX_LISTS or values > MAX_VALUES or b"\0" in body:  # NUL is in UTF-16, which Gradio would parse, too
        message = f"A call may have {MAX_LISTS} lists and objects and {MAX_VALUES} values at most, in UTF-8."
        raise ApiError(400, message, code="json_too_complex")


def install_layers(app: FastAPI, settings: Settings) -> None:
    """Add the error handlers and the middleware; the last one is the outermost."""
    install_errors(app)
    app.add_middleware(HeadAsGet)
    app.add_middleware(BoundedBodies)
    app.add_middleware(CleanAddresses)
    app.add_middleware(Access, settings=settings)
    app.add_middleware(UnexpectedErrors)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(settings.cors_origins),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=list(EXPOSED),
    )
    app.add_middleware(ResponseHeaders, settings=settings)
    app.add_middleware(Prefixes)
