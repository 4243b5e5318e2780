"""Passes requests that a speech process does not answer itself on to the studio's own process, unchanged."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import httpx
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.error_responses import ApiError, error_response
from studio.server import redacted

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
IDLE_CONNECTIONS = 32
CALLER = b"x-studio-caller"
"""A header of forwarded requests: the client's scheme and address, as JSON. Removed from requests of clients."""
_OF_ONE_CONNECTION = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect"}
)
_OF_THE_WAY_BACK = _OF_ONE_CONNECTION | {b"date"}  # uvicorn sets the date itself

Headers = list[tuple[bytes, bytes]]


class Relay:
    """ASGI. ``app`` answers requests that ``is_own`` accepts; others go through the socket at ``path``, streamed both
    ways."""

    def __init__(self, app: ASGIApp, is_own: Callable[[Scope], bool], path: str) -> None:
        self._app, self._is_own = app, is_own
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS)
        self._studio = httpx.AsyncHTTPTransport(uds=path, limits=limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_own(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":  # the page uses none
            await send({"type": "websocket.close", "code": 1008, "reason": "there is no such socket"})
        else:
            await self._forward(scope, receive, send)

    async def aclose(self) -> None:
        await self._studio.aclose()

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on until it is answered or the client disconnects, which ends it in the studio too."""
        body = _Body(receive)
        exchange = asyncio.ensure_future(self._exchange(_request(scope, body), scope, receive, send))
        disconnection = asyncio.ensure_future(body.disconnected())
        try:
            await asyncio.wait({exchange, disconnection}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (exchange, disconnection):
                task.cancel()
            await asyncio.wait({exchange, disconnection})
        if not exchange.cancelled():
            exchange.result()

    async def _exchange(self, request: httpx.Request, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False
        try:
            response = await self._studio.handle_async_request(request)
            async with aclosing(response):
                headers = _forwarded_headers(response.headers.raw, _OF_THE_WAY_BACK)
                await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
                has_started = True
                async for piece in response.stream:  # type: ignore[union-attr]
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except ClientDisconnect:
            return
        except httpx.TransportError as error:
            cause = f"{type(error).__name__}: {error}"
            log.warning("%s %s was not passed on: %s", scope["method"], redacted(scope["path"]), cause)
            if not has_started:  # else the answer stays incomplete, and uvicorn closes the connection
                message = "the studio's own process does not answer; try again in a moment"
                await error_response(ApiError(503, message, headers={"Retry-After": "2"}), scope["path"])(
                    scope, receive, send
                )


class ForwardedClient:
    """ASGI, in the studio's process: gives a forwarded request the scheme and address of its client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = next((value for name, value in scope.get("headers", ()) if name == CALLER), None)
        if caller is not None:
            scheme, client = json.loads(caller)
            headers = [pair for pair in scope["headers"] if pair[0] != CALLER]
            scope = dict(scope) | {"scheme": scheme, "client": client and tuple(client), "headers": headers}
        await self._app(scope, receive, send)


class _Body:
    """The received body of a request, piece by piece, and then the client's disconnection."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._complete = asyncio.Event()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        while True:
            message: Message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            yield message.get("body", b"")
            if not message.get("more_body"):
                self._complete.set()
                return

    def mark_complete(self) -> None:
        self._complete.set()

    async def disconnected(self) -> None:
        await self._complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _request(scope: Scope, body: _Body) -> httpx.Request:
    headers = _forwarded_headers(scope["headers"], _OF_ONE_CONNECTION | {CALLER})
    headers.append((CALLER, json.dumps([scope["scheme"], scope["client"]]).encode()))
    names = {name for name, _ in scope["headers"]}
    has_body = b"transfer-encoding" in names or b"content-length" in names
    if not has_body:
        body.mark_complete()
    query = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    timeout = {"connect": CONNECT_SECONDS, "read": None, "write": None, "pool": None}
    return httpx.Request(
        scope["method"],
        "http://studio/",
        headers=headers,
        content=body.pieces() if has_body else None,
        extensions={"target": target, "timeout": timeout},
    )


def _forwarded_headers(headers: Headers, excluded: frozenset[bytes]) -> Headers:
    """The headers meant for the other end and not only for this connection."""
    connection_header = b",".join(value for name, value in headers if name.lower() == b"connection")
    excluded_names = excluded | {name.strip().lower() for name in connection_header.split(b",")}
    return [(name, value) for name, value in headers if name.lower() not in excluded_names]
