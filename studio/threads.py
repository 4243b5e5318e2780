"""Runs blocking calls and generators in threads for an event loop, which always waits for their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

Piece = TypeVar("Piece")
Result = TypeVar("Result")


async def in_threads(pieces: Generator[Piece, None, None]) -> AsyncGenerator[Piece, None]:
    """The pieces of a blocking generator. It is closed with the iteration, in a thread too: it may write a file."""
    try:
        while (piece := await run_uninterrupted(next, pieces, None)) is not None:
            yield piece
    finally:
        await run_uninterrupted(pieces.close)


async def run_uninterrupted(
    function: Callable[..., Result],
    *values: Any,
    limiter: CapacityLimiter | None = None,
    on_cancel: Callable[[], None] = lambda: None,
) -> Result:
    """Run a call in a thread and return its result. Waits for the end of the call even if cancelled.

    A running generator cannot be closed, and a file must not be written to after its end.
    ``on_cancel`` is called immediately on cancellation; it may make the function end sooner.
    """
    task = asyncio.ensure_future(to_thread.run_sync(function, *values, limiter=limiter))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        on_cancel()
        with CancelScope(shield=True):
            await asyncio.gather(task, return_exceptions=True)
        raise
