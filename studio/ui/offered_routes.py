"""Which of Gradio's routes are reachable: those of the page and of gradio_client, and none of its others."""

from __future__ import annotations

import json
import logging
import re
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
"""Uploads and files are the API's own routes. Not offered, since nobody here needs them: the proxy for other sites,
components' functions, saved states of sessions, recordings of the screen, streams of media, monitoring, vibe mode."""
_ANSWER = re.compile(r"/gradio_api/call/(?:v2/)?[^/]+/([^/]+)")


def of_offered_routes(queue: CallQueue, *outer: Middleware) -> dict[str, Any]:
    """The ``app_kwargs`` of a page that Gradio mounts or launches; ``outer`` middleware comes before ours."""
    handlers = dict.fromkeys((KeyError, ValueError, TypeError, FnIndexInferError), _no_such_call)
    return {"middleware": [*outer, Middleware(OfferedRoutes, queue=queue)], "exception_handlers": handlers}


class OfferedRoutes:
    """ASGI middleware of Gradio's app. Only its caller can fetch a call's answer, or cancel the call.

    The page has no query: of ``?deep_link=`` Gradio would load a state that somebody saved.
    """

    def __init__(self, app: ASGIApp, queue: CallQueue) -> None:
        self._app, self._queue = app, queue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # Gradio has none
            await send({"type": "websocket.close", "code": 1008, "reason": "there is no such socket"})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not OFFERED.fullmatch(scope["path"]):
            await PlainTextResponse("Not found", 404)(scope, receive, send)
        else:
            names, receive = await _named(scope, receive)
            if all(self._queue.is_of(scope["state"]["sees"], name) for name in names):
                query = b"" if scope["path"] in ("/", "/config", "/config/") else scope["query_string"]
                await self._app({**scope, "query_string": query}, receive, send)
            else:
                message = "There is no such call of yours, or its answer has expired."
                await JSONResponse({"detail": message}, 404)(scope, receive, send)


async def _named(scope: Scope, receive: Receive) -> tuple[list[str], Receive]:
    """The calls and sessions that a request asks for or cancels, and the ``receive`` to use from now on."""
    path = scope["path"]
    if scope["method"] != "POST" and (answer := _ANSWER.fullmatch(path)) is not None:
        return [answer[1]], receive
    if path == "/gradio_api/queue/data":
        return [QueryParams(scope["query_string"]).get("session_hash", "")], receive
    if path != "/gradio_api/cancel":
        return [], receive
    whole = await receive()  # the studio's own layers have read it, and pass it on in one piece

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    messages = [whole]
    try:
        body = json.loads(whole.get("body", b""))
        return [str(body[name]) for name in ("session_hash", "event_id") if body.get(name)], again
    except (ValueError, AttributeError):
        return [], again  # Gradio refuses it


async def _no_such_call(request: Request, error: Exception) -> Response:
    log.warning("a call through Gradio was refused: %r", error)
    message = "There is no such endpoint, or it has other arguments; GET /gradio_api/info describes all."
    return JSONResponse({"detail": message}, 400)
