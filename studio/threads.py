"""What blocks, in threads: calls of an event loop that are over when they are, and generators of such."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

Piece = TypeVar("Piece")
Result = TypeVar("Result")


async def in_threads(pieces: Generator[Piece, None, None]) -> AsyncGenerator[Piece, None]:
    """The pieces of a generator that blocks. It is closed with the iteration, in a thread as well: it may have an index
    to write."""
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
    """The result of a call in a thread, which is over when this is: a caller who is cancelled waits for it too.

    A running generator cannot be closed, and a file must not be written to after its end.
    ``on_cancel`` is called at once; it may make the function end sooner.
    """
    calling = asyncio.ensure_future(to_thread.run_sync(function, *values, limiter=limiter))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        on_cancel()
        with CancelScope(shield=True):
            await asyncio.gather(calling, return_exceptions=True)
        raise
