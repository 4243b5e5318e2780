"""Request bodies of Fish Audio's clients (JSON, MessagePack or a form), and answers in JSON or MessagePack."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from python_multipart.multipart import parse_options_header

from studio.api.fish.message_pack import pack, unpack
from studio.api.http.body import MAX_BODY, parse_object, read_body
from studio.api.http.error_responses import ApiError
from studio.api.http.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library.client_files import Upload
from studio.unicode_text import check_strings

MESSAGE_PACK = "application/msgpack"
_MESSAGE_PACK = (MESSAGE_PACK, "application/x-msgpack", "application/vnd.msgpack")
URL_ENCODED = "application/x-www-form-urlencoded"
ALL_TYPES = ("application/json", MESSAGE_PACK, URL_ENCODED)
"""Content types accepted besides a multipart form if the request has no file."""
NESTED = ("references", "prosody", "features", "reference_id")
"""Structured fields, which are JSON in a form."""
MAX_FORM_FIELDS = 1000


async def read_fields(request: Request, limit: int = MAX_BODY) -> dict[str, Any]:
    """The fields of a body. In a form, structured fields are JSON.

    Raises ApiError (400, 408, 413, 415), InvalidRequest.
    """
    if (fields := await _read_object(request, limit)) is not None:
        return fields
    form = await _read_form(request, limit, "references", 1)
    return _nested({name: values[-1] for name, values in form.lists.items()})


async def read_files(request: Request, limit: int, file: str, max_files: int) -> Form:
    """A body with files: a form, or a map that contains bytes. ``file``: field of the largest part.

    Raises ApiError (400, 408, 413, 415), InvalidRequest.
    """
    if (fields := await _read_object(request, limit)) is None:
        return await _read_form(request, limit, file, max_files)
    lists = {name: value if isinstance(value, list) else [value] for name, value in fields.items()}
    uploads = {
        name: files
        for name, values in lists.items()
        if (files := [Upload("", value) for value in values if isinstance(value, bytes)])
    }
    if sum(map(len, uploads.values())) > max_files:
        raise InvalidRequest(f"there are more than {max_files} files", file)
    return Form({name: values for name, values in lists.items() if name not in uploads}, uploads)


def is_true(form: Form, name: str) -> bool:
    """Whether a field is true, as a boolean or as text."""
    return str(form.fields.get(name)).lower() == "true"


async def _read_object(request: Request, limit: int) -> dict[str, Any] | None:
    """The object in a JSON or MessagePack body; None for a form, which is not read yet."""
    kind = _kind(request)
    if kind in _MESSAGE_PACK:
        return unpacked(await read_body(request, limit))
    if kind == "application/json" or kind.endswith("+json"):
        return parse_object(await read_body(request, limit))
    return None


async def _read_form(request: Request, limit: int, file: str, max_files: int) -> Form:
    kind = _kind(request)
    if kind == "multipart/form-data":
        return await read_form(request, limit, file, max_files)
    if kind == URL_ENCODED:
        return Form(_of_query(await read_body(request, limit)), {})
    kinds = f"application/json, {MESSAGE_PACK} or multipart/form-data"
    raise ApiError(415, f"Send the request as {kinds}.", code="unsupported_media_type")


def unpacked(data: bytes) -> dict[str, Any]:
    """The map of a message. Raises ApiError, InvalidRequest."""
    try:
        value = unpack(data)
    except ValueError as error:
        raise ApiError(400, f"We could not parse the MessagePack of your request: {error}.") from None
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ApiError(400, "The body of the request must be a map with names as keys.")
    check_strings(value)
    return value


def answer(request: Request, value: dict[str, Any], status: int = 200) -> Response:
    """The value as MessagePack if the request asks for it by its query or Accept header, otherwise as JSON."""
    kind = request.query_params.get("format", "").lower() or request.headers.get("accept", "").lower()
    if "msgpack" in kind:
        return Response(pack(value), status, media_type=MESSAGE_PACK)
    return JSONResponse(value, status)


def _kind(request: Request) -> str:
    kind, _ = parse_options_header(request.headers.get("content-type"))
    return kind.decode("latin-1").lower()


def _of_query(body: bytes) -> dict[str, list[str]]:
    """Raises ApiError, InvalidRequest."""
    try:
        lists = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        message = f"We could not parse the form of your request; it may have {MAX_FORM_FIELDS} fields, in UTF-8."
        raise ApiError(400, message) from None
    check_strings(lists)
    return lists


def _nested(fields: dict[str, Any]) -> dict[str, Any]:
    """Drop blank fields of a form and parse the structured ones. Raises InvalidRequest."""
    fields = {name: value for name, value in fields.items() if value != ""}
    for name in NESTED:
        text = fields.get(name)
        if isinstance(text, str) and text.lstrip()[:1] in ("[", "{"):
            try:
                fields[name] = json.loads(text)
            except (ValueError, RecursionError):
                raise InvalidRequest(f"{name} must be JSON in a form", name) from None
    return fields
