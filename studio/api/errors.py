"""One table from exceptions to HTTP statuses, and the envelope that OpenAI's clients expect."""

from __future__ import annotations

import http
import logging
from dataclasses import dataclass, field

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from engine import (
    CheckpointError,
    ConfigError,
    EngineError,
    EngineFull,
    EngineStopped,
    InvalidReference,
    InvalidUtterance,
    PromptTooLong,
)
from studio.errors import (
    Cancelled,
    Changed,
    DegenerateSpeech,
    InvalidRequest,
    LibraryUnavailable,
    LineFull,
    NameTaken,
    NotFinished,
    NotFound,
    NotOffered,
    NotReady,
    StudioError,
    TooManyRequests,
    Unavailable,
    UnderWay,
)

log = logging.getLogger(__name__)

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
    EngineStopped: (503, "engine_unavailable"),
    CheckpointError: (503, "engine_unavailable"),
    ConfigError: (503, "engine_unavailable"),
    EngineError: (500, None),
    InvalidRequest: (400, None),
    NotFound: (404, None),
    NotFinished: (409, None),
    Changed: (412, None),
    NameTaken: (409, None),
    UnderWay: (409, None),
    Cancelled: (410, None),
    DegenerateSpeech: (500, None),
    LineFull: (429, None),
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


def envelope(error: ApiError) -> dict[str, object]:
    """The JSON body of an error."""
    kinds = {403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}


def error_response(error: ApiError) -> JSONResponse:
    return JSONResponse(envelope(error), error.status, headers=error.headers)


async def _known(request: Request, error: Exception) -> Response:
    return error_response(describe(error))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = error.detail if isinstance(error.detail, str) else http.HTTPStatus(error.status_code).phrase
    return error_response(ApiError(error.status_code, text, headers=dict(error.headers or {})))


async def _invalid(request: Request, error: Exception) -> Response:
    """A query or path value of the wrong type; FastAPI's own 422 is one that no client understands."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return error_response(ApiError(400, f"{name}: {first['msg']}", name, "invalid_value"))


async def _unforeseen(request: Request, error: Exception) -> Response:
    """Never the stack to the caller; the log has it under the request's id."""
    request_id = request.scope.get("state", {}).get("request_id", "")
    log.error("request %s failed with %s; the stack follows", request_id, type(error).__name__)
    error = ApiError(500, f"The server had an error; its log has it under {request_id}.")
    error.headers = {"x-request-id": request_id}  # this answer is given outside the middleware
    return error_response(error)


async def _left(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


def install_errors(app: FastAPI) -> None:
    """Answer every error of the app in the envelope."""
    for kind in (ApiError, StudioError, EngineError):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _unforeseen)
