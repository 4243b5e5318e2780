"""Restricts Gradio's routes to those that the page and gradio_client need."""

from __future__ import annotations

import json
import logging
import re
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fastapi import Request
from gradio.route_utils import FnIndexInferError
from starlette.datastructures import QueryParams
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.ui.call_queue import CallQueue

log = logging.getLogger(__name__)

OFFERED = re.compile(
    r"/|/config/?|/theme\.css|/favicon\.ico|/manifest\.json|/pwa_icon|/robots\.txt|/(?:assets|static)/.+"
    r"|/gradio_api/(?:info/?|openapi\.json|app_id/?|startup-events|theme\.css|heartbeat/[^/]+|reset/?|cancel"
    r"|queue/(?:join|data|status)|(?:run|api|call|call/v2)/[^/]+/?|(?:call|call/v2)/[^/]+/[^/]+)"
)
"""Uploads and files are routes of the API. Disabled, because they are not needed: the proxy for other sites, component
functions, saved sessions, screen recordings, media streams, monitoring, vibe mode."""
CANCEL = "/gradio_api/cancel"
_HEARTBEAT = "/gradio_api/heartbeat/"
_ANSWER = re.compile(r"/gradio_api/call/(?:v2/)?[^/]+/([^/]+)")


def app_options(queue: CallQueue, *outer: Middleware) -> dict[str, Any]:
    """The ``app_kwargs`` of a page that Gradio mounts or launches; ``outer``: middleware before this one."""
    handlers = dict.fromkeys((KeyError, ValueError, TypeError, FnIndexInferError), _no_such_call)
    return {"middleware": [*outer, Middleware(OfferedRoutes, queue=queue)], "exception_handlers": handlers}


class OfferedRoutes:
    """ASGI middleware of Gradio's app. Only the caller of a call can read its answer or cancel it."""

    def __init__(self, app: ASGIApp, queue: CallQueue) -> None:
        self._app, self._queue = app, queue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # Gradio has none
            await send({"type": "websocket.close", "code": 1008, "reason": "no WebSocket is served here"})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not OFFERED.fullmatch(scope["path"]):
            await PlainTextResponse("Not found", 404)(scope, receive, send)
        elif scope["path"] == CANCEL:
            await (await self._cancel(Request(scope, receive)))(scope, receive, send)
        else:
            with self._allowed(scope) as is_allowed:
                await (self._app if is_allowed else _no_answer())(scope, receive, _with_status(scope, send))

    def _allowed(self, scope: Scope) -> AbstractContextManager[bool]:
        """Whether the calls and sessions in a request belong to its caller, while it is answered."""
        path, owner = scope["path"], scope["state"]["owner_filter"]
        if scope["method"] != "POST" and (answer := _ANSWER.fullmatch(path)) is not None:
            return self._queue.reading(owner, answer[1])
        if path == "/gradio_api/queue/data":
            return self._queue.reading(owner, QueryParams(scope["query_string"]).get("session_hash", ""))
        session = path.removeprefix(_HEARTBEAT)
        return nullcontext(session == path or not self._queue.is_foreign(owner, session))

    async def _cancel(self, request: Request) -> Response:
        """Replaces Gradio's route. The studio's own layers have read and limited the body."""
        try:
            name = json.loads(await request.body())["event_id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            name = None
        if request.method != "POST" or not isinstance(name, str):
            return JSONResponse({"detail": "Send a POST with a JSON object that has an event_id."}, 400)
        if await self._queue.cancel(request.state.owner_filter, name):
            return JSONResponse({"success": True})
        return _no_answer()


def _with_status(scope: Scope, send: Send) -> Send:
    """Sends 422 in place of Gradio's 500 for a call that `StudioBlocks` has marked as refused."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 500 and scope["state"].get("is_refused"):
            message = {**message, "status": 422}
        await send(message)

    return send_on


def _no_answer() -> Response:
    return JSONResponse({"detail": "There is no such call, its answer has expired, or another request reads it."}, 404)


async def _no_such_call(request: Request, error: Exception) -> Response:
    log.warning("a call through Gradio was refused: %r", error)
    message = "Unknown endpoint or wrong arguments; see GET /gradio_api/info."
    return JSONResponse({"detail": message}, 400)
