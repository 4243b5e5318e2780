"""Sends a browser that opened /studio to /studio/, where the page's relative addresses are right."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEAD = b"<head>"


class TrailingSlash:
    """Pure ASGI. A proxy that takes its path away hides from the server which of the two was opened: a script tells."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        move = f"if(location.pathname==='{root_path}')location.replace('{root_path}/'+location.search+location.hash)"
        self._script = f"<script>{move}</script>".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/":
            await self._app(scope, receive, send)
            return
        start: list[Message] = []
        page = bytearray()

        async def send_whole(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
                return
            page.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            whole = bytes(page).replace(_HEAD, _HEAD + self._script, 1)
            headers = MutableHeaders(scope=start[0])
            if "content-length" in headers:
                headers["content-length"] = str(len(whole))
            await send(start[0])
            await send({"type": "http.response.body", "body": whole})

        await self._app(scope, receive, send_whole)
