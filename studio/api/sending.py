"""Sends files: byte ranges, so that players can seek, and pieces of work that ends when its client disconnects."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import anyio
from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.requests import ClientDisconnect

from studio.api.error_responses import ApiError
from studio.speech.delivery import Speech
from studio.work import CancelToken, WorkQueue, in_threads

PIECE = 256 * 1024
ReadBytes = Callable[[int, int], Generator[bytes, None, None]]
"""Reads from a start to an end (exclusive)."""

_BYTES = re.compile(r"\s*bytes\s*=", re.IGNORECASE)
_SPAN = re.compile(r"\s*([0-9]{0,4000})-([0-9]{0,4000})\s*")
"""Python does not convert longer numbers."""

Result = TypeVar("Result")


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
    return StreamingResponse(in_threads(read(start, stop)), status, media_type=media_type, headers=headers)


def file_reader(file: Path | bytes) -> ReadBytes:
    """A reader of a file, given by its path or its contents; it is opened on the first read."""

    def read(start: int, stop: int) -> Generator[bytes, None, None]:
        yield from read_span(io.BytesIO(file) if isinstance(file, bytes) else file.open("rb"), start, stop)

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


async def until_hangup(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of ``work``. If the client disconnects first, cancel the work and raise ClientDisconnect.

    The request's body must have been read.
    """
    hangup = CancelToken(ClientDisconnect)
    watcher = asyncio.ensure_future(_hangup(request))
    watcher.add_done_callback(lambda _: hangup.cancel())
    try:
        return await hangup.run(work)
    finally:
        watcher.cancel()


async def streamed(
    request: Request,
    queue: WorkQueue,
    pieces: Generator[bytes, None, None],
    media_type: str,
    headers: dict[str, str] | None = None,
) -> StreamingResponse:
    """Send a file while it is written in a queue; its first piece is ready. Raises the errors of `WorkQueue.stream`."""
    stream = await until_hangup(request, queue.stream(request.state.caller, pieces))
    return StreamingResponse(stream, media_type=media_type, headers=headers)


async def release(work: asyncio.Future[Any]) -> None:
    """Cancel work whose result is no longer needed; close the speech if it already exists."""
    work.cancel()
    with anyio.CancelScope(shield=True):
        result: object = (await asyncio.gather(work, return_exceptions=True))[0]
        if isinstance(result, Speech):
            await result.aclose()


async def _hangup(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
