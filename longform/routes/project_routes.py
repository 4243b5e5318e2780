"""Long texts over HTTP: /v1/projects, created from documents, generated part by part in the background."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from longform.cast_service import CastService
from longform.credits import CreditsUndo, ReplacedPart
from longform.document_import import DocumentImport
from longform.import_previews import ImportPreview
from longform.library.project_records import PartState, Project, ProjectSettings
from longform.library.project_repository import PartFilter
from longform.project_service import ProjectService, usual_title
from longform.routes.project_bodies import (
    MAX_CAST,
    Limit,
    Offset,
    PartBody,
    ProjectBody,
    ProjectChanges,
    SpeakBody,
    UpdateBody,
    chapter_json,
    page_json,
    part_json,
    preview_json,
    project_json,
    replaced_json,
    update_json,
)
from longform.routes.undo_bodies import UndoBody
from longform.voice_proposals import Role
from manuscript.documents import MAX_FILE, Document, kind_of
from manuscript.passages import MAX_PARTS, InvalidDocument
from manuscript.untrusted import MAX_COVER, read_cover
from studio.api.body import JsonBody, as_model, parse_object, read_json
from studio.api.error_responses import ApiError
from studio.api.field_types import list_page
from studio.api.openapi import reads, reads_form, sends
from studio.api.queued import change, look_up, project_router
from studio.api.sending import until_hangup
from studio.api.upload import read_form
from studio.errors import REFUSALS, InvalidRequest, NotFound, TooCostly

FORM_LIMIT = MAX_FILE + 256 * 1024
COVER_FORM_LIMIT = MAX_COVER + 64 * 1024
NEW_PROJECT = reads(ProjectBody)
_FIELDS = [name for name in ProjectBody.model_fields if name not in ("input", "items", "preview")]
NEW_PROJECT["requestBody"]["content"] |= reads_form("file", *_FIELDS, required=("file",))["requestBody"]["content"]
UPDATE = reads_form("file", *UpdateBody.model_fields, required=("file",))


async def _part_filter(
    state: PartState | None = None, audio: bool | None = None, noted: bool | None = None, character: str | None = None
) -> PartFilter:
    return PartFilter(state, audio, noted, character)


Listed = Annotated[PartFilter, Depends(_part_filter)]
"""The query parameters that select the listed parts."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The unparsed document of a new project; ``field``: its field in the request. Items have no data here."""

    field: str
    kind: str
    data: bytes = b""
    file_name: str = ""


