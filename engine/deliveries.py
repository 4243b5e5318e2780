"""Items on their way from threads to those who wait in event loops, each of which is woken once for many."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Any


class Deliveries:
    """`put` and `send` may be called from any thread.

    Waking an event loop is a system call, during which another thread takes the interpreter's lock. Who wakes it for
    each of 64 chunks waits 64 times until what became of the chunk before has been sent.
    """

    def __init__(self) -> None:
        self._items: deque[tuple[asyncio.AbstractEventLoop, asyncio.Queue[Any], Any]] = deque()
        self._sending = threading.Lock()

    def put(self, loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[Any], item: Any) -> None:
        """Have the next `send` put this into a queue of that event loop."""
        self._items.append((loop, queue, item))

    def send(self) -> None:
        """Put all there is into its queues, in order; what was for an event loop that is closed is dropped."""
        with self._sending:
            by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Queue[Any], Any]]] = {}
            while self._items:
                loop, queue, item = self._items.popleft()
                by_loop.setdefault(loop, []).append((queue, item))
            for loop, items in by_loop.items():
                with suppress(RuntimeError):  # closed under its takes: nobody listens
                    loop.call_soon_threadsafe(_put_all, items)


def _put_all(items: list[tuple[asyncio.Queue[Any], Any]]) -> None:
    for queue, item in items:
        queue.put_nowait(item)
