"""The page's HTML with a custom head: the preview of links to it, and data needed before it is drawn."""

from __future__ import annotations

import asyncio
import gzip
import html
import json
import re
from collections import OrderedDict
from collections.abc import Callable
from http.client import OK
from pathlib import Path
from typing import Any

from anyio import to_thread
from gradio.route_utils import get_root_url
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine import CheckpointError, ModelCard
from studio.i18n import Phrases
from studio.ui.bundle import GRADIO, STYLES, PageFiles, script_in
from studio.ui.gradio_bundle import START, START_STYLES

_HEAD = b"<head>"
_OTHERS = re.compile(rb'(?<!\s)\s*+<meta\s+(?:property="og:|name="twitter:)[^<>]*>')
"""Tags in which Gradio describes itself."""
_LANGUAGE = re.compile(rb'(<html\b)(?:\s+lang="[^"]*")?')
_ONE_LANGUAGE = "<script>Object.defineProperty(navigator,'language',{value:document.documentElement.lang})</script>"
"""Makes Gradio's own texts use the page's language."""

_END_OF_START = """<script>(() => {
  const ask = window.requestAnimationFrame;
  let isOver = false;
  window.requestAnimationFrame = (step) => (isOver ? 0 : ask.call(window, step));
  addEventListener("studio-ready", () => {
    isOver = true;
    window.requestAnimationFrame = ask;
  });
})()</script>"""
"""Gradio's start screen (StatusTracker, 6.31) counts seconds frame by frame and does not stop when it is removed: an
idle page would take 6 % of a core instead of 0.3 %. It keeps this replacement of requestAnimationFrame, which does
nothing once the page is ready; everything else then uses the original."""

TITLE = "Voice Studio"
CACHED = frozenset({"/", "/config", "/gradio_api/info", "/gradio_api/openapi.json", "/openapi.json"})
MAX_CACHED = 32
"""Cached answers: by path, language and model, and as they are sent, by the request's address."""
_ANYWHERE = "studio.invalid"
"""The host in cached answers."""
PREVIEW = "preview.png"
PREVIEW_SIZE = (1200, 630)

UNTIL_DRAWN = (
    "body:not([data-area]) .gradio-container{visibility:hidden;animation:anyway 0s 10s forwards}"
    "@keyframes anyway{to{visibility:visible}}"
    "body:not([data-area])::before{content:'Voice Studio';position:fixed;top:1.85rem;"
    "left:calc(max(0px,50vw - 560px) + 4.3rem);font:600 1.3rem system-ui,sans-serif;opacity:.45}"
    "@media(min-width:1600px){body:not([data-area])::before{left:calc(50vw - 700px + 4.3rem)}}"
)
"""Hides the page until Gradio has drawn all of its parts, which would shift one another; at most for ten seconds."""


