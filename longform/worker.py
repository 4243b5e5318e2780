"""Generates queued parts in the background: a few at a time, on rows that no live request needs, despite crashes."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from engine import EngineError, EngineFull, EngineStopped
from longform.library.part_queue import PartQueue
from longform.library.project_records import ClaimedPart
from longform.part_generation import generate_part
from studio.errors import REFUSALS, Cancelled, LibraryUnavailable, NotReady, QueueFull, TooManyRequests, Unavailable
from studio.library.take import NewTake
from studio.speech.speech_service import SpeechService
from studio.supervisor import HealthCheck, end_tasks

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1  # interval at which to look for a free row while there may be parts to generate
RETRY_SECONDS = 1.0
"""Delay after the engine or the library was unavailable; doubled each time that audio cannot be stored."""
MAX_RETRY_SECONDS = 60.0
"""Maximum delay; audio that cannot be stored costs the engine as much as any other."""

RENEW_SECONDS = 5.0
"""Interval at which to renew leases, and to look for parts that another studio on the same library has queued,
cancelled or abandoned."""

TEMPORARY_ERRORS = (QueueFull, TooManyRequests, NotReady, Unavailable, LibraryUnavailable, EngineFull, EngineStopped)
"""Errors whose cause is not the part, which is retried until it succeeds."""

Result = TypeVar("Result")
Outcome = Callable[[], None]  # writes the outcome of a part into the library


class ProjectWorker:
    """Generates the parts of a library's projects, on which other studios may work too.

    Create it anywhere; call `run` in the event loop of the SpeechService.
    """

    def __init__(self, service: SpeechService, queue: PartQueue, rows: int | None = None) -> None:
        """``rows``: maximum parts generated at the same time; None: half of the engine's rows."""
        self._service = service
        self._rows = rows
        self._queue = queue
        self._wake = asyncio.Event()
        self._threads = CapacityLimiter(2)
        """Its own: claims must not wait for the threads of requests, nor requests for those of claims."""
        self.watch = HealthCheck("projects")
        self._running: dict[asyncio.Task[None], ClaimedPart] = {}
        self._abandoned = set[str]()  # leases of parts that stopped without an outcome
        self._stopped_projects = set[str]()  # projects stopped while a part was being claimed
        self._renew_at = 0.0
        self._pause, self._retry_at = RETRY_SECONDS, 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def at_once(self) -> int:
        """The number of parts generated at the same time without live requests. Raises NotReady, Unavailable."""
        rows = self._service.host.engine().info.max_rows
        return max(1, rows // 2) if self._rows is None else self._rows

    def wake(self) -> None:
        """Look for queued parts now. Thread-safe."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    def stop_project(self, project_id: str) -> None:
        """Stop all running parts of a project at once. Thread-safe."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, project_id)

    def _stop(self, project_id: str) -> None:
        self._stopped_projects.add(project_id)
        for task, claim in self._running.items():
            if claim.part.project_id == project_id:
                task.cancel()

    async def run(self) -> None:
        """Generate parts until cancelled; running parts then go back to the queue. Returns if no engine starts."""
        self._loop = asyncio.get_running_loop()
        if not await self._service.host.wait_until_ready():
            return
        try:
            while True:
                self._wake.clear()
                with anyio.move_on_after(await self._start_parts()):
                    await self._wake.wait()
        finally:
            claims = dict(self._running)
            await end_tasks(*claims)
            self._abandoned |= {claim.lease for claim in claims.values()}
            if self._abandoned:
                with self.watch.guarded("running parts could not be returned to the queue"):
                    await self._keep_leases()

    async def _in_thread(self, function: Callable[..., Result], *values: object) -> Result:
        return await to_thread.run_sync(function, *values, limiter=self._threads)

    async def _start_parts(self) -> float:
        """Start as many parts as there are free rows; returns the seconds until the next check, unless woken."""
        while True:
            try:
                if self._abandoned or time.monotonic() >= self._renew_at:
                    await self._keep_leases()
                if (wait := self._retry_at - time.monotonic()) > 0:
                    return min(wait, RENEW_SECONDS)
                if len(self._running) >= self.at_once:
                    return RENEW_SECONDS
                if not self._has_free_row():
                    return POLL_SECONDS
                self._stopped_projects.clear()
                claim = await self._in_thread(self._queue.claim)
            except (NotReady, Unavailable):
                return RETRY_SECONDS
            except (sqlite3.Error, OSError) as error:
                self.watch.report_failure("the library cannot be used for projects", error)
                return RETRY_SECONDS
            if claim is None:
                if not self._running:
                    self._reset_delay()
                return RENEW_SECONDS
            if claim.part.project_id in self._stopped_projects:
                self._abandoned.add(claim.lease)
                continue
            task = asyncio.create_task(self._generate(claim))
            self._running[task] = claim
            task.add_done_callback(self._on_done)

    async def _keep_leases(self) -> None:
        """Queue abandoned parts again, renew the leases of running ones, and cancel parts that lost their lease because
        they were cancelled, deleted or taken over. Raises LibraryUnavailable."""
        abandoned, self._abandoned = self._abandoned, set()
        running = {claim.lease: task for task, claim in self._running.items()}
        try:
            renewed = await self._in_thread(self._queue.renew, list(running)) if running else set()
            await self._in_thread(self._queue.recover, list(abandoned))
        except BaseException:
            self._abandoned |= abandoned
            raise
        self._renew_at = time.monotonic() + RENEW_SECONDS
        for lease in running.keys() - renewed:
            running[lease].cancel()

    def _has_free_row(self) -> bool:
        """Whether no request waits and, if there are several rows, one stays free for the next live request."""
        stats, rows = self._service.stats(), self._service.host.engine().info.max_rows
        used_rows = max(stats.running, len(self._running))
        return not stats.waiting and used_rows < max(1, rows - 1)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        claim = self._running.pop(task)
        self._wake.set()
        if task.cancelled():
            self._abandoned.add(claim.lease)
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._abandoned.add(claim.lease)
            self._back_off("a part could not be generated", error)

    def _back_off(self, failure: str, error: Exception) -> None:
        """Start nothing for a while, which gets longer with each consecutive failure."""
        self.watch.report_failure(failure, error)
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, MAX_RETRY_SECONDS)

    def _reset_delay(self) -> None:
        self.watch.report_success()
        self._pause, self._retry_at = RETRY_SECONDS, 0.0

    async def _generate(self, claim: ClaimedPart) -> None:
        """Generate a part and store the outcome."""
        try:
            outcome = await self._attempt(claim)
        except Exception as error:
            await self._in_thread(self._queue.fail, claim, f"internal error: {type(error).__name__}: {error}")
            raise
        await self._in_thread(outcome)

    async def _attempt(self, claim: ClaimedPart) -> Outcome:
        try:
            new = await generate_part(self._service, claim)
        except TEMPORARY_ERRORS as error:
            log.info("a part of %s has to wait: %s", claim.part.project_id, error)
            await asyncio.sleep(RETRY_SECONDS)
            return partial(self._queue.release, claim)
        except Cancelled:
            return partial(self._queue.drop, claim)
        except (*REFUSALS, EngineError) as error:
            return partial(self._queue.fail, claim, str(error))
        return await self._store(claim, new)

    async def _store(self, claim: ClaimedPart, new: NewTake) -> Outcome:
        """Store the take; returns the outcome that is still to be written."""
        try:
            await self._in_thread(self._queue.done, claim, new)
        except (sqlite3.Error, OSError) as error:
            self._back_off("the audio of a part could not be stored", error)
            return partial(self._queue.release, claim, f"the audio could not be stored: {error}")
        self._reset_delay()
        return lambda: None  # `done` has written it
