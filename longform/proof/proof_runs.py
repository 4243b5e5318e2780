"""Checks whole projects in the background, part by part, within limits, and generates doubtful parts again.

Each result is stored at once; of a part that is generated again with new seeds, the best audio is kept.

Without a recogniser only the sound is checked; once there is one, these parts count as unchecked. A run is in memory,
its results are in the library: after a restart, the next run continues with the unchecked parts.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from audio.encode import WAV_HEADER
from audio.voiceprint import Voiceprints
from engine import EngineError
from longform.library.project_records import ClaimedPart, Part
from longform.library.project_repository import ProjectLibrary
from longform.library.proof_records import Checked, ProofFigures, ToCheck
from longform.library.usual_sound import DRIFTS, TakeSound, UsualSound
from longform.part_generation import generate_part
from longform.part_regeneration import Places, spoken_part
from longform.proof.part_check import VERSION, check_take, missing_audio
from longform.proof.sound_check import edges_of
from longform.timeline import lay_out
from speechtext.word_times import Timed
from studio.api.queued import change, look_up
from studio.errors import REFUSALS, NotFound, TooCostly, Unavailable
from studio.library.take import NewTake, Take
from studio.speech.speech_service import SpeechService
from studio.voices.recogniser import Recogniser, Transcriber
from studio.work import WorkQueue

log = logging.getLogger(__name__)

MAX_TRIES = 8  # at generating a part
REMEMBERED = 500  # projects whose last run is kept
RunState = Literal["idle", "waiting", "running", "done", "cancelled", "failed"]
"""idle: not run since the studio started."""


@dataclass(eq=False, slots=True)
class ProofRun:
    """A run; the figures of its progress are in the library."""

    state: RunState = "idle"
    error: str | None = None
    checked: int = 0  # parts in this run
    started: float = 0.0  # time of the first part, by time.monotonic
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

    def __init__(
        self,
        library: ProjectLibrary,
        transcriber: Transcriber,
        voiceprints: Voiceprints,
        queue: WorkQueue,
        parts: WorkQueue,
    ) -> None:
        """``queue``: of runs; ``parts``: the recogniser's queue, for single parts."""
        self._library, self._transcriber, self._queue, self._parts = library, transcriber, queue, parts
        self._voiceprints = voiceprints
        self._runs: dict[str, ProofRun] = {}

    @property
    def has_recogniser(self) -> bool:
        return self._transcriber.is_there

    def run_of(self, project_id: str) -> ProofRun:
        """The current run, or the last one."""
        return self._runs.get(project_id) or ProofRun()

    @property
    def under_way(self) -> list[str]:
        """The projects that are being checked, or wait for it."""
        return [project_id for project_id, run in self._runs.items() if run.is_under_way]

    async def start(self, project_id: str, owner_filter: str | None, caller: str, recheck: bool = False) -> None:
        """Check all unchecked parts with audio of their current text; does nothing if a run is in progress.

        ``recheck``: checked parts too. Raises NotFound, QueueFull, TooManyRequests.
        """
        await look_up(self._library.projects.check, project_id, owner_filter, "edit")
        if self.run_of(project_id).is_under_way:
            return
        run = self._runs[project_id] = ProofRun("waiting")
        try:
            if recheck:
                await change(self._library.proofs.forget, project_id, owner_filter, self.has_recogniser)
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
            times = (await look_up(self._library.takes.word_times, [take.id], patient=True)).get(take.id, ())
        else:
            audio, times = np.frombuffer(b"".join(new.audio)[WAV_HEADER:], "<i2"), new.words or ()
        checked = audio, take, language, times, self._voiceprints
        if (name := self._transcriber.name) is not None:
            return await self._transcriber.run(caller, True, _check, name, *checked)
        try:
            async with self._parts.turn(caller, patient=True) as turn:
                return await turn.run(_check, None, "", *checked)
        except OSError as error:
            raise Unavailable(f"its audio cannot be read: {error.strerror}") from error

    async def _guarded(self, run: ProofRun, project_id: str, caller: str) -> None:
        """Raises only errors of queueing the run."""
        async with self._queue.turn(caller, most=1):
            run.state, run.started = "running", time.monotonic()
            try:
                await self._run(run, project_id, caller)
                run.state = "done"
            except NotFound:  # the project was deleted meanwhile
                run.state = "cancelled"
            except (*REFUSALS, sqlite3.Error, OSError) as error:
                log.warning("the check of %s stopped: %s", project_id, error)
                run.state, run.error = "failed", str(error)
            finally:
                if run.state == "running":
                    run.state, run.error = "failed", "it ended unexpectedly; the log has the reason"

    async def _run(self, run: ProofRun, project_id: str, caller: str) -> None:
        proofs, place = self._library.proofs, None
        while True:
            find = proofs.next_unchecked
            item = await look_up(find, project_id, None, VERSION, place, self.has_recogniser, patient=True)
            if item is not None:
                await self._check_part(item, project_id, caller)
                run.checked, place = run.checked + 1, item.place
            elif place is not None:
                place = None  # earlier parts may have been generated since
            else:
                break
        await change(_settle_drift, self._library, project_id, patient=True)

    async def _check_part(self, item: ToCheck, project_id: str, caller: str) -> None:
        """Raises StudioError, naming the part."""
        project = await look_up(self._library.projects.get, project_id, None, patient=True)
        try:
            checked = await self.check(item.take, project.settings.language, caller)
        except (TooCostly, Unavailable) as error:
            raise Unavailable(
                f"part {item.position + 1} could not be checked: {error}. What was checked before is kept: start the "
                "check again to continue"
            ) from error
        await change(self._library.proofs.keep, item.take.id, checked, patient=True)


