"""Checks whole projects in the background, part by part, within limits; each result is stored at once.

Without a recogniser only the sound is checked; once there is one, these parts count as unchecked. A run is in memory,
its results are in the library: after a restart, the next run continues with the unchecked parts.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from anyio import to_thread

from studio.audio.encode import WAV_HEADER
from studio.errors import NotFound, StudioError, TooCostly, Unavailable
from studio.library import Library
from studio.library.projects.proof_records import Checked, ProofFigures, ToCheck
from studio.library.takes.take import NewTake, Take, Timed
from studio.projects.proof.part_check import VERSION, check_take, missing_audio
from studio.voices.hearing.recogniser import Recogniser, Transcriber
from studio.work.work_queue import WorkQueue

log = logging.getLogger(__name__)

REMEMBERED = 500
"""Maximum projects whose last run is kept."""
RunState = Literal["idle", "waiting", "running", "done", "cancelled", "failed"]
"""idle: not run since the studio started."""


@dataclass(eq=False, slots=True)
class ProofRun:
    """A run; the figures of its progress are in the library."""

    state: RunState = "idle"
    error: str | None = None
    checked: int = 0
    """Parts in this run."""
    started: float = 0.0
    """Time of the first part, by time.monotonic."""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def is_under_way(self) -> bool:
        return self.state in ("waiting", "running")

    def seconds_left(self, figures: ProofFigures, has_recogniser: bool) -> float | None:
        """Estimated seconds left; None while unknown."""
        if self.state != "running" or not self.checked:
            return None
        checked = figures.compared if has_recogniser else figures.checked
        return (time.monotonic() - self.started) / self.checked * (figures.parts - checked)


class ProofRuns:
    """Used from one event loop."""

    def __init__(self, library: Library, transcriber: Transcriber, queue: WorkQueue, parts: WorkQueue) -> None:
        """``queue``: of runs; ``parts``: the recogniser's queue, for single parts."""
        self._library, self._transcriber, self._queue, self._parts = library, transcriber, queue, parts
        self._runs: dict[str, ProofRun] = {}

    @property
    def has_recogniser(self) -> bool:
        return self._transcriber.is_there

    def run_of(self, project_id: str) -> ProofRun:
        """The current run, or the last one."""
        return self._runs.get(project_id) or ProofRun()

    async def start(self, project_id: str, owner_filter: str | None, caller: str, recheck: bool = False) -> None:
        """Check all unchecked parts with audio of their current text; does nothing if a run is in progress.

        ``recheck``: checked parts too. Raises NotFound, QueueFull, TooManyRequests.
        """
        await to_thread.run_sync(self._library.projects.check, project_id, owner_filter, "edit")
        if self.run_of(project_id).is_under_way:
            return
        run = self._runs[project_id] = ProofRun("waiting")
        try:
            if recheck:
                await to_thread.run_sync(self._library.proofs.forget, project_id, owner_filter, self.has_recogniser)
        except BaseException:
            del self._runs[project_id]
            raise
        if not run.is_under_way:  # cancelled meanwhile
            return
        run.task = asyncio.create_task(self._guarded(run, project_id, caller))
        run.task.add_done_callback(partial(_log_unexpected, project_id))
        await asyncio.sleep(0)  # until it is queued or refused
        if run.task.done() and (refusal := run.task.exception()):
            del self._runs[project_id]
            raise refusal
        for finished in [key for key, other in self._runs.items() if not other.is_under_way][:-REMEMBERED]:
            del self._runs[finished]

    async def cancel(self, project_id: str) -> None:
        """Stop the run of a project; results so far are kept."""
        run = self.run_of(project_id)
        if not run.is_under_way:
            return
        if run.task is not None:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)
        run.state, run.error = "cancelled", None

    async def close(self) -> None:
        """Stop all runs."""
        for project_id in list(self._runs):
            await self.cancel(project_id)

    async def check(self, take: Take, language: str, caller: str, new: NewTake | None = None) -> Checked:
        """Check a take, with the recogniser if there is one; ``new``: the same with its audio, if it is not stored.

        Raises TooCostly, Unavailable.
        """
        audio: Path | np.ndarray
        times: Sequence[Timed]
        if new is None:
            audio = self._library.files.path(take.audio)
            times = (await to_thread.run_sync(self._library.takes.word_times, [take.id])).get(take.id, ())
        else:
            audio, times = np.frombuffer(b"".join(new.audio)[WAV_HEADER:], "<i2"), new.words or ()
        if (name := self._transcriber.name) is not None:
            return await self._transcriber.run(caller, True, _check, name, audio, take, language, times)
        try:
            async with self._parts.turn(caller, patient=True) as turn:
                return await turn.run(_check, None, "", audio, take, language, times)
        except OSError as error:
            raise Unavailable(f"its audio cannot be read: {error}") from error

    async def _guarded(self, run: ProofRun, project_id: str, caller: str) -> None:
        """Raises only errors of queueing the run."""
        async with self._queue.turn(caller):
            run.state, run.started = "running", time.monotonic()
            try:
                await self._run(run, project_id, caller)
                run.state = "done"
            except NotFound:  # the project was deleted meanwhile
                run.state = "cancelled"
            except (StudioError, sqlite3.Error, OSError) as error:
                log.warning("the check of %s stopped: %s", project_id, error)
                run.state, run.error = "failed", str(error)
            finally:
                if run.state == "running":
                    run.state, run.error = "failed", "it ended unexpectedly; the log has the reason"

    async def _run(self, run: ProofRun, project_id: str, caller: str) -> None:
        proofs, position = self._library.proofs, -1
        while True:
            find = proofs.next_unchecked
            item = await to_thread.run_sync(find, project_id, None, VERSION, position, self.has_recogniser)
            if item is None and position < 0:
                break
            if item is None:
                position = -1  # earlier parts may have been generated since
                continue
            await self._check_part(item, project_id, caller)
            run.checked, position = run.checked + 1, item.position
        await to_thread.run_sync(proofs.settle_drift, project_id)

    async def _check_part(self, item: ToCheck, project_id: str, caller: str) -> None:
        """Raises StudioError, naming the part."""
        project = await to_thread.run_sync(self._library.projects.get, project_id, None)
        try:
            checked = await self.check(item.take, project.settings.language, caller)
        except (TooCostly, Unavailable) as error:
            raise Unavailable(
                f"part {item.position + 1} could not be checked: {error}. What was checked before is kept: start the "
                "check again to continue"
            ) from error
        await to_thread.run_sync(self._library.proofs.keep, item.take.id, checked)


def _log_unexpected(project_id: str, task: asyncio.Task[None]) -> None:
    """Log an unexpected error that ended a run; expected errors are its result."""
    if not task.cancelled() and (error := task.exception()) and not isinstance(error, StudioError):
        log.error("the check of %s ended unexpectedly", project_id, exc_info=error)


def _check(
    recogniser: Recogniser | None,
    name: str,
    audio: Path | np.ndarray,
    take: Take,
    language: str,
    times: Sequence[Timed],
) -> Checked:
    if isinstance(audio, Path):
        try:
            audio = read_samples(audio)
        except FileNotFoundError:
            return missing_audio(name, take)
    return check_take(recogniser, name, audio, take, language, times)


def read_samples(path: Path) -> np.ndarray:
    """Int16 (samples,) of a mono WAV in the library. Blocking. Raises OSError."""
    return np.frombuffer(path.read_bytes()[WAV_HEADER:], "<i2")
