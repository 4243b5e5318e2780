"""Reads untrusted multipart forms, limited while they arrive."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from fastapi import Request
from pydantic import TypeAdapter, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from studio.api.body import read_body
from studio.api.error_responses import ApiError
from studio.errors import InvalidRequest
from studio.library.client_files import Upload
from studio.unicode_text import check_strings

MAX_FIELD = 512 * 1024
"""Bytes of one text field: a cast of a thousand people with their aliases."""
MAX_FIELDS = 64
PIECE = 16 * 1024
"""Bytes parsed at a time; between pieces, other tasks run."""
Value = TypeVar("Value", float, int, bool)
_KINDS: dict[type, str] = {float: "a number", int: "a whole number", bool: "true or false"}
_EXTENDED_NAME = re.compile(rb";\s*filename\*\s*=\s*\"?(utf-8|iso-8859-1)'[^';\"]*'([^;\"\s]*)", re.IGNORECASE)
"""A file name as RFC 5987 encodes it: charset, language and percent-encoded bytes."""


@dataclass(frozen=True, slots=True)
class Form:
    """All values of each field, and all files of each field.

    Values are strings, unless the fields come from a JSON or MessagePack object.
    """

    lists: dict[str, list[Any]]
    uploads: dict[str, list[Upload]]

    @property
    def fields(self) -> dict[str, Any]:
        """The last value of each field."""
        return {name: values[-1] for name, values in self.lists.items() if values}

    @property
    def files(self) -> dict[str, bytes]:
        """The last file of each field."""
        return {name: uploads[-1].data for name, uploads in self.uploads.items()}

    @property
    def names(self) -> dict[str, str]:
        """The client's names of these files."""
        return {name: uploads[-1].name for name, uploads in self.uploads.items()}

    def text(self, *names: str) -> str:
        """The first of these fields that is not blank, else a blank. Raises InvalidRequest for another type."""
        return next((text for name in names for text in self.texts(name)[-1:] if text.strip()), "")

    def texts(self, name: str) -> list[str]:
        """All values of a field. Raises InvalidRequest for another type."""
        values = [value for value in self.lists.get(name, []) if value is not None]
        if not all(isinstance(value, str) for value in values):
            raise InvalidRequest(f"{name} must be a text", name)
        return values

    def value(self, name: str, kind: type[Value]) -> Value | None:
        """A number, a whole number, or true or false; None if the field is blank. Raises InvalidRequest."""
        text = self.text(name).strip()
        try:
            return TypeAdapter(kind).validate_python(text) if text else None
        except ValidationError:
            raise InvalidRequest(f"{name} must be {_KINDS[kind]}, not {text[:40]!r}", name) from None

    def file(self, *names: str) -> bytes:
        """The first of these files that was sent. Raises InvalidRequest."""
        for name in names:
            if name in self.files:
                return self.files[name]
        raise InvalidRequest(f"the form has no file named {names[0]}", names[0], "missing_required_parameter")


async def read_form(request: Request, limit: int, file: str, max_files: int = 1) -> Form:
    """The whole form, at most ``limit`` bytes; ``file``: field of the largest files.

    Raises ApiError (400, 408, 413, 415), InvalidRequest.
    """
    kind, options = parse_options_header(request.headers.get("content-type"))
    charset = options.get(b"charset", b"utf-8").lower()
    if kind != b"multipart/form-data" or charset not in (b"utf-8", b"utf8"):  # decoding other charsets may take minutes
        raise ApiError(415, "Send the request as multipart/form-data, in UTF-8.", code="unsupported_media_type")
    body = await read_body(request, limit, file)
    parser = _Parser(
        request.headers, _pieces(body), max_files=max_files, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, UnicodeDecodeError) as error:
        reason = getattr(error, "message", "it is malformed")
        raise ApiError(400, f"We could not parse the multipart body of your request: {reason}") from None
    read = await _contents(form)
    if elsewhere := {field.alias for field in request.scope["route"].dependant.query_params} & read.lists.keys():
        raise InvalidRequest(f"{(name := min(elsewhere))} belongs in the address: ?{name}=…, not in the form", name)
    check_strings(read.lists)
    check_strings({name: [upload.name for upload in uploads] for name, uploads in read.uploads.items()})
    return read


class _Parser(MultiPartParser):
    """Also accepts a file that is named only by ``filename*``: the parser ignores it, as RFC 7578 wants, but some
    clients send nothing else."""

    spool_max_size = sys.maxsize  # the body is in memory already, and the folder of temporary files may be full

    def on_headers_finished(self) -> None:
        part = self._current_part
        disposition = part.content_disposition or b""
        extended = _EXTENDED_NAME.search(disposition)
        if extended is None or b"filename" in parse_options_header(disposition)[1]:
            super().on_headers_finished()
            return
        part.content_disposition = disposition + b'; filename=""'  # else it would count as a text field
        super().on_headers_finished()
        assert part.file is not None
        part.file.filename = unquote_to_bytes(extended[2]).decode(extended[1].decode("ascii"))


async def _pieces(body: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]
        await asyncio.sleep(0)
    yield b""


async def _contents(form: FormData) -> Form:
    lists: dict[str, list[str]] = {}
    uploads: dict[str, list[Upload]] = {}
    try:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                uploads.setdefault(name, []).append(Upload(value.filename or "", await value.read()))
            else:
                lists.setdefault(name, []).append(value)
    finally:
        await form.close()
    return Form(lists, uploads)
