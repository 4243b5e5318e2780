"""Speaks the parts of projects in the background: a few at once, in places that nobody else wants, through crashes."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial

import anyio
from anyio import to_thread

from engine import EngineError, EngineFull, EngineStopped
from studio.audio.encode import wav_samples, whole_wav
from studio.errors import (
    Cancelled,
    LibraryUnavailable,
    NotReady,
    QueueFull,
    StudioError,
    TooManyRequests,
    Unavailable,
)
from studio.library.projects.project_records import ClaimedPart
from studio.library.takes.take import NewTake, Timed
from studio.projects.part_request import origin_of, request_of
from studio.speech.speech_service import Speech, SpeechService
from studio.supervisor import HealthCheck

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""How often a place is looked for while there is something to speak."""
AGAIN_SECONDS = 1.0
"""After the engine or the library could not be used; twice as long each time that a sound could not be kept …"""
LONGEST_SECONDS = 60.0
"""… up to this: to speak what then is thrown away costs the engine as much as a part that stays."""

RENEW_SECONDS = 5.0
"""How often the leases of what is spoken are renewed, and how often it is looked for what another studio on the same
library has queued, cancelled, or left behind."""

NOT_ITS_FAULT = (QueueFull, TooManyRequests, NotReady, Unavailable, LibraryUnavailable, EngineFull, EngineStopped)
"""What says nothing of the part: it is tried again until it goes."""

Note = Callable[[], None]
"""Writes what became of a part into the library."""


