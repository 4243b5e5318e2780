"""Reads untrusted JSON bodies: limited while they arrive, strict about numbers, strings and nesting."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, TypeVar

import anyio
import numpy as np
from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from studio.api.error_responses import ApiError
from studio.api.sending import until_hangup
from studio.errors import InvalidRequest, QueueFull, TooManyRequests
from studio.unicode_text import check_strings
from studio.work import WorkQueue

MAX_BODY = 16 * 1024 * 1024
"""Bytes; room for a 10 MiB clip as base64."""
MAX_SIGNS = 200_000
"""Commas, colons, brackets and braces in a body, including those in texts. Parsing blocks the event loop: 16 MiB of
"[]," for a second, this number for 0.05 s at most. A model that needs more of all says so in ``times_larger``."""
MAX_FIELDS = 1000
"""Fields of the object, and of each object in it. Fields are checked by name, unlike values in lists."""
MAX_ERRORS = 20_000
"""Invalid fields or values of a body that are described: describing 200,000 takes a second, and only one is sent."""
MAX_AT_ONCE = 32 * 1024
"""Bytes of a body that is parsed in the event loop, for a millisecond or two: one caller may send a hundred at once."""
MAX_HELD = 512 * 2**20
"""Bytes of all larger bodies that are in memory, each until its request is answered; half of them for one caller."""
BODY_SECONDS = 60
"""Longest pause within a body, and what it may take besides the time for its bytes at `MIN_RATE`."""
MIN_RATE = 16 * 1024
"""Bytes per second, much less than any link for uploads: who sends more slowly only wants to occupy the studio."""
MAX_LENIENT = 1024 * 1024
"""Bytes of a body that the strict parser rejects."""
MAX_DIGITS = 20
"""Longer integers exceed every limit of a field."""

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")


class BodyReader(Generic[Model]):
    """A route's dependency: its JSON body as a model; the document lists the model as the route's request body."""

    def __init__(
        self, model: type[Model], prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda fields: fields
    ) -> None:
        """``prepare`` changes the fields before they are validated."""
        self.model, self._prepare = model, prepare

    async def __call__(self, request: Request) -> Model:
        """Raises ApiError (400, 408, 413, 415), InvalidRequest."""
        times = getattr(self.model, "times_larger", 1)
        return await read_json(request, lambda fields: as_model(self._prepare(fields), self.model), times)


if TYPE_CHECKING:
    JsonBody = Annotated[Model, "read by BodyReader"]
else:

    class JsonBody:
        """The type of a route's parameter that is read from the JSON body: ``body: JsonBody[Star]``."""

        def __class_getitem__(cls, model: type[Model]) -> object:
            return Annotated[model, Depends(BodyReader(model))]


async def read_json(request: Request, convert: Callable[[dict[str, Any]], Result], times: int = 1) -> Result:
    """The body's JSON object, converted; a large one in the queue of texts, since sixty at once would block the event
    loop for seconds. ``times``: how many times larger than others it may be. Raises ApiError (400, 408, 413, 415),
    InvalidRequest, QueueFull, TooManyRequests.
    """
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type != "application/json" and not content_type.endswith("+json"):
        message = "Send the request as JSON with Content-Type: application/json."
        raise ApiError(415, message, code="unsupported_media_type")
    body = await read_body(request, MAX_BODY * times)
    return await converted(request, body, lambda body: convert(parse_object(body, MAX_SIGNS * times)))


async def converted(request: Request, body: bytes, convert: Callable[[bytes], Result]) -> Result:
    """What ``convert`` makes of a body, for a large one in the queue of texts. Raises its errors, QueueFull,
    TooManyRequests."""
    if len(body) <= MAX_AT_ONCE:
        return convert(body)
    queue: WorkQueue = request.app.state.queues.texts
    return await until_hangup(request, queue.run(request.state.caller, lambda: convert(body)))


async def read_body(request: Request, limit: int = MAX_BODY, param: str | None = None) -> bytes:
    """The whole body, at most ``limit`` bytes; ``param``: its largest field.

    Raises ApiError (408, 413), and for a large body QueueFull and TooManyRequests.
    A body with a larger Content-Length is refused before it arrives.
    """
    content_length = request.headers.get("content-length", "")
    if content_length.isdecimal() and (len(content_length) > MAX_DIGITS or int(content_length) > limit):
        raise _too_large(limit, param)
    body, began = bytearray(), anyio.current_time()
    try:
        with anyio.fail_after(BODY_SECONDS) as waiting:
            async for piece in request.stream():
                body += piece
                waiting.deadline = min(anyio.current_time(), began + len(body) / MIN_RATE) + BODY_SECONDS
                if len(body) > limit:
                    raise _too_large(limit, param)
                if len(body) > MAX_AT_ONCE:
                    hold(request.scope["state"], len(piece))
    except TimeoutError:
        least = f"send at least {MIN_RATE >> 10} KiB per second without pauses of {BODY_SECONDS} seconds"
        message = f"The request body arrived too slowly: {least}, over a faster connection or as a smaller file."
        raise ApiError(408, message, code="request_timeout", headers={"Connection": "close"}) from None
    return bytes(body)


_held: Counter[str] = Counter()
"""Bytes of large bodies in memory, by caller."""


