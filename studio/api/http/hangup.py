"""Cancels work when its client disconnects, and releases its result."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

import anyio
from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from studio.speech.cancellation import CancelToken
from studio.speech.speech_service import Speech
from studio.work.work_queue import WorkQueue

Result = TypeVar("Result")


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
