"""Adds /mcp to a studio: MCP's streamable HTTP, with the studio's keys and host names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import httpx
from anyio import to_thread
from fastapi import APIRouter
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from studio.api.body import MAX_AT_ONCE, MAX_BODY, converted
from studio.api.error_responses import ApiError, describe, error_response
from studio.api.origins import address_of
from studio.api.sending import until_hangup
from studio.api.sessions import surplus
from studio.errors import RetryLater
from studio.services import Studio
from studio.supervisor import end_tasks

PATH = "/mcp"
MISSING = "MCP needs the package mcp: pip install 'fish-voice-studio[mcp]', then start the studio again."
MAX_SESSIONS = 256
"""Maximum sessions of clients of older revisions, some kilobytes each; one more ends an idle one."""
IDLE_SECONDS = 600.0  # after which a session ends; a client that returns begins another by itself

SESSION = b"mcp-session-id"


@dataclass(slots=True)
class _Session:
    caller: str
    used: float  # when its last request ended
    calls: int = 0
    """Its unanswered calls; ``requests``: the streams of other messages, too."""
    requests: int = 0


class McpEndpoint:
    """An ASGI app. The package, which takes a second to import, is loaded at the first request."""

    def __init__(self, root_path: str) -> None:
        self._root_path = root_path
        self._lock = asyncio.Lock()
        self._manager: Any = None
        self._running: asyncio.Task[None] | None = None
        self._sessions: dict[bytes, _Session] = {}

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
        name, is_call = dict(scope["headers"]).get(SESSION), scope["method"] == "POST"
        whole = await receive() if is_call else None  # the body, which `BoundedBodies` passes on in one message
        if whole and len(whole["body"]) > MAX_AT_ONCE:
            try:
                await converted(Request(scope, receive), whole["body"], _check)
            except (ApiError, RetryLater) as error:
                await error_response(describe(error), PATH)(scope, receive, send)
                return
        messages = iter([whole] if whole else [])

        async def replay() -> Message:
            return next(messages, None) or await receive()

        session = self._sessions.get(name or b"") or _Session(scope["state"]["caller"], time.monotonic())

        async def noting(message: Message) -> None:
            """Note a session that begins or ends with this answer."""
            if message["type"] == "http.response.start" and message["status"] < 300:
                begun = dict(message["headers"]).get(SESSION)
                if name is None and begun is not None:
                    self._sessions[begun] = session
                    await self._end_idle(session)
                elif name is not None and scope["method"] == "DELETE":
                    self._sessions.pop(name, None)
            await send(message)

        session.calls, session.requests = session.calls + is_call, session.requests + 1
        try:
            await self._manager.handle_request(scope, replay, noting)
        finally:
            session.calls, session.requests = session.calls - is_call, session.requests - 1
            session.used = time.monotonic()

    async def _end_idle(self, new: _Session) -> None:
        """Forget expired sessions, which the package ends itself; if there are too many with the new one, end others
        that wait for no answer."""
        since = time.monotonic() - IDLE_SECONDS
        self._sessions = {name: each for name, each in self._sessions.items() if each.requests or each.used > since}
        idle = [
            (each.caller, each.used, name) for name, each in self._sessions.items() if each is new or not each.calls
        ]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._manager.handle_request)) as client:
            for name in surplus(idle, MAX_SESSIONS - (len(self._sessions) - len(idle))):
                del self._sessions[name]
                await client.delete(f"http://localhost{PATH}", headers={SESSION: name})

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
            caller = (request.client.host, request.client.port) if request.client else ("unknown", 0)
            app = httpx.ASGITransport(request.scope["app"], raise_app_exceptions=False, client=caller)
            client = httpx.AsyncClient(transport=app, base_url=str(request.base_url), headers=headers, timeout=TIMEOUT)

            async def until_left(calling: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
                try:
                    return await until_hangup(request, calling)
                except ClientDisconnect as error:  # the package logs any other error as a fault of the studio
                    raise ToolError("the client has left") from error

            address = address_of(request, self._root_path)
            return StudioClient(client, address, False, context=context, until_left=until_left)

        server = build_server(lambda _: nullcontext(client_of))
        server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=MAX_BODY,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=2 * MAX_SESSIONS,  # with those whose every session waits for an answer
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


def _check(body: bytes) -> None:
    """Refuse a large message that the package would describe in its refusal, which takes the event loop the longer the
    larger it is. Raises ApiError."""
    from mcp.types import jsonrpc_message_adapter

    try:
        jsonrpc_message_adapter.validate_python(from_json(body), by_name=False)
    except ValueError:
        message = "The body of the request must be one message of JSON-RPC 2.0."
        raise ApiError(400, message, code="invalid_message") from None


def register(studio: Studio) -> None:
    """Add the endpoint to a studio."""
    endpoint = McpEndpoint(studio.settings.root_path)
    routes = APIRouter()
    routes.routes.append(Route(PATH, endpoint, methods=["GET", "POST", "DELETE"], include_in_schema=False))
    studio.additions.routers.append(routes)
    studio.additions.prefixes.append(PATH)
    studio.additions.closers.append(endpoint.close)
