"""Access control for the page and the API: a key as bearer token, a browser's password, or a sign-in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.api.body import release
from studio.api.error_responses import ApiError, error_response, is_api, protocol_of
from studio.api.openapi import OPEN
from studio.api.origins import Origins
from studio.api.sessions import Sessions
from studio.api.sign_in import LOGIN, SIGN_IN, SIGN_OUT, SignIn, wants_page
from studio.api.wrong_keys import WrongKeys
from studio.settings import Settings, on_space
from studio.work import PLACE

SHARED = "/shared/"
"""Path of shared takes and feeds; the rest of the path is their key, and a file's name."""
_SHARED = re.compile(rf"{SHARED}[A-Za-z0-9_-]+(/[a-z0-9]+(\.[a-z0-9]+)?)?")
LISTINGS = ("/v1/models", "/v1/audio/models", "/v1/audio/voices", "/v1/names/audio/voices", "/v1/test")
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

    A socket of a protocol with keys in messages may come without a key; then "owner_of_key" maps the key of its first
    message to an owner, and raises ApiError for a wrong one.

    Keys are stored as SHA-256 digests; all of them are compared, in constant time.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._owners = {key.digest: key.owner for key in settings.api_keys}
        self._public_listing = settings.public_listing
        self._origins = Origins(settings)
        sessions = Sessions(Path(settings.home) / "sessions", self._owners)
        # A sum, so that all keys are compared.
        self._wrong_keys = WrongKeys(lambda digest: sum(hmac.compare_digest(digest, key) for key in self._owners) > 0)
        self._sign_in = SignIn(settings.root_path, sessions, self._accepts, self._owners, framed=on_space())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if (refusal := self._origins.refusal(scope)) is not None:
            await _refuse(refusal, scope, receive, send)
            return
        is_own = self._origins.trust(scope) == "own"
        if self._owners and scope["type"] == "http" and scope["path"] in (SIGN_IN, SIGN_OUT, LOGIN) and is_own:
            await self._sign_in(scope, receive, send)
            return
        try:
            caller = self._caller(scope, is_own)
        except ApiError as pause:
            await _refuse(pause, scope, receive, send, self._sign_in.pause_page)
            return
        if caller is None and _may_send_key_later(scope):
            scope.setdefault("state", {})["owner_of_key"] = partial(self._owner_of_key, scope)
            caller = _address(scope)
        if caller is None:
            error = WRONG_KEY if scope["type"] == "http" and is_api(scope["path"]) else NO_KEY
            await _refuse(error, scope, receive, send, lambda reader, error: self._sign_in.page(reader, error.status))
            return
        scope.setdefault("state", {}).update(caller=caller, owner_filter=caller if self._owners else None)
        if (queues := getattr(scope["app"].state, "queues", None)) is not None:  # None until the start is complete
            PLACE.set((queues, caller))
        try:
            await self._app(scope, receive, send)
        finally:
            release(scope["state"])

    def _caller(self, scope: Scope, is_own: bool) -> str | None:
        """The caller; None if access is denied. ``is_own``: whether cookies and remembered passwords are accepted.

        Raises ApiError (429) during a pause after wrong keys, unless the caller has access without a key.
        """
        if not self._owners:
            return _address(scope)
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
        return _address(scope) if is_open else None

    def _owner_of_key(self, scope: Scope, key: str) -> str:
        """Raises ApiError (401, 429)."""
        encoded = key.encode()
        if not self._accepts(scope, encoded):
            raise replace(WRONG_KEY)  # a new one: to each error Python adds the frames that raise it, and they stay
        return self._owners[hashlib.sha256(encoded).digest()]

    def _accepts(self, scope: Scope, key: bytes) -> bool:
        """Whether the key is valid. Raises ApiError during a pause for this client."""
        return self._wrong_keys.accepts((scope.get("client") or (None, 0))[0], key)


def is_owner(settings: Settings, request: Request) -> bool:
    """Whether the caller may change the studio itself: with the first key; without keys anyone, except on a Space."""
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


def _address(scope: Scope) -> str:
    """The caller that a client is without a key."""
    return f"address {(scope.get('client') or ('unknown', 0))[0]}"


def _may_send_key_later(scope: Scope) -> bool:
    protocol = protocol_of(scope["path"]) if scope["type"] == "websocket" else None
    return protocol is not None and protocol.has_keys_in_messages and not _credentials(scope)[1]


def _credentials(scope: Scope) -> tuple[bytes, bytes]:
    """The scheme (bearer or basic) and key of a request; empty if there is none. A protocol's own header counts as a
    bearer token: browsers do not send it by themselves either."""
    protocol = protocol_of(scope["path"])
    if protocol is not None and protocol.key_header:
        for name, value in scope["headers"]:
            if name == protocol.key_header:
                return b"bearer", value.strip()
    # gradio_client sends its token= under another name; a Hugging Face token, which it sends unasked, is no wrong key.
    names = {name for name, _ in scope["headers"]}
    wanted = b"authorization" if b"authorization" in names else b"x-hf-authorization"
    for name, value in scope["headers"]:
        if name == wanted and not (name.startswith(b"x-") and value.startswith(b"Bearer hf_")):
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
