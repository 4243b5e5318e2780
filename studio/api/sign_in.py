"""Sign-in to the page with a key: a form, and a session cookie that scripts cannot read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from studio import ASSETS
from studio.api.body import read_body
from studio.api.error_responses import ApiError
from studio.api.origins import address_of
from studio.api.sessions import LIFETIME_SECONDS, Sessions
from studio.i18n import page_phrases

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
LOGIN = "/login"
"""The sign-in of gradio_client's ``auth=("any name", KEY)``, which sends the key as password and takes no redirect."""
COOKIE = "studio_session"
OWNER_COOKIE = "studio_owner"
"""Which owner's key a browser has, as a digest for the page's scripts: what they stored belongs to one owner.

The names of both end with the port, such as _7860, unless it is the scheme's: a browser sends cookies to all ports.
"""
_TOKENS = re.compile(rf"\b{COOKIE}_?(\d{{0,5}})=([\w-]{{43}})(?![\w-])", re.ASCII)
MAX_TOKENS = 32
"""Tokens of a request that are looked up: those of the studios on one host name."""
LARGEST_FORM = 4096
"""Bytes."""
FORM = ASSETS / "page" / "sign-in.html"
FORM_TYPE = "application/x-www-form-urlencoded"
WRONG = "signIn.wrong"
"""Phrase for an unknown key."""
WAIT = "signIn.wait"
"""Phrase during a pause, in which no key is checked."""


class SignIn:
    """Answers POST /sign-in (form field key), /login and /sign-out. Used only where keys are set."""

    def __init__(
        self,
        root_path: str,
        sessions: Sessions,
        accepts: Callable[[Scope, bytes], bool],
        owners: Mapping[bytes, str],
        framed: bool,
    ) -> None:
        """``accepts``: whether a key is valid; raises ApiError during a pause; ``owners``: by the keys' digests.

        ``framed``: whether the page is shown in a frame of another site.
        """
        self._root_path = root_path
        self._forms = page_phrases().translations(FORM.read_text("utf-8"))
        self._sessions = sessions
        self._accepts = accepts
        self._owners = owners
        self._framed = framed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            answer: Response = self.page(request, 200)
        elif scope["path"] == SIGN_OUT:
            for token in _tokens(scope):
                await to_thread.run_sync(self._sessions.end, token)
            answer = self._remember(request, "", 0)
        else:
            answer = await self._sign_in(request)
        await answer(scope, receive, send)

    def page(self, reader: HTTPConnection, status: int, refusal: str = "") -> HTMLResponse:
        """The form in the reader's language. refusal: an error message, or the key of a phrase."""
        phrases = page_phrases()
        language = phrases.language_for(reader)
        sentence = str(phrases.texts[language].get(refusal, refusal))
        markup = self._forms[language].replace("{root}", self._root_path).replace("{refusal}", sentence)
        return HTMLResponse(markup, status, {"Cache-Control": "no-store"})

    def pause_page(self, reader: HTTPConnection, error: ApiError) -> HTMLResponse:
        """The form during a pause, in which no key is checked."""
        answer = self.page(reader, error.status, WAIT)
        answer.headers.update(error.headers)
        return answer

    def key_of(self, scope: Scope) -> bytes | None:
        """The digest of the key with which a browser has signed in; None for sockets."""
        if scope["type"] != "http":  # pages of any site may open a socket, and the browser would send the cookie
            return None
        return next(filter(None, map(self._sessions.key_of, _tokens(scope))), None)

    async def _sign_in(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
            return self.page(request, 415, f"Send the key as {FORM_TYPE}, as the form below does.")
        try:
            body = await read_body(request, LARGEST_FORM)
        except ApiError as error:
            return self.page(request, error.status, WRONG if error.status == 413 else error.message)
        fields = parse_qs(body.decode("latin-1"), errors="surrogateescape")
        name = "password" if request.url.path == LOGIN else "key"
        key = fields.get(name, [""])[0].strip().encode("utf-8", "surrogateescape")
        try:
            is_known = self._accepts(request.scope, key)
        except ApiError as error:
            return self.pause_page(request, error)
        if not is_known:
            return self.page(request, 401, WRONG)
        digest = hashlib.sha256(key).digest()
        token = await to_thread.run_sync(self._sessions.begin, digest)
        owner = hashlib.sha256(f"page of {self._owners[digest]}".encode()).hexdigest()[:32]
        answer = self._remember(request, token, LIFETIME_SECONDS, owner)
        answer.status_code = 200 if name == "password" else answer.status_code
        return answer

    def _remember(self, request: Request, value: str, seconds: int, owner: str = "") -> Response:
        answer = RedirectResponse(f"{self._root_path}/", 303, {"Cache-Control": "no-store"})
        is_https = address_of(request, "").startswith("https:")
        # In a frame of another site, browsers accept only the first of these.
        site = "SameSite=None; Secure; Partitioned" if is_https and self._framed else "SameSite=Lax"
        secure = "; Secure" if is_https and not self._framed else ""
        path = self._root_path or "/"
        end = f"_{port}" if (port := _port(request)) else ""
        for cookie, scripts in ((f"{COOKIE}{end}={value}", "HttpOnly; "), (f"{OWNER_COOKIE}{end}={owner}", "")):
            answer.headers.append("Set-Cookie", f"{cookie}; Max-Age={seconds}; Path={path}; {scripts}{site}{secure}")
        return answer


def wants_page(scope: Scope) -> bool:
    """Whether a browser requests a page."""
    return scope["method"] in ("GET", "HEAD") and "text/html" in Headers(scope=scope).get("accept", "")


def _port(reader: HTTPConnection) -> str:
    """The port of the address that the browser has, blank for the scheme's own; some proxies send Host without it."""
    port = (reader.headers.get("origin") or address_of(reader, "")).rpartition(":")[2]
    return port if port.isdecimal() else ""


def _tokens(scope: Scope) -> list[str]:
    """The tokens in a request's cookies, this port's first; others may be of studios on the same host name."""
    reader = HTTPConnection(scope)
    found = _TOKENS.findall("; ".join(reader.headers.getlist("cookie")))[:MAX_TOKENS]
    return [token for _, token in sorted(found, key=lambda each: each[0] != _port(reader))]