def _settle_drift(library: ProjectLibrary, project_id: str) -> None:
    """Compare the checked takes with each other, and the beginnings of subtitles with their times. Raises NotFound."""
    delays: dict[str, float] = {}
    if library.proofs.is_timed(project_id):
        settings = library.projects.get(project_id, None).settings
        parts = library.projects.parts(project_id, None, only_chosen=True)
        timeline = lay_out(parts, settings, edges_of(library.files, settings))
        delays = {placed.part.id: timeline.delay(placed) for placed in timeline.placed}
    library.proofs.settle_drift(project_id, delays)


def _log_unexpected(project_id: str, task: asyncio.Task[None]) -> None:
    """Log an unexpected error that ended a run; expected errors are its result."""
    if not task.cancelled() and (error := task.exception()) and not isinstance(error, REFUSALS):
        log.error("the check of %s ended unexpectedly", project_id, exc_info=error)


def _check(
    recogniser: Recogniser | None,
    name: str,
    audio: Path | np.ndarray,
    take: Take,
    language: str,
    times: Sequence[Timed],
    voiceprints: Voiceprints,
) -> Checked:
    if isinstance(audio, Path):
        try:
            audio = np.frombuffer(audio.read_bytes()[WAV_HEADER:], "<i2")
        except FileNotFoundError:
            return missing_audio(name, take)
    return check_take(recogniser, name, audio, take, language, times, voiceprints)


@dataclass(frozen=True, slots=True)
class Improved:
    """The result of regenerating a part."""

    part: Part
    tries: int
    before: int  # weight of all findings in the previous take
    after: int  # weight of all findings in the chosen take; 0: nothing is doubtful
    is_replaced: bool


class ProofRegeneration:
    """Used from one event loop."""

    def __init__(self, library: ProjectLibrary, service: SpeechService, runs: ProofRuns, places: Places) -> None:
        """``places``: limits the parts regenerated at the same time, here and elsewhere, in turn by caller."""
        self._library, self._service, self._runs, self._places = library, service, runs, places

    async def improve(
        self, project_id: str, owner_filter: str | None, part_id: str, tries: int, caller: str
    ) -> Improved:
        """Generate a part up to ``tries`` times, until nothing in it is doubtful; choose the best if it is as good.

        The previous take stays among the part's takes. Raises NotFound, EditConflict without audio of the current text,
        TooCostly, Unavailable, and SpeechService.speak's errors at the first try.
        """
        async with self._places(caller):
            project, part, take = await look_up(spoken_part, self._library, project_id, owner_filter, part_id)
            language = project.settings.language
            lookup, has_recogniser = self._library.proofs.checked, self._runs.has_recogniser
            before = await look_up(lookup, take.id, VERSION, has_recogniser)
            if before is None:
                before = await self._runs.check(take, language, caller)
                await change(self._library.proofs.keep, take.id, before, patient=True)
            usual = await look_up(self._library.proofs.usual_sound, project_id, patient=True)
            results = list[tuple[_Score, int, NewTake, Checked]]()
            while len(results) < tries and not (results and min(results, key=_order)[0].weight == 0):
                try:
                    seed = secrets.randbelow(2**31)  # the same seed would give the same take again
                    settings = part.direction.over(project.settings)
                    new = await generate_part(self._service, ClaimedPart(part, project.owner, settings, seed))
                    checked = await self._runs.check(new.take, language, caller, new)
                except (*REFUSALS, EngineError):
                    if not results:
                        raise
                    break  # the best one so far
                results.append((_score(usual, new.take, checked, True), len(results), new, checked))
        score, _, new, checked = min(results, key=_order)
        findings = tuple(finding for finding in before.findings if finding.kind not in DRIFTS)
        previous = _score(usual, take, replace(before, findings=findings), False)
        is_better = score <= previous
        if is_better:
            await change(self._keep, project_id, take, new, checked, part.text, patient=True)
        part = await look_up(self._library.projects.part, project_id, owner_filter, part_id, patient=True)
        return Improved(part, len(results), previous.weight, min(score, previous).weight, is_better)

    def _keep(self, project_id: str, take: Take, new: NewTake, checked: Checked, text: str) -> None:
        self._library.part_queue.add_regenerated(new, take.id, len(text), text)
        self._library.proofs.keep(new.take.id, checked)
        _settle_drift(self._library, project_id)


class _Score(NamedTuple):
    """How doubtful a take is; the lower, the better."""

    weight: int  # of all findings
    distance: float  # from its voice, if it does not sound like it


def _order(result: tuple[_Score, int, NewTake, Checked]) -> tuple[_Score, int]:
    return result[:2]


def _score(usual: UsualSound, take: Take, checked: Checked, is_new: bool) -> _Score:
    voice = take.voice_id or take.voice
    sound = TakeSound(voice, take.voice, take.seconds, checked.level, checked.pace, checked.print)
    [drifts] = usual.findings([sound], is_new)
    is_other = any(finding.kind == "voice" for finding in drifts)
    weight = checked.weight + sum(finding.weight for finding in drifts)
    return _Score(weight, usual.distance(sound, is_new) if is_other else 0.0)
