"""Work for a caller who may leave: the work is cancelled as soon as the connection ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

Result = TypeVar("Result")


async def until_hangup(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of ``work``; raises ClientDisconnect, the work cancelled, when the caller leaves first.

    The request's body must have been read.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_hangup(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _hangup(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