class FrontPage:
    """ASGI middleware, inside the access layers, that caches the page and the descriptions for all callers.

    Each takes 10 to 50 ms of a slow core and depends only on the language and the model: the address in it, which comes
    from the request, is inserted afterwards."""

    def __init__(
        self, app: ASGIApp, root_path: str, files: PageFiles, phrases: Phrases, model: Callable[[], str]
    ) -> None:
        """``model``: the model that is loaded or being loaded."""
        self._app, self._root_path, self._files, self._phrases, self._model = app, root_path, files, phrases, model
        self._head = f"<style>{UNTIL_DRAWN}</style>{_ONE_LANGUAGE}{_END_OF_START}{_slash(root_path)}"
        self._anywhere = f"http://{_ANYWHERE}{root_path}"
        self._pages: OrderedDict[tuple[str, str, str], tuple[Message, bytes]] = OrderedDict()
        self._bodies: OrderedDict[tuple[bytes, str, bool], bytes] = OrderedDict()
        self._building = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").rstrip("/") or "/"
        if scope["type"] != "http" or scope["method"] != "GET" or path not in CACHED:
            await self._app(scope, receive, send)
            return
        request = Request({**scope, "path": "/"})
        key = path, self._phrases.language_for(request), self._model()
        root = get_root_url(request, "/", self._root_path or None)
        is_zipped = "gzip" in request.headers.get("accept-encoding", "")
        async with self._building:  # once and in one thread, even if a thousand ask for it
            start, page = self._pages.get(key) or await self._built(scope, receive, *key)
            if start["status"] == OK:
                _keep(self._pages, key, (start, page))
            if (body := self._bodies.get((page, root, is_zipped))) is None:
                body = page.replace(self._anywhere.encode(), root.encode())
                body = await to_thread.run_sync(gzip.compress, body, 5) if is_zipped else body
                _keep(self._bodies, (page, root, is_zipped), body)
        headers = MutableHeaders(raw=list(start["headers"]))
        headers.add_vary_header("Accept-Encoding, Accept-Language, Cookie")
        if is_zipped:
            headers["content-encoding"] = "gzip"
        headers["content-length"] = str(len(body))
        await send({**start, "headers": headers.raw})
        await send({"type": "http.response.body", "body": body})

    async def _built(
        self, scope: Scope, receive: Receive, path: str, language: str, model: str
    ) -> tuple[Message, bytes]:
        """The answer in this language, at `_ANYWHERE`. Its query is ignored: it selects features that the
        studio lacks, and with ``?deep_link=`` Gradio would load a saved state."""
        start: list[Message] = []
        body = bytearray()

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
            else:
                body.extend(message.get("body", b""))

        headers = [(b"host", _ANYWHERE.encode())]
        await self._app({**scope, "scheme": "http", "query_string": b"", "headers": headers}, receive, hold)
        page = bytes(body)
        script = self._root_path + self._files.address(script_in(language))
        if path == "/":
            head = self._head + await to_thread.run_sync(_model_card, model) + self._preview(self._anywhere, language)
            page = _OTHERS.sub(b"", page).replace(_HEAD, _HEAD + head.encode(), 1)
            page = self._with_our_bundles(page, script)
            page = _LANGUAGE.sub(rb'\1 lang="%s"' % language.encode(), page, count=1)
        return start[0], self._phrases.fill(page, language, script=script)

    def _with_our_bundles(self, page: bytes, script: str) -> bytes:
        """One script and one style sheet in place of Gradio's some fifty; our script is requested along with them."""

        def address(name: str) -> str:
            return self._root_path + self._files.address(name)

        ours = f'<script type="module" src="{address(GRADIO)}"></script><link rel="modulepreload" href="{script}">'
        page = re.sub(START.pattern.encode(), lambda _: ours.encode(), page, count=1)
        styles = f'<link rel="stylesheet" href="{address(STYLES)}">'
        return re.sub(START_STYLES.pattern.encode(), lambda _: styles.encode(), page, count=1)

    def _preview(self, root: str, language: str) -> str:
        """Meta tags for previews of a link to the page, with absolute addresses."""
        width, height = PREVIEW_SIZE
        texts = self._phrases.texts[language]
        properties = {
            "og:type": "website",
            "og:title": TITLE,
            "og:description": texts["shell.description"],
            "og:url": f"{root}/",
            "og:image": root + self._files.address(PREVIEW),
            "og:image:width": width,
            "og:image:height": height,
            "og:image:alt": texts["shell.preview"],
        }
        metas = [_meta("property", name, content) for name, content in properties.items()]
        metas.append(_meta("name", "description", texts["shell.description"]))
        metas.append(_meta("name", "twitter:card", "summary_large_image"))
        return "".join(metas)


def _keep(cache: OrderedDict[Any, Any], key: object, value: object) -> None:
    cache[key] = value
    if len(cache) > MAX_CACHED:
        cache.popitem(last=False)


def _meta(kind: str, name: str, content: object) -> str:
    return f'<meta {kind}="{name}" content="{html.escape(str(content))}">'


def _slash(root_path: str) -> str:
    """A script that redirects /studio to /studio/, where the page's relative addresses are correct.

    The server cannot redirect: a proxy that strips its path hides which of the two was opened.
    """
    if not root_path:
        return ""
    move = f"if(location.pathname==='{root_path}')location.replace('{root_path}/'+location.search+location.hash)"
    return f"<script>{move}</script>"


def _model_card(model: str) -> str:
    """The model's card, if it can be read before the model is loaded; the page requests it again afterwards."""
    try:
        card = ModelCard.read(Path(model))
    except (CheckpointError, OSError):
        return ""  # the engine's start reports the error
    return _meta("name", "studio-card", json.dumps({"demo": card.demo, "languages": card.languages}))
