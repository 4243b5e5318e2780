"""One table from exceptions to HTTP statuses, and the forms of errors that OpenAI's and Fish Audio's clients expect."""

from __future__ import annotations

import http
import logging
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
from studio.api.fish_names import in_client_words
from studio.api.url_paths import is_fish
from studio.errors import (
    Cancelled,
    CannotContinue,
    CannotRegenerate,
    Changed,
    Damaged,
    DegenerateSpeech,
    InvalidRequest,
    LibraryUnavailable,
    NameTaken,
    NotFinished,
    NotFound,
    NoTimestamps,
    NotOffered,
    NotReady,
    QueueFull,
    StudioError,
    TooManyRequests,
    Unavailable,
    UnderWay,
)

log = logging.getLogger(__name__)

DRAINED = 128 * 1024 * 1024
"""Bytes."""
DRAIN_SECONDS = 60
RETRY_SECONDS = 2
"""What a caller is told to wait when nothing better is known."""


@dataclass(eq=False)
class ApiError(Exception):
    """An error that only HTTP knows, such as a wrong content type."""

    status: int
    message: str
    param: str | None = None
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


STATUSES: dict[type[Exception], tuple[int, str | None]] = {
    PromptTooLong: (400, "context_length_exceeded"),
    InvalidUtterance: (400, "invalid_value"),
    InvalidReference: (400, "invalid_audio"),
    EngineFull: (429, "queue_full"),
    CannotAlign: (501, "no_timestamps"),
    EngineStopped: (503, "engine_unavailable"),
    CheckpointError: (503, "engine_unavailable"),
    ConfigError: (503, "engine_unavailable"),
    EngineError: (500, None),
    InvalidRequest: (400, None),
    NotFound: (404, None),
    NotFinished: (409, None),
    CannotContinue: (409, None),
    CannotRegenerate: (409, None),
    NoTimestamps: (409, None),
    Damaged: (409, None),
    Changed: (412, None),
    NameTaken: (409, None),
    UnderWay: (409, None),
    Cancelled: (410, None),
    DegenerateSpeech: (500, None),
    QueueFull: (429, None),
    TooManyRequests: (429, None),
    NotOffered: (501, None),
    NotReady: (503, None),
    LibraryUnavailable: (503, None),
    Unavailable: (503, None),
    StudioError: (500, None),
}
"""The nearest base class decides; a code of None leaves the error's own."""


def describe(error: Exception) -> ApiError:
    """What HTTP says of an error of the engine or the studio."""
    if isinstance(error, ApiError):
        return error
    status, code = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    headers = {}
    if status in (429, 503):
        headers["Retry-After"] = str(getattr(error, "retry_after", RETRY_SECONDS))
    if status == 409:  # OpenAI's clients would send it again, and again
        headers["x-should-retry"] = "false"
    return ApiError(status, str(error), getattr(error, "param", None), code or getattr(error, "code", None), headers)


def content_of(error: ApiError, path: str) -> dict[str, object]:
    """The JSON body of an error at an address, as the clients of that address read it.

    Fish Audio's old SDK makes its exception of exactly these two keys, and fails at any other.
    """
    if is_fish(path):
        return {"status": error.status, "message": in_client_words(error.message, error.param)}
    return envelope(error)


def envelope(error: ApiError) -> dict[str, object]:
    """The JSON body of an error as OpenAI's clients read it."""
    kinds = {403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}


class DrainedResponse(JSONResponse):
    """An answer given before the request's body is read: what still comes is received and thrown away.

    The answer is complete for its reader at once. To close the connection of a caller who is still sending would take
    the answer with it; so that happens only after DRAINED bytes or DRAIN_SECONDS.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        received, more = 0, True
        with anyio.move_on_after(DRAIN_SECONDS):
            while more and received < DRAINED:
                message = await receive()
                received += len(message.get("body", b""))
                more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": b""})


def error_response(error: ApiError, path: str) -> JSONResponse:
    """The answer to a request to this address."""
    kind = DrainedResponse if error.status == 413 else JSONResponse
    return kind(content_of(error, path), error.status, headers=error.headers)


async def _known(request: Request, error: Exception) -> Response:
    return error_response(describe(error), request.scope["path"])


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = error.detail if isinstance(error.detail, str) else http.HTTPStatus(error.status_code).phrase
    return error_response(ApiError(error.status_code, text, headers=dict(error.headers or {})), request.scope["path"])


async def _invalid(request: Request, error: Exception) -> Response:
    """A query or path value of the wrong type; FastAPI's own 422 is one that no client understands."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return error_response(ApiError(400, f"{name}: {first['msg']}", name, "invalid_value"), request.scope["path"])


class Unforeseen:
    """Pure ASGI: a fault of ours is a 500 in the envelope, under the same headers as every other answer.

    Never the stack to the caller; the log has it under the request's id.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception as error:
            if scope["type"] == "http":
                request_id = scope["state"]["request_id"]
                log.error("request %s failed with %s; the stack follows", request_id, type(error).__name__)
                if not begun:
                    fault = ApiError(500, f"The server had an error; its log has it under {request_id}.")
                    await error_response(fault, scope["path"])(scope, receive, send)
            raise


async def _left(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


def install_errors(app: FastAPI) -> None:
    """Answer every error of the app in the envelope."""
    for kind in (ApiError, StudioError, EngineError):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _left)
