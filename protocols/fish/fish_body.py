"""Request bodies of Fish Audio's clients (JSON, MessagePack or a form), answers, and the names that they use."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from python_multipart.multipart import parse_options_header

from protocols import constants_of
from protocols.fish.message_pack import pack, unpack
from studio.api.body import MAX_BODY, converted, parse_object, read_body
from studio.api.error_responses import ApiError
from studio.api.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library.client_files import Upload
from studio.unicode_text import check_strings
from studio.voices.resolver import DEFAULT

MESSAGE_PACK = "application/msgpack"
_MESSAGE_PACK = (MESSAGE_PACK, "application/x-msgpack", "application/vnd.msgpack")
URL_ENCODED = "application/x-www-form-urlencoded"
ALL_TYPES = ("application/json", MESSAGE_PACK, URL_ENCODED)
"""Content types accepted besides a multipart form if the request has no file."""
NESTED = ("references", "prosody", "features", "reference_id")
"""Structured fields, which are JSON in a form."""
MAX_FORM_FIELDS = 1000

_OURS = "voice_"
_MARK = "f15a0d10"
"""Prefix of Fish Audio ids made from the studio's, whose 24 digits follow."""
_CONVERTED = re.compile(rf"{_MARK}([0-9a-f]{{24}})(@\d+)?")
FIELDS = {"input": "text", "ref_text": "the text of a reference"}
"""Fields of the studio's API, and their names for clients of Fish Audio."""
_VOICE_ID = re.compile(rf"(?<='){_OURS}[0-9a-f]{{24}}\b")
CONSTANTS = constants_of("fish")
SENT_UNASKED = frozenset(CONSTANTS["built_in_voices"])
"""Hosted voices of LiveKit, vision-agents, Dify and Fish Audio's guides, which mean the default voice."""


async def read_fields(request: Request) -> dict[str, Any]:
    """The fields of a body. In a form, structured fields are JSON.

    Raises ApiError (400, 408, 413, 415), InvalidRequest.
    """
    if (fields := await _read_object(request, MAX_BODY)) is not None:
        return fields
    return _nested((await _read_form(request, MAX_BODY, "references", 1)).fields)


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
        return await converted(request, await read_body(request, limit), unpacked)
    if kind == "application/json" or kind.endswith("+json"):
        return await converted(request, await read_body(request, limit), parse_object)
    return None


async def _read_form(request: Request, limit: int, file: str, max_files: int) -> Form:
    kind = _kind(request)
    if kind == "multipart/form-data":
        return await read_form(request, limit, file, max_files)
    if kind == URL_ENCODED:
        return Form(await converted(request, await read_body(request, limit), _of_query), {})
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


def answer(request: Request, value: dict[str, Any], status: int = 200, default: str = "json") -> Response:
    """The value as MessagePack or as JSON: as the request asks by its query or Accept header, else as ``default``."""
    kind = request.query_params.get("format", "").lower() or request.headers.get("accept", "").lower()
    if "msgpack" in (kind if "msgpack" in kind or "json" in kind else default):
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


def fish_id(voice_id: str) -> str:
    """The Fish Audio id of a voice."""
    return _MARK + voice_id.removeprefix(_OURS)


def voice_of(reference: str) -> str:
    """The library's reference for a client's: converts Fish Audio ids; slugs and names stay."""
    if match := _CONVERTED.fullmatch(reference):
        return f"{_OURS}{match[1]}{match[2] or ''}"
    return DEFAULT if reference in SENT_UNASKED else reference


def for_fish_client(message: str, param: str | None) -> str:
    """An error message with the field names and voice ids of Fish Audio's clients."""
    field = FIELDS.get(param or "")
    if field and message.startswith(f"{param} "):
        message = field + message.removeprefix(param or "")
    return _VOICE_ID.sub(lambda match: fish_id(match[0]), message)
