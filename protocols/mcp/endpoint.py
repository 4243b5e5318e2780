"""Adds /mcp to a studio: MCP's streamable HTTP, with the studio's keys and host names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import httpx
from anyio import to_thread
from fastapi import APIRouter
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from studio.api.body import MAX_BODY
from studio.api.error_responses import ApiError, error_response
from studio.api.sending import until_hangup
from studio.services import Studio
from studio.supervisor import end_tasks

PATH = "/mcp"
MISSING = "MCP needs the package mcp: pip install 'fish-voice-studio[mcp]', then start the studio again."
MAX_SESSIONS = 256
"""Maximum sessions of clients of older revisions, which are few bytes each; a caller may hold half of them."""
IDLE_SECONDS = 600.0  # after which a session ends; a client that returns begins another by itself

SESSION = b"mcp-session-id"
TOO_MANY = f"You have {MAX_SESSIONS // 2} open MCP sessions, the maximum; close some with DELETE, or try again later."


class McpEndpoint:
    """An ASGI app. The package, which takes a second to import, is loaded at the first request."""

    def __init__(self, root_path: str) -> None:
        self._root_path = root_path
        self._lock = asyncio.Lock()
        self._manager: Any = None
        self._running: asyncio.Task[None] | None = None
        self._sessions: dict[bytes, tuple[str, float]] = {}
        """The caller of each session, and when it last used it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if find_spec("mcp") is None:
            await error_response(ApiError(501, MISSING, code="not_offered"), PATH)(scope, receive, send)
            return
        async with self._lock:
            if self._manager is None:
                manager = await to_thread.run_sync(self._made)
                started = asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, started))
                await started.wait()
                self._manager = manager
        caller, now = scope["state"]["caller"], time.monotonic()
        session = dict(scope["headers"]).get(SESSION)
        self._sessions = {name: seen for name, seen in self._sessions.items() if seen[1] > now - IDLE_SECONDS}
        if session in self._sessions:
            self._sessions[session] = caller, now
        elif session is None and sum(each == caller for each, _ in self._sessions.values()) >= MAX_SESSIONS // 2:
            refusal = ApiError(429, TOO_MANY, code="rate_limit_exceeded", headers={"Retry-After": "60"})
            await error_response(refusal, PATH)(scope, receive, send)
            return

        async def noting(message: Message) -> None:
            """Remember a session that begins or ends with this answer."""
            if message["type"] == "http.response.start" and message["status"] < 300:
                begun = dict(message["headers"]).get(SESSION)
                if session is None and begun is not None:
                    self._sessions[begun] = caller, now
                elif session is not None and scope["method"] == "DELETE":
                    self._sessions.pop(session, None)
            await send(message)

        await self._manager.handle_request(scope, receive, noting)

    def _made(self) -> Any:
        from mcp.server.mcpserver import Context
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.server.transport_security import TransportSecuritySettings

        from protocols.mcp.tools import TIMEOUT, StudioClient, build_server

        def client_of(context: Context) -> StudioClient:
            """Calls the app that received the call's request, as its sender: with its key, address and host name."""
            request = context.request_context.request
            assert request is not None, "every call comes in a request"
            headers = {name: value for name in ("authorization", "host") if (value := request.headers.get(name))}
            address = (request.client.host, request.client.port) if request.client else ("unknown", 0)
            app = httpx.ASGITransport(request.scope["app"], raise_app_exceptions=False, client=address)
            base = f"{request.url.scheme}://{request.headers.get('host') or 'localhost'}"
            client = httpx.AsyncClient(transport=app, base_url=base, headers=headers, timeout=TIMEOUT)

            async def until_left(calling: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
                try:
                    return await until_hangup(request, calling)
                except ClientDisconnect as error:  # the package logs any other error as a fault of the studio
                    raise ToolError("the client has left") from error

            return StudioClient(client, base + self._root_path, False, context=context, until_left=until_left)

        server = build_server(lambda _: nullcontext(client_of))
        server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=MAX_BODY,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MAX_SESSIONS,
            # The studio's own middleware has checked host and origin.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        return server.session_manager

    @staticmethod
    async def _run(manager: Any, started: asyncio.Event) -> None:
        async with manager.run():
            started.set()
            await asyncio.Event().wait()

    async def close(self) -> None:
        if self._running is not None:
            await end_tasks(self._running)


def register(studio: Studio) -> None:
    """Add the endpoint to a studio."""
    endpoint = McpEndpoint(studio.settings.root_path)
    routes = APIRouter()
    routes.routes.append(Route(PATH, endpoint, methods=["GET", "POST", "DELETE"], include_in_schema=False))
    studio.additions.routers.append(routes)
    studio.additions.prefixes.append(PATH)
    studio.additions.closers.append(endpoint.close)
