"""Regenerates a doubtful part with new seeds, and keeps the best audio as measured by the check."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

from anyio import CapacityLimiter, to_thread

from engine import EngineError
from studio.errors import StudioError
from studio.library import Library
from studio.library.projects.project_records import ClaimedPart, Part, Project
from studio.library.projects.proof_records import Checked, ProofFinding
from studio.library.projects.proof_repository import drifts
from studio.library.takes.take import NewTake, Take
from studio.projects.part_generation import generate_part
from studio.projects.part_regeneration import spoken_part
from studio.projects.proof.part_check import VERSION
from studio.projects.proof.proof_runs import ProofRuns
from studio.speech.speech_service import SpeechService

MAX_TRIES = 8


@dataclass(frozen=True, slots=True)
class Improved:
    """The result of regenerating a part."""

    part: Part
    tries: int
    before: int
    """The weight of all findings in the previous take."""
    after: int
    """The weight of all findings in the chosen take; 0: nothing is doubtful."""
    is_replaced: bool


class ProofRegeneration:
    """Used from one event loop."""

    def __init__(self, library: Library, service: SpeechService, runs: ProofRuns, places: CapacityLimiter) -> None:
        """``places``: limits the parts regenerated at the same time, here and elsewhere."""
        self._library, self._service, self._runs, self._places = library, service, runs, places

    async def improve(
        self, project_id: str, owner_filter: str | None, part_id: str, tries: int, caller: str
    ) -> Improved:
        """Generate a part up to ``tries`` times, until nothing in it is doubtful; choose the best if it is as good.

        The previous take stays among the part's takes. Raises NotFound, EditConflict without audio of the current text,
        TooCostly, Unavailable, and SpeechService.speak's errors at the first try.
        """
        async with self._places:
            project, part, take = await to_thread.run_sync(
                spoken_part, self._library, project_id, owner_filter, part_id
            )
            language = project.settings.language
            lookup, has_recogniser = self._library.proofs.checked, self._runs.has_recogniser
            before = await to_thread.run_sync(lookup, take.id, VERSION, has_recogniser)
            if before is None:
                before = await self._runs.check(take, language, caller)
                await to_thread.run_sync(self._library.proofs.keep, take.id, before)
            results = list[tuple[int, int, NewTake, Checked]]()
            while len(results) < tries and not (results and min(result[0] for result in results) == 0):
                try:
                    new = await generate_part(self._service, _claim(project, part))
                    checked = await self._runs.check(new.take, language, caller, new)
                except (StudioError, EngineError):
                    if not results:
                        raise
                    break  # the best one so far
                results.append((await self._weight(project_id, new.take, checked), len(results), new, checked))
        weight, _, new, checked = min(results, key=lambda result: result[:2])
        previous_weight = await self._weight(project_id, take, replace(before, findings=_without_drift(before)))
        is_better = weight <= previous_weight
        if is_better:
            await to_thread.run_sync(self._keep, project_id, take, new, checked, part.text)
        part = await to_thread.run_sync(self._library.projects.part, project_id, owner_filter, part_id)
        return Improved(part, len(results), previous_weight, weight if is_better else previous_weight, is_better)

    async def _weight(self, project_id: str, take: Take, checked: Checked) -> int:
        """The weight of all findings, including differences from the median."""
        median = await to_thread.run_sync(self._library.proofs.median, project_id, take.voice_id or take.voice)
        drift_findings = drifts(median, checked.level, checked.pace, take.seconds) if median else []
        return checked.weight + sum(finding.weight for finding in drift_findings)

    def _keep(self, project_id: str, take: Take, new: NewTake, checked: Checked, text: str) -> None:
        self._library.part_queue.add_regenerated(new, take.id, len(text), text)
        self._library.proofs.keep(new.take.id, checked)
        self._library.proofs.settle_drift(project_id)


def _claim(project: Project, part: Part) -> ClaimedPart:
    seed = secrets.randbelow(2**31)  # the same seed would give the same take again
    settings = part.direction.over(project.settings)
    return ClaimedPart(project.id, part.id, project.owner, part.text, part.voice, settings, 0, seed)


def _without_drift(checked: Checked) -> tuple[ProofFinding, ...]:
    return tuple(finding for finding in checked.findings if finding.kind not in ("level", "pace"))
