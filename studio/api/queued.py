"""Puts the work of routes into queues: what changes the library may wait for its lock, what reads or changes a project
grows with it, and of all other lookups one caller may send many."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from studio.api.sending import until_hangup
from studio.work import PLACE, WorkQueue, WorkQueues, read, write

Result = TypeVar("Result")


class LibraryRoute(APIRoute):
    """A blocking route of the library: it runs in the queue of lookups or, if it changes something, of writes, so that
    those who wait for the lock leave the others free. A coroutine uses `studio.work.read` and `write` itself."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_queue(endpoint, read if _is_reading(options) else write), **options)


class QueuedRoute(APIRoute):
    """A blocking route of projects that runs in a queue, and is dropped from it if its caller leaves before its turn; a
    route that is a coroutine does so itself, with `look_up` and `change`.

    Reading routes have a queue of their own, because changes may wait for another program's lock on the library.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_queue(endpoint, look_up if _is_reading(options) else change), **options)


def project_router() -> APIRouter:
    return APIRouter(tags=["projects"], route_class=QueuedRoute)


def _is_reading(options: dict[str, Any]) -> bool:
    return set(options.get("methods") or ["GET"]) <= {"GET"}


def _in_queue(endpoint: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(endpoint)
    async def wrapper(request: Request, **values: Any) -> Response:
        return await until_hangup(request, run(functools.partial(endpoint, request=request, **values)))

    return endpoint if inspect.iscoroutinefunction(endpoint) else wrapper


async def look_up(function: Callable[..., Result], *values: object, patient: bool = False) -> Result:
    """Call a blocking function that reads projects; within `until_hangup`, so that callers who leave give up places.

    ``patient``: wait even if the queue is full, because a refusal would lose earlier work. Raises QueueFull,
    TooManyRequests.
    """
    return await _run((place := PLACE.get()) and place[0].reads, patient, function, *values)


async def change(function: Callable[..., Result], *values: object, patient: bool = False) -> Result:
    """Like `look_up`, for a function that changes a project."""
    return await _run((place := PLACE.get()) and place[0].changes, patient, function, *values)


async def listed(request: Request, function: Callable[..., Result], *values: object) -> Result:
    """Call a blocking function whose work grows with the number of voices; callers who leave give up their places.
    Raises QueueFull, TooManyRequests, ClientDisconnect."""
    queues: WorkQueues = request.app.state.queues
    return await until_hangup(request, queues.lists.run(request.state.caller, function, *values))


async def _run(queue: WorkQueue | None, patient: bool, function: Callable[..., Result], *values: object) -> Result:
    if queue is None or (place := PLACE.get()) is None:  # without a request
        return await to_thread.run_sync(function, *values)
    async with queue.turn(place[1], patient) as turn:
        return await turn.run(function, *values)