class ProjectWorker:
    """A studio's worker for the projects of its library, which other studios may work on too.

    Made anywhere; `run` in the event loop of the SpeechService.
    """

    def __init__(self, service: SpeechService, rows: int | None = None) -> None:
        """``rows``: so many parts at once at most, 0 none; None is half of the engine's places."""
        self._service = service
        self._rows = rows
        self._work = service.voices.library.part_queue
        self._wake = asyncio.Event()
        self.watch = HealthCheck("projects")
        self._speaking: dict[asyncio.Task[None], ClaimedPart] = {}
        self._given_up = set[str]()
        """Leases of parts that count as being spoken and are not: what became of them was not noted."""
        self._stopped = set[str]()
        """Projects that were stopped while a part was being claimed."""
        self._renew_at = 0.0
        self._pause, self._not_before = AGAIN_SECONDS, 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def at_once(self) -> int:
        """How many parts are spoken at the same time when nobody else speaks. Raises NotReady, Unavailable."""
        places = self._service.host.engine().info.max_rows
        return max(1, places // 2) if self._rows is None else self._rows

    def wake(self) -> None:
        """There is something to speak. From any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    def stop_project(self, project_id: str) -> None:
        """End at once what is being planned or spoken of a project. From any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, project_id)

    def _stop(self, project_id: str) -> None:
        self._stopped.add(project_id)
        for task, part in self._speaking.items():
            if part.project_id == project_id:
                task.cancel()

    async def run(self) -> None:
        """Speak until cancelled, or not at all without an engine; what is under way then goes back in line."""
        self._loop = asyncio.get_running_loop()
        if not await self._service.host.comes_up():
            return
        try:
            while True:
                self._wake.clear()
                with anyio.move_on_after(await self._begin()):
                    await self._wake.wait()
        finally:
            parts = dict(self._speaking)
            for task in parts:
                task.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            self._given_up |= {part.lease for part in parts.values()}
            if self._given_up:
                with self.watch.guarded("parts under way could not be put back in line"):
                    await self._keep_leases()

    async def _begin(self) -> float:
        """Begin what there are places for; returns after how many seconds to look again if nothing wakes it."""
        while True:
            try:
                if self._given_up or time.monotonic() >= self._renew_at:
                    await self._keep_leases()
                if (wait := self._not_before - time.monotonic()) > 0:
                    return min(wait, RENEW_SECONDS)
                if len(self._speaking) >= self.at_once:
                    return RENEW_SECONDS
                if not self._has_place():
                    return LOOK_SECONDS
                self._stopped.clear()
                part = await to_thread.run_sync(self._work.claim)
            except (NotReady, Unavailable):
                return AGAIN_SECONDS
            except (sqlite3.Error, OSError) as error:
                self.watch.report_failure("the library cannot be used for projects", error)
                return AGAIN_SECONDS
            if part is None:
                if not self._speaking:
                    self._all_well()
                return RENEW_SECONDS
            if part.project_id in self._stopped:
                self._given_up.add(part.lease)
                continue
            task = asyncio.create_task(self._speak(part))
            self._speaking[task] = part
            task.add_done_callback(self._ended)

    async def _keep_leases(self) -> None:
        """Queue again what is not being spoken any more, renew the leases of what is being spoken here, and end what
        has lost its own: it was cancelled or deleted, or taken over. Raises LibraryUnavailable."""
        given_up, self._given_up = self._given_up, set()
        speaking = {part.lease: task for task, part in self._speaking.items()}
        try:
            held = await to_thread.run_sync(self._work.renew, list(speaking)) if speaking else set()
            await to_thread.run_sync(self._work.recover, list(given_up))
        except BaseException:
            self._given_up |= given_up
            raise
        self._renew_at = time.monotonic() + RENEW_SECONDS
        for lease in speaking.keys() - held:
            speaking[lease].cancel()

    def _has_place(self) -> bool:
        """Nobody waits, and one place stays free for whoever comes next, where there are several."""
        stats, places = self._service.stats(), self._service.host.engine().info.max_rows
        taken = max(stats.running, len(self._speaking))
        return not stats.waiting and taken < max(1, places - 1)

    def _ended(self, task: asyncio.Task[None]) -> None:
        part = self._speaking.pop(task)
        self._wake.set()
        if task.cancelled():
            self._given_up.add(part.lease)
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._given_up.add(part.lease)
            self._hold_off("a part could not be spoken", error)

    def _hold_off(self, what: str, error: Exception) -> None:
        """Begin nothing for a while, the longer the more often this comes in a row."""
        self.watch.report_failure(what, error)
        self._not_before = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_SECONDS)

    def _all_well(self) -> None:
        self.watch.report_success()
        self._pause, self._not_before = AGAIN_SECONDS, 0.0

    async def _speak(self, part: ClaimedPart) -> None:
        """Speak a part and note what became of it."""
        try:
            note = await self._attempt(part)
        except Exception as error:
            await to_thread.run_sync(
                self._work.failed, part, f"an error of the studio: {type(error).__name__}: {error}"
            )
            raise
        await to_thread.run_sync(note)

    async def _attempt(self, part: ClaimedPart) -> Note:
        """Speak a part; what is to be noted of it."""
        begun = time.perf_counter()
        try:
            request = request_of(part.settings, part.voice, part.text, part.seed)
            speech = await self._service.speak(request, origin_of(part.project_id, part.owner))
            async with aclosing(speech):
                wav = b"".join([piece async for piece in speech.body])
                words = await _times(speech)
        except NOT_ITS_FAULT as error:
            log.info("a part of %s waits: %s", part.project_id, error)
            await asyncio.sleep(AGAIN_SECONDS)
            return partial(self._work.release, part)
        except Cancelled:
            return partial(self._work.dropped, part)
        except (StudioError, EngineError) as error:
            return partial(self._work.failed, part, str(error))
        return await self._keep(part, speech, wav, words, time.perf_counter() - begun)

    async def _keep(
        self, part: ClaimedPart, speech: Speech, wav: bytes, words: list[Timed] | None, seconds: float
    ) -> Note:
        """Keep what was spoken; what is left to be noted. A library that cannot have it is none of the part's fault."""
        take = replace(
            speech.record,
            id=f"ptake_{secrets.token_hex(12)}",
            created=time.time(),
            seconds=wav_samples(len(wav)) / speech.sample_rate,
            media_type="audio/wav",
            sample_rate=speech.sample_rate,
            part_id=part.part_id,
            recipe=part.recipe,
            work_s=seconds,
        )
        new = NewTake(take, [whole_wav(wav, speech.sample_rate)], speech.codes, words)
        try:
            await to_thread.run_sync(self._work.done, part, new)
        except (sqlite3.Error, OSError) as error:
            self._hold_off("the sound of a part could not be kept", error)
            return partial(self._work.release, part, f"the sound could not be kept: {error}")
        self._all_well()
        return _nothing


async def _times(speech: Speech) -> list[Timed] | None:
    """When its words are heard; None where nobody can tell, which is no reason to lose the sound."""
    try:
        return await speech.timestamps("word")
    except EngineError as error:
        log.info("the words of %s have no times: %s", speech.request_id, error)
        return None


def _nothing() -> None:
    """What is left to be noted of a part that is done."""