class ProjectRoutes:
    """The routes of projects. With API keys, each owner's are separate, and can be shared; without, all share all."""

    def __init__(self, service: ProjectService, cast: CastService) -> None:
        self._service = service
        self._cast = cast
        self._projects = service.library.projects

    def router(self) -> APIRouter:
        routes = project_router()
        project = "/v1/projects/{project_id}"
        routes.post("/v1/projects", openapi_extra=NEW_PROJECT)(self.create_project)
        routes.post("/v1/projects/preview", openapi_extra=NEW_PROJECT)(self.preview)
        routes.get("/v1/projects/previews/{preview_id}/cover", **sends("image/jpeg", "image/png"))(self.preview_cover)
        routes.post("/v1/projects/characters", openapi_extra=NEW_PROJECT)(self.list_characters)
        routes.get("/v1/projects")(self.list_projects)
        routes.get(project)(self.get_project)
        routes.patch(project)(self.edit_project)
        routes.delete(project)(self.delete_project)
        routes.post(project + "/restore")(self.restore_project)
        routes.post(project + "/undo")(self.undo)
        routes.post(project + "/speak")(self.speak)
        routes.post(project + "/update", openapi_extra=UPDATE)(self.update_from_table)
        routes.post(project + "/pause")(self.pause)
        routes.post(project + "/resume")(self.resume)
        routes.post(project + "/cancel")(self.cancel)
        routes.get(project + "/cover", **sends("image/jpeg", "image/png"))(self.get_cover)
        routes.put(project + "/cover", openapi_extra=reads_form("cover", required=("cover",)))(self.put_cover)
        routes.delete(project + "/cover")(self.delete_cover)
        routes.get(project + "/outline")(self.list_chapters)
        routes.get(project + "/parts")(self.list_parts)
        routes.get(project + "/parts/ids")(self.list_part_ids)
        routes.patch(project + "/parts/{part_id}")(self.edit_part)
        return routes

    async def create_project(self, request: Request) -> Response:
        """Create a project from a document: multipart with file (.txt, .md, .epub, .docx, .pdf, .srt, .vtt, .ass,
        .csv), or JSON with input or items; and settings. ``start: true`` queues all parts immediately."""
        source, body = await _read(request)
        project = await until_hangup(request, self._create(request.state.caller, source, body))
        return await look_up(self._answer, project, 201, patient=True)

    async def preview(self, request: Request) -> JSONResponse:
        """Read a document without creating a project: its chapters with words and expected length, title, author,
        language, cover. Fields as for a new project; for half an hour its ``id`` is the ``preview`` of one."""
        source, body = await _read(request)
        preview = await until_hangup(request, self._preview(request.state.caller, source, body))
        title = body.title or usual_title(preview.document, preview.file_name)
        return JSONResponse(preview_json(preview, title))

    async def preview_cover(self, preview_id: str, request: Request) -> Response:
        """The cover of the document of a preview."""
        cover = self._service.previews.get(preview_id, request.state.caller).document.cover
        if cover is None:
            raise NotFound("this document has no cover", "preview")
        return Response(cover.image, media_type=cover.media_type, headers={"Cache-Control": "private, no-cache"})

    async def list_characters(self, request: Request) -> JSONResponse:
        """The characters who speak in a document, with a voice proposed for each; fields as for a new project.

        Nothing is kept. The list, corrected, is the ``people`` of a project with ``speakers: true``. ``earlier`` has
        projects whose casts share people with it.
        """
        source, body = await _read(request)
        listing = await until_hangup(request, self._characters(request.state.caller, source, body))
        names = [name for role in listing for name in (role.character.name, *role.character.aliases)]
        earlier = await look_up(partial(self._service.library.cast.with_names, names, request.state.owner_filter))
        casts = [{"project": one.project_id, "title": one.title, "shared": one.shared} for one in earlier]
        return JSONResponse({"object": "list", "data": [_role_json(role) for role in listing], "earlier": casts})

    def list_projects(self, request: Request, limit: Limit = 50, after: str | None = None) -> JSONResponse:
        """The caller's projects and those shared with it, newest first."""
        projects = self._projects.page(request.state.owner_filter, limit + 1, after)
        return JSONResponse(list_page(projects, limit, self._as_json))

    def get_project(self, project_id: str, request: Request) -> Response:
        """A project's state: parts by state, seconds of audio, and the estimated time left."""
        return self._answer(self._projects.get(project_id, request.state.owner_filter))

    def edit_project(self, project_id: str, body: JsonBody[ProjectChanges], request: Request) -> Response:
        """Edit title or settings; parts generated with other settings become stale. Its owner may also set
        ``sharing``."""
        owner_filter = request.state.owner_filter
        before, project, credits = self._service.edit(project_id, owner_filter, body.change, body.sharing)
        replaced = {"settings": body.replaced(before, project), "credits": [asdict(end) for end in credits.ends]}
        return self._answer(project, replaced=replaced | replaced_json(credits.parts))

    def undo(self, project_id: str, body: JsonBody[UndoBody], request: Request) -> JSONResponse:
        """Undo changes of settings, parts or the cast, or an update from a table. The body has the fields of
        ``replaced`` from the answers to those. Values that somebody has changed since stay; ``left`` names them."""
        owner_filter, undone, left, cast = request.state.owner_filter, 0, list[str](), list[str]()
        self._projects.check(project_id, owner_filter, "edit")
        if body.table:
            undone, left, cast = self._service.library.tables.undo(project_id, owner_filter, body.table)
        if body.parts or body.characters:
            count, more = self._cast.undo(project_id, owner_filter, *body.cast_changes())
            undone, left = undone + count, [*left, *more]
        self._service.library.cast.delete_unused(project_id, owner_filter, cast)
        if settings := body.settings:
            keeps = bool(self._cast.withheld_voices(project_id, owner_filter, settings.before.voice))
            change = partial(settings.change, keeps_voice=keeps)
            put_back = {part_id for one in body.parts for part_id in one.ids}.difference(left)
            ends = [ReplacedPart(**end.model_dump()) for end in body.credits] or [ReplacedPart(), ReplacedPart()]
            undo = CreditsUndo(ends, put_back, set(left))
            before, _, credits = self._service.edit(project_id, owner_filter, change, undo=undo)
            filled_in = {part_id for one in credits.parts for part_id in one.ids}
            names, changed = settings.compared(before, keeps)
            left = [*changed, *(part_id for part_id in left if part_id not in filled_in)]
            undone += len(names)
        return JSONResponse({"object": "project.undone", "undone": undone, "left": left})

    def delete_project(self, project_id: str, request: Request) -> JSONResponse:
        """Delete a project with all its audio; for ``undo_seconds`` POST …/restore restores it."""
        undo = self._service.delete(project_id, request.state.owner_filter)
        return JSONResponse({"id": project_id, "object": "project.deleted", "deleted": True, "undo_seconds": undo})

    def restore_project(self, project_id: str, request: Request) -> Response:
        """Restore a deleted project; queued parts wait until it is resumed."""
        return self._answer(self._service.restore(project_id, request.state.owner_filter))

    def speak(self, project_id: str, body: JsonBody[SpeakBody], request: Request) -> Response:
        """Queue parts: missing, stale or all, of one chapter or of the project; or parts by their ids, which get an
        additional take."""
        owner_filter = request.state.owner_filter
        return self._answer(self._service.queue_parts(project_id, owner_filter, body.parts, body.chapter))

    async def update_from_table(self, project_id: str, request: Request) -> JSONResponse:
        """Compare a project with a new version of the table it was made from: multipart with file, and apply. Lines are
        known by their ids. ``apply: true`` changes those of which the table says something else, adds new ones, and
        moves those that are gone to the trash."""
        form = await read_form(request, FORM_LIMIT, "file")
        body = as_model(_typed(form.fields), UpdateBody)
        document = DocumentImport(
            form.file("file"), kind_of(form.names["file"]), columns=body.columns, tags=self._cast.known_tags
        )
        if document.kind != "csv":
            raise InvalidRequest("send a table: a .csv or .tsv file", "file")
        state = request.state
        work = self._service.update_from(project_id, state.owner_filter, state.caller, document, body.apply)
        return JSONResponse(update_json(await until_hangup(request, work), body.apply))

    def pause(self, project_id: str, request: Request) -> Response:
        """Pause the project: no more parts are started; running ones are finished."""
        return self._answer(self._service.pause(project_id, request.state.owner_filter, True))

    def resume(self, project_id: str, request: Request) -> Response:
        """Continue after a pause."""
        return self._answer(self._service.pause(project_id, request.state.owner_filter, False))

    def cancel(self, project_id: str, request: Request) -> Response:
        """Remove all queued parts from the queue; existing takes stay."""
        return self._answer(self._service.cancel(project_id, request.state.owner_filter))

    def get_cover(self, project_id: str, request: Request) -> Response:
        """The cover image of the project's files."""
        cover = self._projects.cover(project_id, request.state.owner_filter)
        if cover is None:
            raise NotFound("this project has no cover", "project")
        headers = {"Cache-Control": "private, no-cache", "ETag": f'"{cover.digest}"'}
        return Response(cover.image, media_type=cover.media_type, headers=headers)

    async def put_cover(self, project_id: str, request: Request) -> JSONResponse:
        """Set the cover: multipart with ``cover``, a JPEG or PNG of at most 4 MiB and 4096 pixels a side."""
        form = await read_form(request, COVER_FORM_LIMIT, "cover")

        def put() -> Project:
            return self._projects.set_cover(project_id, request.state.owner_filter, read_cover(form.file("cover")))

        return JSONResponse(project_json(await until_hangup(request, change(put)), None))

    def delete_cover(self, project_id: str, request: Request) -> JSONResponse:
        """Remove the cover."""
        return JSONResponse(project_json(self._projects.set_cover(project_id, request.state.owner_filter, None), None))

    def list_chapters(self, project_id: str, request: Request) -> JSONResponse:
        """The chapters in order: title, first part, parts by state, words, seconds of audio, and the expected length
        of the whole chapter."""
        owner_filter = request.state.owner_filter
        settings = self._projects.get(project_id, owner_filter).settings
        chapters = self._projects.chapters(project_id, owner_filter)
        return JSONResponse({"object": "list", "data": [chapter_json(chapter, settings) for chapter in chapters]})

    def list_parts(
        self, project_id: str, request: Request, part_filter: Listed, offset: Offset = 0, limit: Limit = 50
    ) -> JSONResponse:
        """Parts in order, with their takes. ``state``: only those in this state; ``audio``: only those with audio, or
        without; ``noted``: with an open note, or without; ``character``: of this character, blank: the narrator's; also
        in the total."""
        owner_filter = request.state.owner_filter
        project = self._projects.get(project_id, owner_filter)
        parts = self._projects.parts(project_id, owner_filter, offset, limit, part_filter)
        total = self._projects.count_parts(project_id, owner_filter, part_filter)
        return JSONResponse(page_json([part_json(part, project.settings) for part in parts], offset, total))

    def list_part_ids(
        self,
        project_id: str,
        request: Request,
        part_filter: Listed,
        offset: Offset = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PARTS)] = MAX_PARTS,
    ) -> JSONResponse:
        """The ids of parts in order, filtered as in the list of parts."""
        ids = self._projects.part_ids(project_id, request.state.owner_filter, part_filter, offset, limit)
        return JSONResponse({"object": "list", "data": ids})

    def edit_part(self, project_id: str, part_id: str, body: JsonBody[PartBody], request: Request) -> JSONResponse:
        """Edit a part's text, voice, pause, direction or character, or choose one of its takes; no other part becomes
        stale."""
        changes = self._cast.tagged(body.changes(), body.tags)
        owner_filter = request.state.owner_filter
        part, replaced = self._service.edit_part(project_id, owner_filter, part_id, changes)
        answer = part_json(part, self._projects.get(project_id, owner_filter).settings)
        return JSONResponse(answer | {"replaced": replaced_json(replaced)})

    async def _create(self, caller: str, source: _Source, body: ProjectBody) -> Project:
        """Create a project. Errors name the document's field in the request. Raises InvalidRequest, QueueFull."""
        settings = body.settings(ProjectSettings())
        with _field_named(source):
            project_id = ""
            if body.preview is not None:  # a preview's id is given once, so the same request is one that is sent again
                project_id = f"proj_{hashlib.sha256(body.model_dump_json().encode()).hexdigest()[:24]}"
                if made := await look_up(self._service.made, caller, project_id):  # the preview may have expired since
                    return made
            document_import = replace(await self._import_of(caller, source, body), project_id=project_id)
            return await self._service.create(caller, document_import, body.title or "", settings, body.start)

    async def _characters(self, caller: str, source: _Source, body: ProjectBody) -> list[Role]:
        with _field_named(source):
            return await self._service.characters(caller, await self._import_of(caller, source, body), body.voice)

    async def _preview(self, caller: str, source: _Source, body: ProjectBody) -> ImportPreview:
        with _field_named(source):
            return await self._service.preview(caller, await self._import_of(caller, source, body))

    async def _import_of(self, caller: str, source: _Source, body: ProjectBody) -> DocumentImport:
        """Raises NotFound for a preview that has expired, InvalidDocument."""
        document: bytes | Document = source.data
        kind, name, notes = source.kind, source.file_name, body.notes
        if body.preview is not None:
            preview = self._service.previews.get(body.preview, caller)
            document, kind, name, notes = preview.document, preview.kind, preview.file_name, preview.with_notes
        elif kind == "items":
            document = await look_up(body.of_items)
        chapters = None if body.chapters is None else tuple(body.chapters)
        people = tuple(person.character() for person in body.people or ())
        splitting, cast, encoding = body.splitting, body.cast or {}, body.encoding or ""
        return DocumentImport(
            document,
            kind,
            splitting,
            cast,
            notes,
            body.speakers,
            name,
            chapters,
            body.with_cover,
            body.columns,
            self._cast.known_tags,
            encoding,
            people,
        )

    def _answer(self, project: Project, status: int = 200, **more: object) -> JSONResponse:
        """Blocking."""
        return JSONResponse(self._as_json(project, is_alone=True) | more, status)

    def _as_json(self, project: Project, is_alone: bool = False) -> dict[str, Any]:
        try:
            times = self._service.seconds_left(project), self._service.seconds_to_speak(project, is_alone)
        except REFUSALS:  # the engine is not ready
            times = None, None
        return project_json(project, *times)


