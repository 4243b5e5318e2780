"""Listeners in several processes: enough that no server waits for its clients."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.serving.listener import Address, Listener

PROCESSES = max(1, min(4, (os.cpu_count() or 1) // 4))
LEAD_SECONDS = 0.5
"""Seconds until all processes have their task."""
TICK_SECONDS = 0.005


@dataclass(frozen=True)
class Load:
    """The listeners' measurements, and the load on their processes."""

    listeners: list[Listener]
    seconds: float
    """Seconds from the first request until the last listener had ended."""
    core_percent: float
    """Share of a core used by the busiest process."""
    late_ms: float
    """The worst delay of a process's event loop."""


class Crowd:
    """Processes of listeners, which end with the context."""

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
        self, address: Address, requests: Sequence[dict[str, Any]], moments: Sequence[float] | None = None
    ) -> Load:
        """Send each request at its moment, in seconds after the first one; without moments, all at once."""
        loop, begin = asyncio.get_running_loop(), time.time() + LEAD_SECONDS
        work = [(begin + moment, body) for moment, body in zip(moments or [0.0] * len(requests), requests, strict=True)]
        parts = [work[first :: self._count] for first in range(self._count)]
        futures = [loop.run_in_executor(self._pool, _listen, address, part) for part in parts if part]
        loads = await asyncio.gather(*futures)
        return Load(
            [listener for load in loads for listener in load.listeners],
            max(load.seconds for load in loads) - begin,
            max(load.core_percent for load in loads),
            max(load.late_ms for load in loads),
        )


def evenly(count: int, seconds: float) -> list[float]:
    """Moments of this many requests within so many seconds."""
    return [seconds * number / count for number in range(count)]


def silence(listener: Listener, buffered: float) -> float:
    """The longest silence, in seconds, for a listener who starts this long after the first piece."""
    longest = still = 0.0
    for (_, had), (came, _) in zip(listener.pieces, listener.pieces[1:], strict=False):
        late = came - (listener.first + buffered + still + had)
        if late > 0:
            longest, still = max(longest, late), still + late
    return longest


def _listen(address: Address, work: list[tuple[float, dict[str, Any]]]) -> Load:
    """One process's share, whose seconds are the time of day."""
    began, spent = time.perf_counter(), time.process_time()
    listeners, late = asyncio.run(_all(address, work))
    share = (time.process_time() - spent) / (time.perf_counter() - began)
    return Load(listeners, time.time(), 100 * share, 1e3 * late)


async def _all(address: Address, work: list[tuple[float, dict[str, Any]]]) -> tuple[list[Listener], float]:
    """The listeners, and the worst delay of this event loop in seconds."""
    late = 0.0

    async def one(moment: float, request: dict[str, Any]) -> Listener:
        await asyncio.sleep(moment - time.time())
        return await address.listen(request)

    async def tick() -> None:
        nonlocal late
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            late = max(late, time.perf_counter() - before - TICK_SECONDS)

    ticking = asyncio.create_task(tick())
    try:
        return await asyncio.gather(*(one(*arguments) for arguments in work)), late
    finally:
        ticking.cancel()
