"""Speaks the parts of projects in the background: a few at once, in places that nobody else wants, through crashes."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import sqlite3
import time
from contextlib import aclosing

import anyio
from anyio import to_thread

from engine import EngineError, EngineFull, EngineStopped
from studio.audio.encode import WAV_HEADER, whole_wav
from studio.errors import Cancelled, LineFull, NotReady, StudioError, TooManyRequests, Unavailable
from studio.library.project_records import Job, PartTake
from studio.request import Origin, SpeechRequest
from studio.speech import SpeechService

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""How often a place is looked for while there is something to speak."""
AGAIN_SECONDS = 1.0
"""After the engine could not be used."""

NOT_ITS_FAULT = (LineFull, TooManyRequests, NotReady, Unavailable, EngineFull, EngineStopped)
"""What says nothing of the part: it is tried again until it goes."""


class Producer:
    """The one worker of a library's projects. Made anywhere; `run` in the event loop of the speech door."""

    def __init__(self, service: SpeechService, rows: int | None = None) -> None:
        """``rows``: so many parts at once at most, 0 none; None is half of the engine's places."""
        self._service = service
        self._rows = rows
        self._work = service.voices.library.project_work
        self._wake = asyncio.Event()
        self._speaking: set[asyncio.Task[None]] = set()
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
        """End what is being spoken of a project. From any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._service.cancel_all, f"{project_id}.")

    async def run(self) -> None:
        """Speak until cancelled; what was under way is then begun again at the next start."""
        self._loop = asyncio.get_running_loop()
        await to_thread.run_sync(self._work.recover)
        await self._service.host.ready()
        try:
            while True:
                self._wake.clear()
                with anyio.move_on_after(await self._begin()):
                    await self._wake.wait()
        finally:
            for task in self._speaking:
                task.cancel()
            await asyncio.gather(*self._speaking, return_exceptions=True)

    async def _begin(self) -> float:
        """Begin what there are places for; returns after how many seconds to look again if nothing wakes it."""
        while True:
            try:
                if len(self._speaking) >= self.at_once:
                    return math.inf
                if not self._has_place():
                    return LOOK_SECONDS
                job = await to_thread.run_sync(self._work.claim)
            except (NotReady, Unavailable):
                return AGAIN_SECONDS
            except sqlite3.Error as error:
                log.warning("the library cannot be read for projects: %s", error)
                return AGAIN_SECONDS
            if job is None:
                return math.inf
            task = asyncio.create_task(self._speak(job))
            self._speaking.add(task)
            task.add_done_callback(self._ended)

    def _has_place(self) -> bool:
        """Nobody waits, and one place stays free for whoever comes next, where there are several."""
        stats, places = self._service.stats(), self._service.host.engine().info.max_rows
        taken = max(stats.running, len(self._speaking))
        return not stats.waiting and taken < max(1, places - 1)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._speaking.discard(task)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a part could not be spoken", exc_info=error)

    async def _speak(self, job: Job) -> None:
        settings, begun = job.settings, time.perf_counter()
        try:
            request = SpeechRequest(
                text=job.text,
                voice=job.voice or settings.voice,
                format="wav",
                seed=job.seed,
                temperature=settings.temperature,
                top_p=settings.top_p,
                top_k=settings.top_k,
                speed=settings.speed,
            )
            origin = Origin(f"{job.project_id}.{secrets.token_hex(6)}", job.owner, patient=True, background=True)
            speech = await self._service.speak(request, origin)
            async with aclosing(speech):
                wav = b"".join([piece async for piece in speech.body])
        except NOT_ITS_FAULT as error:
            log.info("a part of %s waits: %s", job.project_id, error)
            await asyncio.sleep(AGAIN_SECONDS)
            await to_thread.run_sync(self._work.release, job)
        except Cancelled:
            await to_thread.run_sync(self._work.dropped, job)
        except (StudioError, EngineError) as error:
            await to_thread.run_sync(self._work.failed, job, str(error))
        else:
            samples = (len(wav) - WAV_HEADER) // 2
            take = PartTake(
                id=f"ptake_{secrets.token_hex(12)}",
                part_id=job.part_id,
                created=time.time(),
                recipe=job.recipe,
                voice=speech.voice if speech.revision is None else f"{speech.voice}@{speech.revision}",
                seed=speech.seed,
                finish_reason=speech.take.finish_reason,
                audio="",
                samples=samples,
                sample_rate=speech.sample_rate,
                characters=len(job.text),
                work_s=time.perf_counter() - begun,
            )
            whole = whole_wav(wav, speech.sample_rate)
            try:
                await to_thread.run_sync(self._work.done, job, take, whole)
            except (sqlite3.Error, OSError) as error:  # a full disk
                await to_thread.run_sync(self._work.failed, job, f"the sound could not be kept: {error}")
