"""Who may come in: one layer before page and API; a key as bearer token, a browser's password, or a sign-in."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.api.errors import ApiError, error_response
from studio.api.sign_in import SIGN_IN, SIGN_OUT, SignIn, wants_page
from studio.settings import Settings

OPEN = frozenset({"/health", "/ready", "/gradio_api/startup-events"})
"""The last one tells nothing: Gradio, where it launches the page itself, knocks there."""
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LISTINGS = ("/v1/models", "/v1/audio/models", "/v1/audio/voices")


class Access:
    """Pure ASGI. Names the caller in scope["state"]["caller"]: the owner of its key, or its address without keys;
    and in "sees" whose takes it may see: its own, or everybody's (None) where no keys are set.

    Keys are kept as SHA-256 digests and compared in constant time, all of them, whichever fits.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._digests = settings.api_keys
        self._owner = settings.owner
        self._public_listing = settings.public_listing
        self._origins = settings.cors_origins
        self._sign_in = SignIn(settings.root_path, self._knows)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if self._is_forged(scope):
            told = ApiError(
                403, "Pages of other origins may not do this; see CORS_ORIGINS.", None, "origin_not_allowed"
            )
            await error_response(told)(scope, receive, send)
            return
        if self._digests and scope["type"] == "http" and scope["path"] in (SIGN_IN, SIGN_OUT):
            await self._sign_in(scope, receive, send)
            return
        caller = self._caller(scope)
        if caller is None:
            await self._refuse(scope, receive, send)
            return
        # Without keys everything here is one person's.
        scope.setdefault("state", {}).update(caller=caller, sees=caller if self._digests else None)
        await self._app(scope, receive, send)

    def _is_forged(self, scope: Scope) -> bool:
        """Whether somebody else's page makes a browser change something here, with the login of who looks at it.

        CORS alone lets forms through: they are sent first and only their answer is withheld.
        """
        if scope.get("method") not in CHANGING or "*" in self._origins:
            return False
        headers = Headers(scope=scope)
        return headers.get("sec-fetch-site") == "cross-site" and headers.get("origin") not in self._origins

    def _caller(self, scope: Scope) -> str | None:
        address = (scope.get("client") or ("unknown", 0))[0]
        if not self._digests:
            return f"address {address}"
        key = _token(scope) or self._sign_in.key_of(scope)
        if self._knows(key):
            return self._owner(hashlib.sha256(key).digest())
        path = scope["path"]
        listing = scope.get("method") == "GET" and path.startswith(LISTINGS) and self._public_listing
        return f"address {address}" if path in OPEN or listing else None

    def _knows(self, key: bytes) -> bool:
        digest = hashlib.sha256(key).digest()
        matches = [hmac.compare_digest(digest, known) for known in self._digests]  # all of them, whichever fits
        return any(matches)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "an API key is needed"})
        elif scope["path"].startswith("/v1"):
            message = "Incorrect API key provided. Send one that this server knows as Authorization: Bearer."
            headers = {"WWW-Authenticate": "Bearer"}
            await error_response(ApiError(401, message, None, "invalid_api_key", headers))(scope, receive, send)
        elif wants_page(scope):
            await self._sign_in.page(401)(scope, receive, send)
        else:
            # Programs that know only passwords send one when asked so.
            headers = {"WWW-Authenticate": 'Basic realm="The password is an API key", charset="UTF-8"'}
            await PlainTextResponse("An API key is needed.", 401, headers)(scope, receive, send)


def _token(scope: Scope) -> bytes:
    """The key that was sent, empty when there is none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, rest = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                return rest.strip()
            if scheme.lower() == b"basic":
                try:
                    return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
                except (binascii.Error, ValueError):
                    return b""
    return b""
