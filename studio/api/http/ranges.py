"""Byte ranges, so that players can seek: Range, If-Range and If-None-Match."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from studio.api.http.error_responses import ApiError
from studio.threads import in_threads

PIECE = 256 * 1024
ReadBytes = Callable[[int, int], Generator[bytes, None, None]]
"""Reads from a start to an end (exclusive)."""

_BYTES = re.compile(r"\s*bytes\s*=", re.IGNORECASE)
_SPAN = re.compile(r"\s*([0-9]{0,4000})-([0-9]{0,4000})\s*")
"""Python does not convert longer numbers."""


def range_response(
    request: Request, size: int, tag: str, read: ReadBytes, media_type: str, headers: dict[str, str] | None = None
) -> Response:
    """The ``size`` bytes from ``read``, or the requested range of them; 304 if the client has them.

    ``tag`` identifies the bytes. Several ranges at once and other units than bytes are answered with all bytes.
    Raises ApiError (416).
    """
    etag = f'"{tag}"'
    headers = {"Accept-Ranges": "bytes", "ETag": etag, "Cache-Control": "private, no-cache"} | (headers or {})
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    start, stop, status = 0, size, 200
    requested = request.headers.get("range", "")
    unit = _BYTES.match(requested)
    if unit and "," not in requested and request.headers.get("if-range", etag) == etag:
        start, stop = _span(requested[unit.end() :], size)
        status = 206
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    headers["Content-Length"] = str(stop - start)
    if request.method == "HEAD":
        return Response(status_code=status, media_type=media_type, headers=headers)
    return StreamingResponse(in_threads(read(start, stop)), status, media_type=media_type, headers=headers)


def file_reader(path: Path) -> ReadBytes:
    """A reader of a file, which opens it on the first read."""

    def read(start: int, stop: int) -> Generator[bytes, None, None]:
        yield from read_span(path.open("rb"), start, stop)

    return read


def read_span(file: BinaryIO, start: int, stop: int) -> Generator[bytes, None, None]:
    """Read a range of a file, and close it."""
    with file:
        file.seek(start)
        while start < stop and (piece := file.read(min(PIECE, stop - start))):
            start += len(piece)
            yield piece


def _span(requested: str, size: int) -> tuple[int, int]:
    """Start and end (exclusive) of a range. Raises ApiError."""
    span = _SPAN.fullmatch(requested)
    first, last = span.groups() if span else ("", "")
    start = int(first) if first else max(size - int(last or 0), 0)
    stop = min(int(last) + 1, size) if first and last else size
    if start < stop:
        return start, stop
    message = f"Range must lie within bytes 0 to {size - 1}, such as bytes=0-{size - 1}."
    raise ApiError(416, message, "Range", "range_not_satisfiable", {"Content-Range": f"bytes */{size}"})
