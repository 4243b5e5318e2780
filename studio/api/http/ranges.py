"""Sound that can be asked for in part, so that players may seek: the one reader of Range and If-Range."""

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
"""From the first byte to the one after the last."""

_BYTES = re.compile(r"\s*bytes\s*=", re.IGNORECASE)
_SPAN = re.compile(r"\s*([0-9]{0,4000})-([0-9]{0,4000})\s*")
"""Of longer numbers Python makes no integers."""


def ranged(
    request: Request, size: int, tag: str, read: ReadBytes, media_type: str, headers: dict[str, str] | None = None
) -> Response:
    """The ``size`` bytes that ``read`` gives, or the part of them that is asked for; 304 to who has them already.

    ``tag`` tells these bytes from all others. To several ranges at once, and to those in another unit than bytes, the
    whole is the answer. Raises ApiError (416).
    """
    etag = f'"{tag}"'
    headers = {"Accept-Ranges": "bytes", "ETag": etag, "Cache-Control": "private, no-cache"} | (headers or {})
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    start, stop, status = 0, size, 200
    wanted = request.headers.get("range", "")
    unit = _BYTES.match(wanted)
    if unit and "," not in wanted and request.headers.get("if-range", etag) == etag:
        start, stop = _span(wanted[unit.end() :], size)
        status = 206
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    headers["Content-Length"] = str(stop - start)
    if request.method == "HEAD":
        return Response(status_code=status, media_type=media_type, headers=headers)
    return StreamingResponse(in_threads(read(start, stop)), status, media_type=media_type, headers=headers)


def of_path(path: Path) -> ReadBytes:
    """Reads a file, which is opened with the first piece."""

    def read(start: int, stop: int) -> Generator[bytes, None, None]:
        yield from of_file(path.open("rb"), start, stop)

    return read


def of_file(file: BinaryIO, start: int, stop: int) -> Generator[bytes, None, None]:
    """Closes the file at the end."""
    with file:
        file.seek(start)
        while start < stop and (piece := file.read(min(PIECE, stop - start))):
            start += len(piece)
            yield piece


def _span(wanted: str, size: int) -> tuple[int, int]:
    """The first byte and the one after the last. Raises ApiError."""
    span = _SPAN.fullmatch(wanted)
    first, last = span.groups() if span else ("", "")
    start = int(first) if first else max(size - int(last or 0), 0)
    stop = min(int(last) + 1, size) if first and last else size
    if start < stop:
        return start, stop
    message = f"Range must lie within bytes 0 to {size - 1}, such as bytes=0-{size - 1}."
    raise ApiError(416, message, "Range", "range_not_satisfiable", {"Content-Range": f"bytes */{size}"})
