"""Adds the long form to a studio: projects with their worker, routes and Gradio endpoints."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

from longform.cast_service import CastService
from longform.chat_endpoint import ChatEndpoint
from longform.feeds import Feeds
from longform.file_jobs import FileJobs
from longform.library.project_records import Project
from longform.library.project_repository import ProjectLibrary
from longform.part_regeneration import PartRegeneration
from longform.project_service import ProjectService
from longform.proof.proof_runs import ProofRegeneration, ProofRuns
from longform.routes.arrangement_routes import ArrangementRoutes
from longform.routes.cast_routes import CastRoutes
from longform.routes.export_routes import ProjectFiles
from longform.routes.feed_routes import FeedRoutes
from longform.routes.project_routes import ProjectRoutes
from longform.routes.proof_routes import ProofRoutes
from longform.voice_proposals import ProjectVoices
from longform.worker import ProjectWorker
from studio.jobs import JobCaller, JobEntry
from studio.services import Studio
from studio.work import QueueKind, WorkQueue, WorkQueues

REGENERATIONS = QueueKind(
    "regenerations", "the part", "parts", "regenerated", 2, 126, 3600, "regenerate fewer parts at a time"
)
DOCUMENTS = QueueKind(
    "documents", "the document", "documents", "read", 2, 30, 150, "send it in several pieces, or as plain text"
)
SHORT_DOCUMENTS = replace(DOCUMENTS, name="short_documents")
"""Documents that are read within milliseconds: they need not wait for those that take minutes."""
PROOFS = QueueKind(
    "proofs", "the project", "projects", "checked", 8, 8, 86_400, "cancel one, or try again when one is done"
)
"""Checks of the audio of whole projects, one of each caller at a time, since a book takes hours. For each part, they
wait for a turn in the queue of transcripts, in which callers take turns."""
BOOKS = QueueKind("books", "the audio book", "audio books", "measured or written", 2, 62, 7200, "request its chapters")
"""Whole projects, generated or measured before the first byte is sent."""
LISTED = 100  # maximum projects in the list of jobs, the newest of those with work under way


def register(studio: Studio) -> None:
    """Add projects to a studio, whose library has them."""
    library, speech, additions = studio.library, studio.speech, studio.additions
    assert isinstance(library, ProjectLibrary)
    queues, transcriber = speech.queues, studio.clips.transcriber
    worker = ProjectWorker(speech, library.part_queue)
    voices = ProjectVoices(library, studio.voices)
    projects = ProjectService(library, worker, voices, queues.add(DOCUMENTS), queues.add(SHORT_DOCUMENTS))
    chat = ChatEndpoint(*studio.settings.chat) if studio.settings.chat else None
    cast = CastService(library, speech, voices, chat)
    prints = studio.library_prints.prints
    proofs = ProofRuns(library, transcriber, prints, queues.add(PROOFS), queues.transcribing)
    regenerations = queues.add(REGENERATIONS)

    def places(caller: str) -> AbstractAsyncContextManager[None]:
        return speech.in_turn(regenerations.turn(caller))

    regeneration = ProofRegeneration(library, speech, proofs, places)
    additions.jobs.append((worker.watch, worker.run))
    books = queues.add(BOOKS)
    feeds = Feeds(projects, queues.exports, books)
    files = FileJobs()
    additions.listed += ProjectJobs(projects, proofs, queues), files
    additions.closers += proofs.close, feeds.close
    additions.gradio_endpoints.append(partial(_endpoints, projects, queues.reads))
    additions.routers += [
        ProjectRoutes(projects, cast).router(),
        CastRoutes(library, cast).router(),
        ArrangementRoutes(projects, PartRegeneration(library, studio.regeneration, places)).router(),
        ProofRoutes(library, proofs, regeneration, queues.exports).router(),
        ProjectFiles(projects, studio.word_times, queues.exports, books, files).router(),
        FeedRoutes(feeds, library, studio.settings).router(),
    ]


def _endpoints(projects: ProjectService, reads: WorkQueue) -> object:
    from longform.project_endpoints import ProjectEndpoints  # Gradio takes seconds to import

    return ProjectEndpoints(projects, reads)


class ProjectJobs:
    """What projects add to the list of jobs: parts that wait to be spoken, and checks of audio."""

    kinds = frozenset({"parts", "check"})

    def __init__(self, projects: ProjectService, proofs: ProofRuns, queues: WorkQueues) -> None:
        self._projects, self._proofs, self._queues = projects, proofs, queues

    async def jobs(self, caller: JobCaller) -> list[JobEntry]:
        page, checked = self._projects.library.projects.page, json.dumps(self._proofs.under_way)
        listed = await self._queues.reads.run(caller.name, page, caller.owner_filter, LISTED, None, checked)
        return [entry for project in listed for entry in (*self._parts(project), *self._checks(project))]

    async def cancel(self, kind: str, key: str, caller: JobCaller) -> None:
        if kind == "parts":
            await self._queues.changes.run(caller.name, self._projects.cancel, key, caller.owner_filter)
        else:
            check = self._projects.library.projects.check
            await self._queues.reads.run(caller.name, check, key, caller.owner_filter, "edit")
            await self._proofs.cancel(key)

    def _parts(self, project: Project) -> list[JobEntry]:
        left = project.parts["queued"] + project.parts["speaking"]
        if not left:
            return []
        eta, total = self._projects.seconds_left(project), sum(project.parts.values())
        return [JobEntry("parts", project.id, project.title, project.parts["done"], total, left, eta, project.id)]

    def _checks(self, project: Project) -> list[JobEntry]:
        run = self._proofs.run_of(project.id)
        if not run.is_under_way:
            return []
        return [JobEntry("check", project.id, project.title, run.checked, 0, project=project.id)]
