"""The page behind keys: a form that asks for one, and a cookie, unreadable for scripts, that remembers it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
COOKIE = "studio_key"
KEPT_SECONDS = 30 * 86_400
LARGEST_FORM = 4096
"""Bytes."""
FORM = Path(__file__).resolve().parents[2] / "assets" / "page" / "sign-in.html"
WRONG = "That key is not one of this studio's."


class SignIn:
    """Answers POST /sign-in (form field key) and /sign-out. Used only where keys are set."""

    def __init__(self, root_path: str, knows: Callable[[bytes], bool]) -> None:
        """``knows`` tells whether a key is one of the studio's."""
        self._root_path = root_path
        self._knows = knows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            answer: Response = self.page(200)
        elif scope["path"] == SIGN_OUT:
            answer = self._remember(request, "", 0)
        elif int(request.headers.get("content-length") or LARGEST_FORM + 1) > LARGEST_FORM:
            answer = self.page(413, WRONG)
        else:
            async with request.form() as form:
                key = str(form.get("key", "")).strip().encode("utf-8", "surrogateescape")
            answer = self._remember(request, _coded(key), KEPT_SECONDS) if self._knows(key) else self.page(401, WRONG)
        await answer(scope, receive, send)

    def page(self, status: int, refusal: str = "") -> HTMLResponse:
        """The form, with what was wrong before."""
        markup = FORM.read_text("utf-8").replace("{root}", self._root_path).replace("{refusal}", refusal)
        return HTMLResponse(markup, status, {"Cache-Control": "no-store"})

    def key_of(self, scope: Scope) -> bytes:
        """The key that a browser was given to remember; empty when there is none. Sockets have no use for it."""
        if scope["type"] != "http":  # any site's page may open a socket, and the browser would send it along
            return b""
        try:
            return base64.urlsafe_b64decode(HTTPConnection(scope).cookies.get(COOKIE, ""))
        except (binascii.Error, ValueError):
            return b""

    def _remember(self, request: Request, value: str, seconds: int) -> Response:
        answer = RedirectResponse(f"{self._root_path}/", 303, {"Cache-Control": "no-store"})
        is_https = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
        # On a Space the page is a frame inside of another site's: there a browser keeps only such cookies.
        frame = "SameSite=None; Secure; Partitioned" if is_https else "SameSite=Lax"
        path = self._root_path or "/"
        cookie = f"{COOKIE}={value}; Max-Age={seconds}; Path={path}; HttpOnly; {frame}"
        answer.headers.append("Set-Cookie", cookie)
        return answer


def wants_page(scope: Scope) -> bool:
    """Whether a person's browser asks for something to look at."""
    return scope["method"] in ("GET", "HEAD") and "text/html" in Headers(scope=scope).get("accept", "")


def _coded(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode("ascii")