@contextmanager
def _field_named(source: _Source) -> Iterator[None]:
    """An error about the document names the request's field."""
    try:
        yield
    except TooCostly as error:
        raise TooCostly(error.message, source.field) from None
    except InvalidDocument as error:
        raise InvalidDocument(error.message, source.field if error.param == "file" else error.param) from None


def _role_json(role: Role) -> dict[str, object]:
    """``gender``: female, male, or blank if unknown."""
    character = role.character
    names: dict[str, object] = {"name": character.name, "names": [character.name, *character.aliases]}
    figures = {"gender": character.gender, "lines": role.lines, "voice": character.voice}
    return names | figures | {"narrator": character.is_narrator, "sample": {"text": role.sample}}


async def _read(request: Request) -> tuple[_Source, ProjectBody]:
    """The document of a request, and its settings. Raises InvalidRequest."""
    if request.headers.get("content-type", "").startswith("multipart/"):
        form = await read_form(request, FORM_LIMIT, "file")
        data, name = form.file("file"), form.names["file"]
        body = as_model(_typed(form.fields), ProjectBody)
        if body.preview is not None:
            raise InvalidRequest("send either a file or the preview of one", "preview")
        kind = body.kind or kind_of(name)
        return _Source("file", kind, data, name), body
    body = await read_json(request, lambda fields: as_model(fields, ProjectBody))
    if [body.input, body.items, body.preview].count(None) != 2:
        raise InvalidRequest("send one of input (a document), items (its parts) and preview (of a document)", "input")
    if body.encoding:
        raise InvalidRequest("encoding is for a file; JSON is Unicode, and a preview is already read", "encoding")
    if body.input is None:
        return _Source("preview" if body.preview else "items", "items"), body
    return _Source("input", body.kind or "txt", body.input.encode()), body


def _typed(fields: dict[str, str]) -> dict[str, Any]:
    """A form's fields as in JSON; blank ones are absent."""
    values: dict[str, Any] = {name: value for name, value in fields.items() if value.strip()}
    if "chapters" in values:
        values["chapters"] = values["chapters"].split(",")
    kinds = {
        "cast": f"object of at most {MAX_CAST} names and their voices",
        "columns": "object of columns and their roles",
        "people": f"list of at most {MAX_CAST} people",
    }
    for name in kinds.keys() & values.keys():
        try:
            values[name] = parse_object(b'{"%s": %s}' % (name.encode(), values[name].encode()))[name]
        except ApiError:
            raise InvalidRequest(f"{name} must be a JSON {kinds[name]}", name) from None
    return values
