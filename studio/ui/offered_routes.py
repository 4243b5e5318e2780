"""Which of Gradio's routes are reachable: those of the page and of gradio_client, and none of its others."""

from __future__ import annotations

import re

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

OFFERED = re.compile(
    r"/|/config/?|/theme\.css|/favicon\.ico|/manifest\.json|/pwa_icon|/robots\.txt|/(?:assets|static)/.+"
    r"|/gradio_api/(?:info/?|openapi\.json|app_id/?|startup-events|theme\.css|heartbeat/[^/]+|reset/?|cancel"
    r"|queue/(?:join|data|status)|(?:run|api|call|call/v2)/[^/]+/?|(?:call|call/v2)/[^/]+/[^/]+)"
)
"""Uploads and files are the API's own routes. Not offered, since nobody here needs them: the proxy for other sites,
components' functions, saved states of sessions, recordings of the screen, streams of media, monitoring, vibe mode."""


class OfferedRoutes:
    """ASGI middleware of Gradio's app.

    The page has no query either: of ``?deep_link=`` Gradio would load a state that somebody saved.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # Gradio has none
            await send({"type": "websocket.close", "code": 1008, "reason": "there is no such socket"})
        elif scope["type"] == "http" and not OFFERED.fullmatch(scope["path"]):
            await PlainTextResponse("Not found", 404)(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] in ("/", "/config", "/config/"):
            await self._app({**scope, "query_string": b""}, receive, send)
        else:
            await self._app(scope, receive, send)
