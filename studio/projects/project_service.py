"""What owners do with their projects, from page, API and clients alike: documents in, a timeline out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anyio import to_thread

from studio.audio.tags import Tags
from studio.errors import NotFinished
from studio.library import Library
from studio.library.projects.project_records import NewPart, Part, Project, ProjectSettings
from studio.library.projects.project_repository import MAX_TITLE, PartChanges, Which
from studio.library.takes.take import Take
from studio.library.voices.known_voices import KnownVoices
from studio.projects.casting.cast import CharacterVoice, proposed_voices
from studio.projects.document_import import DocumentImport
from studio.projects.documents import Document
from studio.projects.timeline import Timeline, lay_out
from studio.projects.trim_silence import quiet_edges
from studio.projects.worker import ProjectWorker
from studio.voices.resolver import VoiceResolver
from studio.work.job import check_job
from studio.work.work_queue import WorkQueue

MOST_PROPOSED = 100
"""Voices of the library among which those of characters are chosen."""


class ProjectService:
    """What owners do with their projects; ``sees`` is as for Projects.

    `create` is used from one event loop; the other calls block for milliseconds, on any thread.
    """

    def __init__(self, library: Library, worker: ProjectWorker, voices: VoiceResolver, documents: WorkQueue) -> None:
        """``documents``: in which they are read."""
        self.library = library
        self._documents = documents
        self._voices = voices
        self._projects = library.projects
        self._worker = worker

    async def create(
        self,
        owner: str,
        wanted: DocumentImport,
        title: str = "",
        settings: ProjectSettings | None = None,
        start: bool = False,
    ) -> Project:
        """A project of a document's parts, read in its turn; ``start`` has them spoken at once.

        Without ``title`` it is called as the document says, else as its file. Being cancelled ends the reading, and no
        project is made. Raises InvalidDocument, InvalidRequest, TooCostly, QueueFull, TooManyRequests, and UnknownVoice
        for a voice of the settings or the cast; a part may name one that is not there, and fails alone when its turn
        comes.
        """
        settings = settings or ProjectSettings()
        is_voice = await to_thread.run_sync(self._checked_voices, settings.voice, *wanted.cast.values())
        document = await wanted.read(self._documents, owner, is_voice)
        return await to_thread.run_sync(self._keep, owner, wanted, document, title, settings, start)

    async def characters(self, caller: str, wanted: DocumentImport, narrator: str | None) -> list[CharacterVoice]:
        """The characters of a document, with a voice proposed for each; ``narrator``: the project's voice.

        Raises as `create`.
        """
        characters = await wanted.characters(self._documents, caller)

        def proposed() -> list[CharacterVoice]:
            voice = self._voices.find(narrator)
            voices = self.library.voices.page(limit=MOST_PROPOSED)
            return proposed_voices(characters, voices, voice.slug if voice else None)

        return await to_thread.run_sync(proposed)

    def _checked_voices(self, *names: str | None) -> KnownVoices:
        self._check_voices(*names)
        return self.library.voices.known_now()

    def _keep(
        self,
        owner: str,
        wanted: DocumentImport,
        document: Document,
        title: str,
        settings: ProjectSettings,
        start: bool,
    ) -> Project:
        parts = [
            NewPart(part.text, part.chapter, part.voice, part.pause, part.start, part.end) for part in document.passages
        ]
        named = " ".join(wanted.file_name.rpartition(".")[0].split())[:MAX_TITLE]
        title = title.strip() or document.title or named or parts[0].text.splitlines()[0][:80]
        settings = replace(
            settings,
            author=settings.author or document.author,
            language=settings.language or document.language,
        )
        project = self._projects.create(owner, title, wanted.kind, parts, settings, document.cover, document.skipped)
        return self.ask(project.id, owner, "missing") if start else project

    def edit(
        self,
        project_id: str,
        sees: str | None,
        title: str | None,
        settings: Callable[[ProjectSettings], ProjectSettings],
    ) -> Project:
        """Change title and settings, of which ``settings`` makes the new ones. Raises NotFound, InvalidRequest."""
        before = self._projects.get(project_id, sees).settings
        wanted = settings(before)
        if wanted.voice != before.voice:
            self._check_voices(wanted.voice)
        return self._projects.edit(project_id, sees, title, None if wanted == before else wanted)

    def edit_part(self, project_id: str, sees: str | None, part_id: str, changes: PartChanges) -> Part:
        """Raises NotFound, InvalidRequest."""
        self._check_voices(changes.voice)
        return self._projects.edit_part(project_id, sees, part_id, changes)

    def insert_part(self, project_id: str, sees: str | None, part: NewPart, after: str | None) -> Part:
        """A new part after another one; None: before the first. Raises NotFound, InvalidRequest."""
        self._check_voices(part.voice)
        return self.library.arrangement.insert(project_id, sees, part, after)

    def _check_voices(self, *names: str | None) -> None:
        for name in dict.fromkeys(names):
            if name:
                self._voices.find(name)

    def ask(self, project_id: str, sees: str | None, which: Which) -> Project:
        """Raises NotFound."""
        project = self._projects.ask(project_id, sees, which)
        self._worker.wake()
        return project

    def pause(self, project_id: str, sees: str | None, paused: bool) -> Project:
        """Raises NotFound."""
        project = self._projects.pause(project_id, sees, paused)
        self._worker.wake()
        return project

    def cancel(self, project_id: str, sees: str | None) -> Project:
        """Forget what is not spoken yet, end what is being spoken. Raises NotFound."""
        project = self._projects.cancel(project_id, sees)
        self._worker.stop_project(project_id)
        return project

    def delete(self, project_id: str, sees: str | None) -> float:
        """For how many seconds it can be restored; nothing of it is spoken meanwhile. Raises NotFound."""
        self._projects.delete(project_id, sees)
        self._worker.stop_project(project_id)
        return self.library.trash.seconds

    def restore(self, project_id: str, sees: str | None) -> Project:
        """Restore a deleted project, paused where parts of it wait. Raises NotFound, InvalidRequest."""
        self.library.trash.restore_one("project", project_id, sees, "project")
        return self._projects.get(project_id, sees)

    def seconds_left(self, project: Project) -> float | None:
        """Until what is asked for is spoken, at the pace so far; None: not known, or paused."""
        if project.state != "running" or project.pace is None:
            return None
        return project.characters_left * project.pace / max(1, self._worker.at_once)

    def timeline(self, project_id: str, sees: str | None, partial: bool) -> Timeline:
        """When which part is heard. Raises NotFound, and NotFinished unless ``partial`` leaves out what is missing."""
        project = self._projects.get(project_id, sees)
        edges = self._edges if project.settings.trim else None
        timeline = lay_out(self._projects.parts(project_id, sees, only_chosen=True), project.settings, edges)
        if not timeline.placed or (timeline.missing and not partial):
            raise NotFinished(
                f"{timeline.missing} of {sum(project.parts.values())} parts have not been spoken in their "
                "present form; speak them first, or ask for what exists with partial=true",
                "partial",
            )
        return timeline

    def _edges(self, take: Take) -> tuple[int, int]:
        check_job()
        return quiet_edges(self.library.files.path(take.audio), take.sample_rate)

    def tags(self, project_id: str, sees: str | None, timeline: Timeline) -> Tags:
        """What the files of a project say of themselves. Raises NotFound."""
        project = self._projects.get(project_id, sees)
        seconds = timeline.seconds
        return Tags(
            title=project.title,
            author=project.settings.author,
            language=project.settings.language,
            cover=self.library.covers.get(project_id, sees),
            chapters=tuple((title, seconds(start), seconds(end)) for title, start, end in timeline.chapters),
        )
