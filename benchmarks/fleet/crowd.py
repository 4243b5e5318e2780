"""Listeners in several processes: enough that no server waits for its clients."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.serving.listener import Address, Listener

PROCESSES = max(1, min(4, (os.cpu_count() or 1) // 4))
LEAD_SECONDS = 0.5
"""Seconds until all processes have their task."""


class Crowd:
    """Its processes live as long as the context."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._count = processes
        self._pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))

    def __enter__(self) -> Crowd:
        for warmed in [self._pool.submit(time.sleep, 0.2) for _ in range(self._count)]:
            warmed.result()
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    async def listen(
        self, address: Address, requests: list[dict[str, Any]], spread: float = 0.0
    ) -> tuple[list[Listener], float, float]:
        """The measurements of each listener, started evenly within ``spread`` seconds; the seconds until the last had
        ended; and the share of a core that the busiest listening process used."""
        loop, begin = asyncio.get_running_loop(), time.time() + LEAD_SECONDS
        moments = [begin + spread * number / len(requests) for number in range(len(requests))]
        work = list(zip(moments, requests, strict=True))
        parts = [work[first :: self._count] for first in range(self._count)]
        futures = [loop.run_in_executor(self._pool, _listen, address, part) for part in parts if part]
        answers = await asyncio.gather(*futures)
        listeners = [listener for listeners, _, _ in answers for listener in listeners]
        return listeners, max(ended for _, ended, _ in answers) - begin, max(share for _, _, share in answers)


def silence(listener: Listener, in_hand: float) -> float:
    """The longest silence, in seconds, for a listener who starts this long after the first piece."""
    longest = still = 0.0
    for (_, had), (came, _) in zip(listener.pieces, listener.pieces[1:], strict=False):
        late = came - (listener.first + in_hand + still + had)
        if late > 0:
            longest, still = max(longest, late), still + late
    return longest


def _listen(address: Address, work: list[tuple[float, dict[str, Any]]]) -> tuple[list[Listener], float, float]:
    began, spent = time.perf_counter(), time.process_time()
    listeners = asyncio.run(_all(address, work))
    return listeners, time.time(), (time.process_time() - spent) / (time.perf_counter() - began)


async def _all(address: Address, work: list[tuple[float, dict[str, Any]]]) -> list[Listener]:
    async def one(moment: float, request: dict[str, Any]) -> Listener:
        await asyncio.sleep(moment - time.time())
        return await address.listen(request)

    return await asyncio.gather(*(one(*arguments) for arguments in work))
