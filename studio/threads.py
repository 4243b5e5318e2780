"""What blocks, in threads: calls of an event loop that are over when they are, generators of such, several at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

Piece = TypeVar("Piece")
Item = TypeVar("Item")
Result = TypeVar("Result")


async def in_threads(pieces: Generator[Piece, None, None]) -> AsyncGenerator[Piece, None]:
    """Pieces that block while they are made. What is encoded or read ends with the listener, in a thread as well: there
    may be an index to write."""
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
    """The result of a call in a thread, which is over when this is: whoever is cancelled waits for it all the same.

    A generator that still runs could not be closed, and what is written to would be written to after its end.
    ``on_cancel`` is called at once, and may have the function end sooner.
    """
    calling = asyncio.ensure_future(to_thread.run_sync(function, *values, limiter=limiter))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        on_cancel()
        with CancelScope(shield=True):
            await asyncio.gather(calling, return_exceptions=True)
        raise


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """What ``work`` makes of each item, several of them at once. Blocking; the threads keep no process from ending.

    All of them are done, or have failed, when this returns; then it raises the first OSError, if there was one.
    """
    results: dict[int, Result] = {}
    errors: dict[int, OSError] = {}
    left = iter(range(len(items)))  # next() of it is atomic

    def run() -> None:
        for at in left:
            try:
                results[at] = work(items[at])
            except OSError as error:
                errors[at] = error

    helpers = [threading.Thread(target=run, daemon=True) for _ in range(min(threads, len(items)) - 1)]
    for helper in helpers:
        helper.start()
    run()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[min(errors)]
    return [results[at] for at in range(len(items))]
