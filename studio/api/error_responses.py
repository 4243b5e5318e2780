"""Maps exceptions to HTTP statuses, and builds error bodies in the form of the protocol to which a path belongs."""

from __future__ import annotations

import http
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine import (
    CannotAlign,
    CheckpointError,
    ConfigError,
    EngineError,
    EngineFull,
    EngineStopped,
    InvalidReference,
    InvalidUtterance,
    PromptTooLong,
)
from studio.errors import LIBRARY_ERRORS, REFUSALS, StudioError

log = logging.getLogger(__name__)

MAX_DRAINED = 128 * 1024 * 1024
"""Maximum bytes received after an early answer."""
DRAIN_SECONDS = 60
RETRY_SECONDS = 2
"""Default of Retry-After."""


@dataclass(eq=False)
class ApiError(Exception):
    """An error that exists only in HTTP, such as a wrong content type."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class Protocol:
    """Another service's protocol, spoken on the same port as the studio's own."""

    name: str
    """Its errors' name in the OpenAPI document."""
    paths: re.Pattern[str]
    """Matches the beginnings of its paths."""
    error: Callable[[ApiError], dict[str, object]]
    """The JSON body of an error."""
    description: str
    not_offered: Mapping[str, str]
    """Paths that the studio lacks, and the alternatives."""
    not_offered_status: int = 404
    prefix: str = ""
    """The path below which it is; blank at the root. `below_prefix` moves requests there that are sent to the root."""
    root_paths: re.Pattern[str] | None = None
    """Matches the beginnings of its paths at the root that nothing else has."""
    key_header: bytes = b""
    """The header, in lower case, with which its clients send their keys."""
    shared_paths: re.Pattern[str] | None = None
    """Matches the beginnings of its paths at the root that belong to it only with this header."""
    has_keys_in_messages: bool = False
    """Whether the first message of a socket may have the key."""


_PROTOCOLS: dict[str, Protocol] = {}


def add_protocol(protocol: Protocol) -> None:
    """Treat the protocol's paths as the API's from now on, in this process."""
    _PROTOCOLS[protocol.name] = protocol


def protocols() -> list[Protocol]:
    """All protocols but the studio's own."""
    return list(_PROTOCOLS.values())


def protocol_of(path: str) -> Protocol | None:
    """The protocol of a path; None if it is the studio's own."""
    return next((protocol for protocol in _PROTOCOLS.values() if protocol.paths.match(path)), None)


def below_prefix(scope: Scope) -> Scope:
    """The scope of a request at the root that can only mean a protocol with a prefix, with the prefix in its path;
    otherwise the scope itself."""
    for protocol in _PROTOCOLS.values():
        if protocol.prefix and _is_meant(protocol, scope):
            return {**scope, "path": protocol.prefix + scope["path"]}
    return scope


def _is_meant(protocol: Protocol, scope: Scope) -> bool:
    path = scope["path"]
    if protocol.root_paths and protocol.root_paths.match(path):
        return True
    if protocol.shared_paths is None or not protocol.shared_paths.match(path):
        return False
    # With a bearer token too, the request may be for the studio's own API.
    names = {name for name, _ in scope["headers"]}
    return protocol.key_header in names and b"authorization" not in names


def is_api(path: str) -> bool:
    """Whether a path is for programs: errors are JSON, answers are not cached, and routes limit their own bodies."""
    return path.startswith(("/v1/", "/V1/", "/dev/")) or path in ("/v1", "/V1") or protocol_of(path) is not None


ENGINE_STATUSES: dict[type[Exception], tuple[int, str | None]] = {
    PromptTooLong: (400, "context_length_exceeded"),
    InvalidUtterance: (400, "invalid_value"),
    InvalidReference: (400, "invalid_audio"),
    EngineFull: (429, "queue_full"),
    CannotAlign: (501, "no_timestamps"),
    EngineStopped: (503, "engine_unavailable"),
    CheckpointError: (503, "engine_unavailable"),
    ConfigError: (503, "engine_unavailable"),
    EngineError: (500, None),
}
"""Status and code of the engine's errors, by the nearest base class."""


def describe(error: Exception) -> ApiError:
    """The HTTP form of an error of the engine or the studio."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, StudioError):
        status, code = error.status, error.code
    elif isinstance(error, LIBRARY_ERRORS):
        status, code = 400, error.code
    else:
        status, code = next(ENGINE_STATUSES[kind] for kind in type(error).__mro__ if kind in ENGINE_STATUSES)
    headers = {}
    if status in (429, 503):
        headers["Retry-After"] = str(getattr(error, "retry_after", RETRY_SECONDS))
    if status == 409:  # otherwise OpenAI's clients would retry
        headers["x-should-retry"] = "false"
    return ApiError(status, str(error), getattr(error, "param", None), code, headers)


def content_of(error: ApiError, path: str) -> dict[str, object]:
    """The JSON body of an error for the clients of a path."""
    protocol = protocol_of(path)
    return protocol.error(error) if protocol else envelope(error)


def envelope(error: ApiError) -> dict[str, object]:
    """The JSON body of an error for OpenAI's clients."""
    kinds = {403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}


def unexpected(request_id: str) -> ApiError:
    return ApiError(500, f"The server had an error; its log has it under {request_id}.")


class DrainedResponse(JSONResponse):
    """An answer sent before the request's body is read; the rest of the body is received and discarded.

    Closing the connection while the client is still sending could lose the answer, so it stays open for up to
    MAX_DRAINED bytes or DRAIN_SECONDS.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        received, more = 0, True
        with anyio.move_on_after(DRAIN_SECONDS):
            while more and received < MAX_DRAINED:
                message = await receive()
                received += len(message.get("body", b""))
                more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": b""})


def error_response(error: ApiError, path: str) -> JSONResponse:
    kind = DrainedResponse if error.status == 413 else JSONResponse
    return kind(content_of(error, path), error.status, headers=error.headers)


async def _known_error(request: Request, error: Exception) -> Response:
    return error_response(describe(error), request.scope["path"])


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = error.detail if isinstance(error.detail, str) else http.HTTPStatus(error.status_code).phrase
    return error_response(ApiError(error.status_code, text, headers=dict(error.headers or {})), request.scope["path"])


async def _invalid(request: Request, error: Exception) -> Response:
    """A query or path value of the wrong type. Clients do not understand FastAPI's own 422."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return error_response(ApiError(400, f"{name}: {first['msg']}", name, "invalid_value"), request.scope["path"])


class UnexpectedErrors:
    """ASGI middleware: an unexpected error becomes a 500 in the envelope, with the usual headers.

    The stack trace is logged under the request's id and never sent.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def send_noted(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception as error:
            if scope["type"] == "http":
                request_id = scope["state"]["request_id"]
                log.error("request %s failed with %s; the stack follows", request_id, type(error).__name__)
                if not has_started:
                    await error_response(unexpected(request_id), scope["path"])(scope, receive, send)
            raise


async def _disconnected(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


def install_errors(app: FastAPI) -> None:
    """Answer all errors of the app in the form for their clients."""
    for kind in (ApiError, EngineError, *REFUSALS):
        app.add_exception_handler(kind, _known_error)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _disconnected)
