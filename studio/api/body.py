"""Reading a JSON body from anybody: bounded while it arrives, strict about numbers and nesting."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

import anyio
from fastapi import Request
from pydantic import BaseModel, ValidationError

from studio.api.errors import ApiError
from studio.errors import InvalidRequest

MAX_BODY = 16 * 1024 * 1024
"""Bytes; room for a 10 MiB clip as base64."""
BODY_SECONDS = 60
DRAIN = 8
"""So many times the limit is received at most before the connection is closed."""

Model = TypeVar("Model", bound=BaseModel)


async def read_json(request: Request) -> dict[str, Any]:
    """The body's JSON object. Raises ApiError (400, 413, 415)."""
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type != "application/json" and not content_type.endswith("+json"):
        raise ApiError(
            415,
            "Send the request as JSON with Content-Type: application/json.",
            code="unsupported_media_type",
        )
    return parse_object(await read_body(request))


async def read_body(request: Request, limit: int = MAX_BODY) -> bytes:
    """The whole body, at most ``limit`` bytes whatever its Content-Length says. Raises ApiError (408, 413).

    What is too much is still received, up to DRAIN times the limit, and thrown away: a connection that is closed
    while the caller sends would take the answer with it.
    """
    body, received, seconds = bytearray(), 0, max(BODY_SECONDS, BODY_SECONDS * limit // MAX_BODY)
    try:
        with anyio.fail_after(seconds):
            async for piece in request.stream():
                received += len(piece)
                if received <= limit:
                    body += piece
                elif received > DRAIN * limit:
                    break
                else:
                    body.clear()
    except TimeoutError:
        message = f"The request's body did not arrive within {seconds} seconds."
        raise ApiError(408, message, code="request_timeout", headers={"Connection": "close"}) from None
    if received > limit:
        headers = {"Connection": "close"} if received > DRAIN * limit else {}
        raise ApiError(413, f"The request is larger than {limit} bytes.", code="request_too_large", headers=headers)
    return bytes(body)


def parse_object(body: bytes) -> dict[str, Any]:
    """Raises ApiError for what is no JSON object."""
    try:
        value = json.loads(body, parse_constant=_not_a_number, parse_int=_bounded_int)
    except (ValueError, RecursionError):
        raise ApiError(
            400, "We could not parse the JSON body of your request: it is malformed or too deeply nested."
        ) from None
    if not isinstance(value, dict):
        raise ApiError(400, "The body of the request must be a JSON object.")
    return value


def as_model(fields: dict[str, Any], model: type[Model]) -> Model:
    """Raises InvalidRequest for a field that is not as it should be."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else None
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidRequest(f"{name}: {message}" if name else message, name, first["type"]) from None


def _not_a_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _bounded_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("an integer is too long")
    return int(digits)
