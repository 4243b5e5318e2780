"""Access control for the page and the API: a key as bearer token, a browser's password, or a sign-in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from pathlib import Path

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.api.http.error_responses import ApiError, error_response
from studio.api.http.openapi import OPEN
from studio.api.http.origins import Origins
from studio.api.http.sessions import Sessions
from studio.api.http.sign_in import SIGN_IN, SIGN_OUT, SignIn, wants_page
from studio.api.http.wrong_keys import WrongKeys
from studio.api.url_paths import is_api
from studio.settings import Settings, on_space

SHARED = "/shared/"
"""Path of shared takes; the rest of the path is their key."""
_SHARED = re.compile(rf"{SHARED}[A-Za-z0-9_-]+(/audio)?")
LISTINGS = ("/v1/models", "/v1/audio/models", "/v1/audio/voices")
WRONG_KEY = ApiError(
    401,
    "Incorrect API key provided. Send one that this server knows as Authorization: Bearer.",
    code="invalid_api_key",
    headers={"WWW-Authenticate": "Bearer"},
)
# Programs that support only passwords send one when asked.
PASSWORD = {"WWW-Authenticate": 'Basic realm="The password is an API key", charset="UTF-8"'}
NO_KEY = ApiError(401, "An API key is needed.", headers=PASSWORD)

Page = Callable[[HTTPConnection, ApiError], Response]


class Access:
    """ASGI middleware. Sets scope["state"]["caller"] to the owner of the key, or to the address if no keys are set;
    and "owner_filter" to the owner whose takes the caller may see, or to None (all takes) if no keys are set.

    Keys are stored as SHA-256 digests; all of them are compared, in constant time.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._owners = {key.digest: key.owner for key in settings.api_keys}
        self._public_listing = settings.public_listing
        self._origins = Origins(settings)
        sessions = Sessions(Path(settings.home) / "sessions.json", self._owners)
        self._wrong_keys = WrongKeys(self._is_key)
        self._sign_in = SignIn(settings.root_path, sessions, self._accepts, framed=on_space())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if (refusal := self._origins.refusal(scope)) is not None:
            await _refuse(refusal, scope, receive, send)
            return
        is_own = self._origins.trust(scope) == "own"
        if self._owners and scope["type"] == "http" and scope["path"] in (SIGN_IN, SIGN_OUT) and is_own:
            await self._sign_in(scope, receive, send)
            return
        try:
            caller = self._caller(scope, is_own)
        except ApiError as pause:
            await _refuse(pause, scope, receive, send, self._sign_in.pause_page)
            return
        if caller is None:
            error = WRONG_KEY if scope["type"] == "http" and is_api(scope["path"]) else NO_KEY
            await _refuse(error, scope, receive, send, lambda reader, error: self._sign_in.page(reader, error.status))
            return
        scope.setdefault("state", {}).update(caller=caller, owner_filter=caller if self._owners else None)
        await self._app(scope, receive, send)

    def _caller(self, scope: Scope, is_own: bool) -> str | None:
        """The caller; None if access is denied. ``is_own``: whether cookies and remembered passwords are accepted.

        Raises ApiError (429) during a pause after wrong keys, unless the caller has access without a key.
        """
        address = (scope.get("client") or ("unknown", 0))[0]
        if not self._owners:
            return f"address {address}"
        scheme, key = _credentials(scope)
        pause: ApiError | None = None
        try:
            if (scheme == b"bearer" or is_own) and self._accepts(scope, key):
                return self._owners[hashlib.sha256(key).digest()]
        except ApiError as error:
            pause = error
        if is_own and (digest := self._sign_in.key_of(scope)) is not None:
            return self._owners[digest]
        path = scope["path"]
        is_listing = self._public_listing and path.startswith(LISTINGS)
        is_open = path in OPEN or (scope.get("method") in ("GET", "HEAD") and (is_listing or _SHARED.fullmatch(path)))
        if pause is not None and not is_open:
            raise pause
        return f"address {address}" if is_open else None

    def _accepts(self, scope: Scope, key: bytes) -> bool:
        """Whether the key is valid. Raises ApiError during a pause for this client."""
        return self._wrong_keys.accepts((scope.get("client") or (None, 0))[0], key)

    def _is_key(self, digest: bytes) -> bool:
        matches = [hmac.compare_digest(digest, key) for key in self._owners]  # compares all keys
        return any(matches)


def is_owner(settings: Settings, request: Request) -> bool:
    """Whether the caller may change the studio itself, with the first key. Without keys anyone may, except
    on a Space."""
    return settings.has_first_key(request.state.caller) and bool(settings.api_keys or not on_space())


def check_owner(settings: Settings, request: Request) -> None:
    """Raises ApiError (403) unless `is_owner`."""
    if not is_owner(settings, request):
        raise ApiError(403, "Only the holder of the first API key may do this.", code="owner_only")


async def _refuse(error: ApiError, scope: Scope, receive: Receive, send: Send, page: Page | None = None) -> None:
    """Send an error in the form for the client: a socket, an API client, a browser (``page``), or another program."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})
    elif is_api(scope["path"]):
        await error_response(error, scope["path"])(scope, receive, send)
    elif page is not None and wants_page(scope):
        await page(HTTPConnection(scope), error)(scope, receive, send)
    else:
        await PlainTextResponse(error.message, error.status, error.headers)(scope, receive, send)


def _credentials(scope: Scope) -> tuple[bytes, bytes]:
    """The scheme (bearer or basic) and key of a request; empty if there is none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, rest = value.strip().partition(b" ")
            scheme = scheme.lower()
            if scheme == b"bearer":
                return scheme, rest.strip()
            if scheme == b"basic":
                try:
                    return scheme, base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
                except (binascii.Error, ValueError):
                    return b"", b""
    return b"", b""
