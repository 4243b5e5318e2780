"""Bodies of Fish Audio's clients: JSON, MessagePack or a form, as the content type says; and answers in either."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from python_multipart.multipart import parse_options_header

from studio.api.fish.message_pack import pack, unpack
from studio.api.http.body import MAX_BODY, parse_object, read_body
from studio.api.http.errors import ApiError
from studio.api.http.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.strings import check_strings

MESSAGE_PACK = "application/msgpack"
_MESSAGE_PACK = (MESSAGE_PACK, "application/x-msgpack", "application/vnd.msgpack")
NESTED = ("references", "prosody", "features", "reference_id")
"""Fields that hold more than a text, in forms written as JSON."""
MAX_FORM_FIELDS = 1000


async def read_fields(request: Request, limit: int = MAX_BODY) -> dict[str, Any]:
    """The fields of a body without files. Raises ApiError (400, 408, 413, 415), InvalidRequest."""
    kind = _kind(request)
    if kind in _MESSAGE_PACK:
        return unpacked(await read_body(request, limit))
    if kind == "application/json" or kind.endswith("+json"):
        return parse_object(await read_body(request, limit))
    if kind == "application/x-www-form-urlencoded":
        return _nested(_of_query(await read_body(request, limit)))
    if kind == "multipart/form-data":
        return _nested(dict((await read_form(request, limit, "references")).fields))
    raise _unsupported()


async def read_files(request: Request, limit: int, file: str) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
    """The fields of a body and its files, all of each name; a field that comes several times is a list.

    Raises ApiError (400, 408, 413, 415), InvalidRequest.
    """
    if _kind(request) != "multipart/form-data":
        fields = await read_fields(request, limit)
        files = {name: several for name, value in fields.items() if (several := _binary(value))}
        return {name: value for name, value in fields.items() if name not in files}, files
    form: Form = await read_form(request, limit, file)
    return dict(form.lists), {name: [upload.data for upload in uploads] for name, uploads in form.uploads.items()}


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


def answer(request: Request, value: dict[str, Any], status: int = 200, packed: bool = False) -> Response:
    """As MessagePack where the request asks for it (or, with ``packed``, does not ask for JSON), else as JSON."""
    wanted = request.query_params.get("format", "").lower() or request.headers.get("accept", "").lower()
    names_json, names_packed = "json" in wanted, "msgpack" in wanted
    if names_packed or (packed and not names_json):
        return Response(pack(value), status, media_type=MESSAGE_PACK)
    return JSONResponse(value, status)


def _kind(request: Request) -> str:
    kind, _ = parse_options_header(request.headers.get("content-type"))
    return kind.decode("latin-1").lower()


def _binary(value: object) -> list[bytes]:
    values = value if isinstance(value, list) else [value]
    return [data for data in values if isinstance(data, bytes)]


def _of_query(body: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        message = f"We could not parse the form of your request; it may have {MAX_FORM_FIELDS} fields in UTF-8."
        raise ApiError(400, message) from None
    check_strings(dict(pairs))
    return dict(pairs)


def _nested(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a form, which are texts: blank ones are absent, nested ones JSON. Raises InvalidRequest."""
    fields = {name: value for name, value in fields.items() if value != ""}
    for name in NESTED:
        text = fields.get(name)
        if isinstance(text, str) and text.lstrip()[:1] in ("[", "{"):
            try:
                fields[name] = json.loads(text)
            except (ValueError, RecursionError):
                raise InvalidRequest(f"{name} must be JSON in a form", name) from None
    return fields


def _unsupported() -> ApiError:
    kinds = f"application/json, {MESSAGE_PACK} or multipart/form-data"
    return ApiError(415, f"Send the request as {kinds}.", code="unsupported_media_type")
