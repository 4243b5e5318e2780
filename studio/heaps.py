"""Memory that a process of the studio has freed goes back to the system from time to time."""

from __future__ import annotations

import asyncio

from engine import release_free_memory

RELEASE_SECONDS = 60.0
"""How often; a page that a thread needs again costs it microseconds."""


async def keep_heaps_small() -> None:
    """Give back, until cancelled, what each of many threads has freed: it would add up to hundreds of MiB."""
    while True:
        await asyncio.sleep(RELEASE_SECONDS)
        await asyncio.to_thread(release_free_memory)
