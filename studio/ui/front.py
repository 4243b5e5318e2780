"""The page's HTML with a head of its own: what a shared link shows of it, and what must be known before it is drawn."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from http.client import OK
from pathlib import Path
from typing import Any

from gradio.route_utils import get_root_url
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine import CheckpointError, ModelCard
from studio.i18n import Phrases
from studio.settings import Settings
from studio.ui import field_labels
from studio.ui.bundle import PageFiles, script_in

_HEAD = b"<head>"
_OTHERS = re.compile(rb'\s*<meta\s+(?:property="og:|name="twitter:)[^>]*>')
"""Gradio speaks of itself in these."""
_LANGUAGE = re.compile(rb'(<html\b)(?:\s+lang="[^"]*")?')
_ONE_LANGUAGE = "<script>Object.defineProperty(navigator,'language',{value:document.documentElement.lang})</script>"
"""Gradio's own words are chosen by this: they shall be in the language of the rest."""

_END_OF_START = """<script>(() => {
  const ask = window.requestAnimationFrame;
  let isOver = false;
  window.requestAnimationFrame = (step) => (isOver ? 0 : ask.call(window, step));
  addEventListener("studio-ready", () => {
    isOver = true;
    window.requestAnimationFrame = ask;
  });
})()</script>"""
"""Gradio's start screen (StatusTracker, 6.31) counts its seconds frame by frame and goes on after it is gone: without
this, a page at rest takes 6 % of a core, not 0.3 %. It took the function with its script; once the page is ready, only
that screen still has this one."""

MOST_KEPT = 16
"""Pages for other languages and addresses; an address is what a request says it is."""
PREVIEW = "preview.png"
PREVIEW_SIZE = (1200, 630)

UNTIL_DRAWN = (
    "body:not([data-area]) .gradio-container{visibility:hidden;animation:anyway 0s 10s forwards}"
    "@keyframes anyway{to{visibility:visible}}"
    "body:not([data-area])::before{content:'Voice Studio';position:fixed;top:1.85rem;"
    "left:calc(max(0px,50vw - 560px) + 4.3rem);font:600 1.3rem system-ui,sans-serif;opacity:.45}"
    "@media(min-width:1600px){body:not([data-area])::before{left:calc(50vw - 700px + 4.3rem)}}"
)
"""Gradio draws the page piece by piece, and each would push the others about: it is seen once all are there,
and after ten seconds in any case."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """Whole and compressed."""

    start: Message
    whole: bytes
    compressed: bytes

    async def send_to(self, request: Request, send: Send) -> None:
        headers = MutableHeaders(raw=list(self.start["headers"]))
        headers.add_vary_header("Accept-Encoding, Accept-Language, Cookie")
        body = self.whole
        if "gzip" in request.headers.get("accept-encoding", ""):
            body = self.compressed
            headers["content-encoding"] = "gzip"
        headers["content-length"] = str(len(body))
        await send({**self.start, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body})


class FrontPage:
    """Pure ASGI, inside of all that decides who may come in: what it has made once it gives to everybody.

    ``files``: the page's own, ``phrases``: what it says, put in as it is sent. Gradio takes a twentieth of a second of
    a slow core for its HTML, each time anew, though nothing in it but the language and the address differs.
    """

    def __init__(self, app: ASGIApp, settings: Settings, files: PageFiles, phrases: Phrases) -> None:
        self._app, self._root_path, self._files, self._phrases = app, settings.root_path, files, phrases
        scripts = f"{_ONE_LANGUAGE}{_END_OF_START}{_slash(settings.root_path)}"
        self._head = f"<style>{UNTIL_DRAWN}</style>{scripts}{_card(settings)}"
        self._kept: OrderedDict[tuple[str, str], _Answer] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in ("/", "/config"):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        language = self._phrases.language_for(request)
        if scope["path"] == "/":
            answer = await self._front(request, receive, language)
        else:
            answer = await self._answer(scope, receive, language)
        await answer.send_to(request, send)

    async def _front(self, request: Request, receive: Receive, language: str) -> _Answer:
        """The page; of its query (``?page=``, ``?deep_link=``) Gradio would make what the studio has not."""
        root = get_root_url(request, "/", self._root_path or None)
        key = language, root
        if key not in self._kept:
            scope = {**request.scope, "query_string": b""}
            answer = await self._answer(scope, receive, language, self._head + self._shown(root, language))
            if answer.start["status"] != OK:
                return answer
            self._kept[key] = answer
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return self._kept[key]

    async def _answer(self, scope: Scope, receive: Receive, language: str, head: str = "") -> _Answer:
        """Gradio's, in this language and with a head of ours."""
        start: list[Message] = []
        body = bytearray()

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
            else:
                body.extend(message.get("body", b""))

        await self._app(scope, receive, hold)
        whole = bytes(body)
        if head:
            whole = _OTHERS.sub(b"", whole).replace(_HEAD, _HEAD + head.encode(), 1)
            whole = _LANGUAGE.sub(rb'\1 lang="%s"' % language.encode(), whole, count=1)
        whole = self._phrases.fill(whole, language, script=self._root_path + self._files.address(script_in(language)))
        return _Answer(start[0], whole, gzip.compress(whole, 5))

    def _shown(self, root: str, language: str) -> str:
        """What is shown of a link to the page; addresses are full, as whoever shows it wants them."""
        width, height = PREVIEW_SIZE
        said = self._phrases.said[language]
        told = {
            "og:type": "website",
            "og:title": field_labels.TITLE,
            "og:description": said["shell.description"],
            "og:url": f"{root}/",
            "og:image": root + self._files.address(PREVIEW),
            "og:image:width": width,
            "og:image:height": height,
            "og:image:alt": said["shell.preview"],
        }
        metas = [_meta("property", name, content) for name, content in told.items()]
        metas.append(_meta("name", "description", said["shell.description"]))
        metas.append(_meta("name", "twitter:card", "summary_large_image"))
        return "".join(metas)


def _meta(kind: str, name: str, content: object) -> str:
    return f'<meta {kind}="{name}" content="{html.escape(str(content))}">'


def _slash(root_path: str) -> str:
    """Sends a browser that opened /studio to /studio/, where the page's relative addresses are right.

    A proxy that takes its path away hides from the server which of the two was opened: a script tells.
    """
    if not root_path:
        return ""
    move = f"if(location.pathname==='{root_path}')location.replace('{root_path}/'+location.search+location.hash)"
    return f"<script>{move}</script>"


def _card(settings: Settings) -> str:
    """What the model says of itself, if that can be read before it is loaded; the page asks again when it is."""
    try:
        card = ModelCard.read(Path(settings.model))
    except (CheckpointError, OSError):
        return ""  # the engine's start says what is wrong with it
    told: dict[str, Any] = {"demo": card.demo, "languages": card.languages}
    return _meta("name", "studio-card", json.dumps(told))
