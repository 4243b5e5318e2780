"""Creates, edits, queues and exports projects for the page, the API and other clients."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from longform.cast_service import MOST_PROPOSED
from longform.credits import Credits, CreditsUndo, ReplacedCredits, check_texts, texts_of
from longform.document_import import DocumentImport, guessed_language
from longform.import_previews import ImportPreview, ImportPreviews
from longform.library.project_records import NewPart, Part, PartChanges, Project, ProjectSettings, ReplacedValues
from longform.library.project_repository import PartSelection, ProjectLibrary
from longform.library.row_mapping import clean_title
from longform.library.table_plan import TableUpdate
from longform.proof.sound_check import edges_of
from longform.tags import Tags
from longform.timeline import Timeline, damaged, lay_out
from longform.voice_proposals import ProjectVoices, Role, proposed_voices
from longform.worker import ProjectWorker
from manuscript.documents import Document, Passage
from manuscript.encodings import without_controls
from manuscript.passages import MAX_TITLE, PAUSE_WITHIN, InvalidDocument
from studio.api.queued import change, look_up
from studio.errors import DamagedAudio, InvalidRequest, NotFound
from studio.library.names import KnownVoices, split_revision
from studio.work import WorkQueue

_OF_PASSAGES = {field.name for field in fields(NewPart)} & {field.name for field in fields(Passage)}
"""The fields that a part has from its passage."""


def usual_title(document: Document, file_name: str) -> str:
    """The title of a project that is given none: the document's own, else its file's name, else its first line."""
    return (
        document.title
        or " ".join(without_controls(file_name.rpartition(".")[0]).split())[:MAX_TITLE]
        or document.passages[0].text.splitlines()[0][:80]
    )


class NotFinished(InvalidRequest, code="project_not_finished", status=409):
    """Some parts of the project have no audio yet."""


class ProjectService:
    """Operations on projects. ``owner_filter``: the owner whose rights apply; None, without keys, allows everything.

    The async methods belong to one event loop; the others block for milliseconds and may be called on any thread.
    """

    def __init__(
        self,
        library: ProjectLibrary,
        worker: ProjectWorker,
        voices: ProjectVoices,
        documents: WorkQueue,
        short_documents: WorkQueue,
    ) -> None:
        """``documents``, ``short_documents``: the queues in which these are read."""
        self.library = library
        self._documents, self._short_documents = documents, short_documents
        self._voices = voices
        self._projects = library.projects
        self._credits = Credits(library)
        self._worker = worker
        self.previews = ImportPreviews()
        self._editing = [threading.Lock() for _ in range(32)]
        """Locks, selected by the project's id: an edit of settings depends on earlier ones, and changes parts too."""

    async def create(
        self,
        owner: str,
        request: DocumentImport,
        title: str = "",
        settings: ProjectSettings | None = None,
        start: bool = False,
    ) -> Project:
        """Read a document and create a project of its parts; ``start`` queues all of them.

        A blank ``title`` means `usual_title`. A request that has already created its project returns that one.
        Cancelling the call stops the reading, and no project is created. Raises InvalidDocument, InvalidRequest,
        TooCostly, QueueFull, TooManyRequests, and UnknownVoice for a voice of the settings or the cast. A part may
        name an unknown voice: only that part fails, when it is generated.
        """
        settings = settings or ProjectSettings()
        voices = (*request.cast.values(), *(person.voice for person in request.people))
        is_voice = await self._short_documents.run(owner, self._checked_voices, owner, settings.voice, *voices)
        settings = replace(settings, voice=settings.voice and is_voice.by_slug(settings.voice))
        document = await request.read(self._queue_of(request), owner, is_voice)
        return await change(self._store, owner, request, document, title, settings, start)

    def made(self, owner: str, project_id: str) -> Project | None:
        """The project of a request that was sent before; None if it is not created yet, or deleted. Blocking."""
        try:
            return self._projects.get(project_id, owner)
        except NotFound:
            return None

    async def update_from(
        self, project_id: str, owner_filter: str | None, caller: str, request: DocumentImport, apply: bool
    ) -> TableUpdate:
        """Compare a project with a new version of its table; ``apply``: also make it the same.

        Raises NotFound, NotAllowed, InvalidRequest, and the errors of `create`.
        """

        def known() -> tuple[DocumentImport, KnownVoices]:
            project = self._projects.get(project_id, owner_filter)
            voices = {
                name: member.voice
                for member in self.library.cast.members(project_id, owner_filter)
                for name in (member.name, *member.aliases)
                if member.id and member.voice
            }
            columns = project.settings.columns if request.columns is None else request.columns
            is_voice = self.library.seen_by(project.owner).voices.known_voices()
            return replace(request, cast=voices | dict(request.cast), columns=columns), is_voice

        prepared, is_voice = await look_up(known)
        try:
            document = await prepared.read(self._queue_of(prepared), caller, is_voice)
        except InvalidDocument as error:
            if error.param != "columns" or request.columns is not None:
                raise
            guessed = replace(prepared, columns=None)  # a table whose columns have other names now
            document = await guessed.read(self._queue_of(guessed), caller, is_voice)

        def check_voices() -> None:
            """Parts are generated with the owner's rights: a table adds no voice that its sender may not use."""
            used = self._projects.voices(project_id, owner_filter)
            named = {passage.voice for passage in document.passages if passage.voice} - used
            for voice in named:
                if is_voice(split_revision(voice)[0]):
                    self._voices.check(project_id, owner_filter, voice)

        await look_up(check_voices)
        tables = self.library.tables
        if apply:
            update = await change(tables.update, project_id, owner_filter, document, _new_part)
            former = (one.before.get("voice") for one in update.replaced)
            self.library.part_edits.remember_voices(project_id, *former)
            return update
        return await look_up(tables.compare, project_id, owner_filter, document)

    async def preview(self, caller: str, document_import: DocumentImport) -> ImportPreview:
        """Read a document and keep it for a while, so that it can be imported without being sent and read again.

        Raises InvalidDocument, TooCostly, QueueFull, TooManyRequests.
        """
        document, sections = await document_import.preview(self._queue_of(document_import), caller)
        return self.previews.keep(
            caller, document, sections, document_import.kind, document_import.file_name, document_import.with_notes
        )

    async def characters(self, caller: str, document_import: DocumentImport, narrator: str | None) -> list[Role]:
        """The characters of a document, with a voice proposed for each; ``narrator``: the project's voice.

        Raises the errors of `create`.
        """
        roles = await document_import.roles(self._queue_of(document_import), caller)

        def proposed() -> list[Role]:
            resolver = self._voices.voices.seen_by(caller)
            voice, voices = resolver.find(narrator), resolver.library.voices.page(limit=MOST_PROPOSED)
            return proposed_voices(roles, voices, voice.slug if voice else None, only_missing=True)

        return await look_up(proposed)

    def _queue_of(self, request: DocumentImport) -> WorkQueue:
        return self._short_documents if request.is_small else self._documents

    def _checked_voices(self, owner: str, *names: str | None) -> KnownVoices:
        self._voices.check_for_owner(owner, owner, *names)
        return self.library.seen_by(owner).voices.known_voices()

    def _store(
        self,
        owner: str,
        request: DocumentImport,
        document: Document,
        title: str,
        settings: ProjectSettings,
        start: bool,
    ) -> Project:
        ids = {character.name: character.id for character in document.cast}
        parts = [_new_part(passage, ids.get(passage.speaker), settings) for passage in document.passages]
        title = title.strip() or usual_title(document, request.file_name)
        settings = replace(
            settings,
            author=settings.author or document.author,
            language=settings.language or document.language,
            columns={column.name: column.role for column in document.columns if column.role},
        )
        texts = texts_of(title, settings)
        check_texts(texts, len(parts) + sum(map(bool, texts)))  # before anything is stored
        extras = (document.cover, document.skipped, document.cast, request.project_id)
        editing = self._editing[hash(request.project_id) % len(self._editing)]
        with editing if request.project_id else contextlib.nullcontext():
            if request.project_id and (made := self.made(owner, request.project_id)):
                return made
            project = self._projects.create(owner, title, request.kind, parts, settings, *extras)
            if settings.opening_credits or settings.closing_credits:
                project, _ = self._change(project, owner, None, settings)
            return self.queue_parts(project.id, owner, "missing") if start else project

    def edit(
        self,
        project_id: str,
        owner_filter: str | None,
        change: Callable[[Project], tuple[str | None, ProjectSettings]],
        sharing: str | None = None,
        undo: CreditsUndo | None = None,
    ) -> tuple[Project, Project, ReplacedCredits]:
        """Change the title and the settings, or share it; ``change`` maps the project to its new ones, with None for
        the same title; ``undo``: of the credits, if that undoes a change, whose voice need not be usable. Returns
        the project before and after, and what was replaced in its credits.

        Raises NotFound, InvalidRequest.
        """
        with self._editing[hash(project_id) % len(self._editing)]:
            project = self._projects.get(project_id, owner_filter)
            title, after = change(project)
            if after.voice != project.settings.voice and undo is None:
                after = replace(after, voice=self._voices.check(project_id, owner_filter, after.voice))
            if undo:
                after, undo = self._credits.restore(project, owner_filter, after, undo)
            changed = self._change(project, owner_filter, title, after, sharing, undo)
            if after.voice != project.settings.voice:
                self.library.part_edits.remember_voices(project_id, project.settings.voice)
            return project, *changed

    def _change(
        self,
        before: Project,
        owner_filter: str | None,
        title: str | None,
        settings: ProjectSettings,
        sharing: str | None = None,
        undo: CreditsUndo | None = None,
    ) -> tuple[Project, ReplacedCredits]:
        new_title = before.title if title is None else clean_title(title)
        credits = self._credits.plan(before, new_title, settings, owner_filter, undo)
        after = None if credits.settings == before.settings else credits.settings
        project = self._projects.edit(before.id, owner_filter, title, after, sharing, before.settings)
        replaced = self._credits.apply(project, owner_filter, credits, undo)
        if any(credits.before) or any(credits.after):
            project = self._projects.get(before.id, owner_filter)
        for end, name in zip(replaced.ends, ("opening_part", "closing_part"), strict=True):
            end.before, end.after = getattr(before.settings, name), getattr(project.settings, name)
        return project, replaced

    def edit_part(
        self, project_id: str, owner_filter: str | None, part_id: str, changes: PartChanges
    ) -> tuple[Part, list[ReplacedValues]]:
        """The part, and what was replaced. Raises NotFound, InvalidRequest, EditConflict."""
        changes = replace(changes, voice=self._voices.check(project_id, owner_filter, changes.voice))
        part, replaced = self.library.part_edits.edit_part(project_id, owner_filter, part_id, changes)
        self.library.part_edits.remember_voices(project_id, *(one.before.get("voice") for one in replaced))
        return part, replaced

    def insert_part(self, project_id: str, owner_filter: str | None, part: NewPart, after: str | None) -> Part:
        """Insert a part after the part ``after``, or as the first one if None. Raises NotFound, InvalidRequest."""
        part = replace(part, voice=self._voices.check(project_id, owner_filter, part.voice))
        return self.library.arrangement.insert(project_id, owner_filter, part, after)

    def queue_parts(
        self, project_id: str, owner_filter: str | None, which: PartSelection, chapter: str | None = None
    ) -> Project:
        """Queue parts for generation, of one chapter or all. Raises NotFound."""
        project = self._projects.queue_parts(project_id, owner_filter, which, chapter)
        self._worker.wake()
        return project

    def pause(self, project_id: str, owner_filter: str | None, paused: bool) -> Project:
        """Raises NotFound."""
        project = self._projects.pause(project_id, owner_filter, paused)
        self._worker.wake()
        return project

    def cancel(self, project_id: str, owner_filter: str | None) -> Project:
        """Remove queued parts from the queue and stop those being generated. Raises NotFound."""
        project = self._projects.cancel(project_id, owner_filter)
        self._worker.stop_project(project_id)
        return project

    def delete(self, project_id: str, owner_filter: str | None) -> float:
        """Delete a project and stop its parts; returns the seconds for which it can be restored. Raises NotFound."""
        self._projects.delete(project_id, owner_filter)
        self._worker.stop_project(project_id)
        return self.library.trash.seconds

    def restore(self, project_id: str, owner_filter: str | None) -> Project:
        """Restore a deleted project; it is paused if it has queued parts. Raises NotFound, InvalidRequest."""
        self.library.trash.restore_one("project", project_id, owner_filter, "project")
        return self._projects.get(project_id, owner_filter)

    def seconds_left(self, project: Project) -> float | None:
        """Estimated seconds until all queued parts are generated; None if unknown or paused."""
        if project.state != "running" or project.pace is None:
            return None
        return project.characters_left * project.pace / max(1, self._worker.at_once)

    def seconds_to_speak(self, project: Project, is_alone: bool) -> float | None:
        """Estimated seconds to generate all parts without audio of their current text; None if unknown.

        ``is_alone``: a project without a take of its own has the pace of other projects, which takes a query.
        """
        pace = self._projects.recent_pace() if is_alone and project.pace is None else project.pace
        return None if pace is None else project.characters_missing * pace / max(1, self._worker.at_once)

    def timeline(self, project_id: str, owner_filter: str | None, partial: bool) -> Timeline:
        """The timeline of a project. ``partial`` leaves out missing parts; without it they raise NotFinished.

        Raises NotFound, DamagedAudio. Blocking.
        """
        project = self._projects.get(project_id, owner_filter)
        parts = self._projects.parts(project_id, owner_filter, only_chosen=True)
        if lost := self.lost(project, parts):
            raise damaged(lost)
        timeline = lay_out(parts, project.settings, edges_of(self.library.files, project.settings))
        if not timeline.placed and not timeline.missing:
            raise NotFinished("all parts are chapter titles, which are not read in this project", "read_titles")
        if not timeline.placed or (timeline.missing and not partial):
            missing = f"{timeline.missing} of {sum(project.parts.values())} parts have no audio for their current text"
            others = ", or export the others with partial=true" if timeline.placed else ""
            raise NotFinished(f"{missing}; generate them first{others}", "partial")
        return timeline

    def lost(self, project: Project, parts: Sequence[Part]) -> list[Part]:
        """Which of a project's parts are done, and would be read, but have lost their audio, as far as the sizes of the
        files and earlier reads tell. Blocking."""
        read = (part for part in parts if project.settings.read_titles or not part.is_title)
        return [part for part in read if part.state == "done" and not self._has_sound(part)]

    def _has_sound(self, part: Part) -> bool:
        """Whether the audio file of a part that is done has its size; its content is checked when it is read."""
        try:
            return part.take is None or bool(self.library.files.checked(part.take.audio, part.take.size))
        except DamagedAudio:
            return False

    def tags(self, project_id: str, owner_filter: str | None, timeline: Timeline) -> Tags:
        """The metadata written into exported files. Raises NotFound."""
        project = self._projects.get(project_id, owner_filter)
        seconds = timeline.seconds
        return Tags(
            title=project.title,
            album=project.title,
            author=project.settings.author,
            narrator=project.settings.narrator,
            year=project.settings.year,
            language=project.settings.language or guessed_language(placed.part.text for placed in timeline.placed),
            genre="Podcast" if project.settings.loudness == "podcast" else "Audiobook",
            cover=self._projects.cover(project_id, owner_filter),
            chapters=tuple((title, seconds(start), seconds(end)) for title, start, end in timeline.chapters),
        )


def _new_part(passage: Passage, character: str | None, settings: ProjectSettings) -> NewPart:
    is_usual = passage.pause == PAUSE_WITHIN and settings.pause < PAUSE_WITHIN
    pause = None if is_usual else passage.pause
    given = {name: getattr(passage, name) for name in _OF_PASSAGES}
    return NewPart(**given | {"pause": pause, "character": character})