def hold(state: dict[str, Any], size: int) -> None:
    """Count bytes of a body or a message until `release`. Raises QueueFull, TooManyRequests."""
    caller = state["caller"]
    if _held[caller] + size > MAX_HELD // 2:
        most = f"at most {MAX_HELD >> 21} MiB at a time"
        raise TooManyRequests(f"your requests that are not yet answered are too large; send {most}", retry_after=10)
    if _held.total() + size > MAX_HELD:
        raise QueueFull("many large requests are being read; send this one again in a moment", retry_after=10)
    _held[caller] += size
    state["held"] = state.get("held", 0) + size


def release(state: dict[str, Any]) -> None:
    """Forget the bodies of a request that has been answered."""
    if size := state.pop("held", 0):
        _held[state["caller"]] -= size
        if not _held[state["caller"]]:
            del _held[state["caller"]]


def parse_object(body: bytes, signs: int = MAX_SIGNS) -> dict[str, Any]:
    """Parse a JSON object. Raises ApiError; InvalidRequest for a string that cannot be stored."""
    octets = np.frombuffer(body, np.uint8)
    if len(body) > signs and sum(int(np.count_nonzero(octets == sign)) for sign in b",:[{") > signs:
        remedy = "send a long document as a file, and long lists, such as the parts of an undo, in several requests"
        message = f"The JSON has more than {signs} commas, colons, brackets and braces; {remedy}."
        raise ApiError(400, message, code="json_too_complex")
    value, is_strict = _parsed(body)
    if not isinstance(value, dict):
        raise ApiError(400, "The body of the request must be a JSON object.")
    _check_fields(value, "The JSON object", None)
    # Without escapes, strict JSON has neither NUL nor half of a surrogate pair. Searching for one byte first is faster.
    if not is_strict or (b"\\" in body and b"\\u" in body):
        check_strings(value)
    for name, field_value in value.items():
        _check_fields(field_value, name[:80], name)
    return value


def _parsed(body: bytes) -> tuple[Any, bool]:
    """The value, and whether the strict parser accepted it. Raises ApiError.

    The strict parser is several times faster. If it fails, the lenient one parses small bodies: it supports other
    encodings than UTF-8, and values for which the error can name the field.
    """
    try:
        return from_json(body, allow_inf_nan=False), True
    except ValueError as error:
        try:
            if len(body) <= MAX_LENIENT:
                return json.loads(body, parse_constant=_not_a_number, parse_int=_bounded_int), False
        except (ValueError, RecursionError):
            pass
        message = "We could not parse the JSON body of your request: it is malformed or too deeply nested"
        raise ApiError(400, f"{message} ({error}).") from None


_PYTHON_TYPES = {
    "bytes_type": "Input should be binary data",
    "extra_forbidden": "unknown field",
    **dict.fromkeys(("tuple_type", "list_type"), "Input should be a list"),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "dataclass_type", "dataclass_exact_type"),
        "Input should be an object",
    ),
}
"""Messages by pydantic's type of error, for those that name a type of Python or of pydantic."""


def as_model(fields: dict[str, Any], model: type[Model]) -> Model:
    """Validate fields. Raises InvalidRequest for the first invalid field."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        if error.error_count() > MAX_ERRORS:
            raise InvalidRequest(f"{error.error_count()} fields or values are wrong or unknown") from None
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        # An unknown field first: it may be the misspelt name of a missing one.
        first = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
        name = str(first["loc"][0]) if first["loc"] else None
        place = _place(first["loc"], fields, first["type"] == "missing")
        raise InvalidRequest(_message(first["type"], first["msg"], place, name, model), name, first["type"]) from None


def _place(location: Sequence[int | str], value: Any, is_missing: bool) -> str:
    """A field as callers know it, within an object or an item of a list; the rest of a location consists of names of
    pydantic's types. ``value``: the whole body."""
    place = separator = ""
    for key in location:
        if isinstance(value, list) and isinstance(key, int):
            place, separator = (f"item {key + 1}" if place == "items" else f"{place}, item {key + 1}"), ", "
        elif isinstance(value, dict) and (key in value or (is_missing and key == location[-1])):
            place, separator = f"{place}{separator}{str(key)[:80]}", "."
        else:
            break
        value = value.get(key) if isinstance(value, dict) else value[key]
    return place


def _message(kind: str, message: str, place: str, name: str | None, model: type[BaseModel]) -> str:
    if name is None:
        return message.removeprefix("Value error, ")
    if kind == "extra_forbidden" and name not in model.model_fields:
        matches = difflib.get_close_matches(name, model.model_fields, 1)
        remedy = f"did you mean {matches[0]!r}?" if matches else f"valid fields are {', '.join(model.model_fields)}"
        return f"unknown field {name[:80]!r}; {remedy}"
    return f"{place}: {_PYTHON_TYPES.get(kind, message).removeprefix('Value error, ')}"


def _check_fields(value: object, name: str, param: str | None) -> None:
    if isinstance(value, dict) and len(value) > MAX_FIELDS:
        message = f"{name} has {len(value)} fields; at most {MAX_FIELDS} are allowed."
        raise ApiError(400, message, param, "json_too_complex")


def _too_large(limit: int, param: str | None) -> ApiError:
    message = f"The request is too large; at most {limit / 2**20:.4g} MiB are allowed."
    return ApiError(413, message, param, "request_too_large", {"Connection": "close"})


def _not_a_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _bounded_int(digits: str) -> int:
    """Clamp an integer to a value beyond every limit, so that the error names its field."""
    if len(digits.removeprefix("-")) > MAX_DIGITS:
        return -(10**MAX_DIGITS) if digits.startswith("-") else 10**MAX_DIGITS
    return int(digits)
