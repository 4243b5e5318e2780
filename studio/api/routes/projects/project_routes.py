"""Long texts over HTTP: /v1/projects, created from documents, generated part by part in the background."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from studio.api.http.body import as_model, parse_object, read_json
from studio.api.http.error_responses import ApiError
from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import reads, reads_form, sends
from studio.api.http.upload import read_form
from studio.api.schemas.list_page import list_page
from studio.api.schemas.projects import (
    MAX_CAST,
    PartBody,
    ProjectBody,
    ProjectChanges,
    SpeakBody,
    part_json,
    preview_json,
    project_json,
)
from studio.errors import InvalidDocument, InvalidRequest, NotFound, StudioError, TooCostly
from studio.library.projects.part_filter import PartFilter
from studio.library.projects.project_records import MAX_PARTS, PartState, Project, ProjectSettings
from studio.projects.casting.cast_service import CastService
from studio.projects.casting.voice_proposals import Role
from studio.projects.document_import import DocumentImport
from studio.projects.documents import MAX_FILE, Document, kind_of
from studio.projects.import_previews import ImportPreview
from studio.projects.project_service import ProjectService, file_title

FORM_LIMIT = MAX_FILE + 256 * 1024
Limit = Annotated[int, Query(ge=1, le=200)]
NEW_PROJECT = reads(ProjectBody)
_FIELDS = [name for name in ProjectBody.model_fields if name not in ("input", "items", "preview")]
NEW_PROJECT["requestBody"]["content"] |= reads_form("file", *_FIELDS, required=("file",))["requestBody"]["content"]


@dataclass(frozen=True, slots=True)
class _Source:
    """The unparsed document of a new project; ``field``: its field in the request. Items have no data here."""

    field: str
    kind: str
    data: bytes = b""
    file_name: str = ""


class ProjectRoutes:
    """With API keys, each owner has separate projects, and may share them; without keys, all callers share all."""

    def __init__(self, service: ProjectService, cast: CastService) -> None:
        self._service = service
        self._cast = cast
        self._projects = service.library.projects

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["projects"])
        project = "/v1/projects/{project_id}"
        routes.post("/v1/projects", openapi_extra=NEW_PROJECT)(self.create_project)
        routes.post("/v1/projects/preview", openapi_extra=NEW_PROJECT)(self.preview)
        routes.get("/v1/projects/previews/{preview_id}/cover", **sends("image/jpeg", "image/png"))(self.preview_cover)
        routes.post("/v1/projects/characters", openapi_extra=NEW_PROJECT)(self.list_characters)
        routes.get("/v1/projects")(self.list_projects)
        routes.get(project)(self.get_project)
        routes.patch(project, openapi_extra=reads(ProjectChanges))(self.edit_project)
        routes.delete(project)(self.delete_project)
        routes.post(project + "/restore")(self.restore_project)
        routes.post(project + "/speak", openapi_extra=reads(SpeakBody))(self.speak)
        routes.post(project + "/pause")(self.pause)
        routes.post(project + "/resume")(self.resume)
        routes.post(project + "/cancel")(self.cancel)
        routes.get(project + "/parts")(self.list_parts)
        routes.patch(project + "/parts/{part_id}", openapi_extra=reads(PartBody))(self.edit_part)
        return routes

    async def create_project(self, request: Request) -> Response:
        """Create a project from a document: multipart with file (.txt, .md, .epub, .docx, .pdf, .srt, .vtt, .csv), or
        JSON with input or items; and settings. ``start: true`` queues all parts immediately."""
        source, body = await _read(request)
        return self._answer(await until_hangup(request, self._create(request.state.caller, source, body)), 201)

    async def preview(self, request: Request) -> JSONResponse:
        """Read a document without creating a project: its chapters with words and expected length, title, author,
        language, cover. Fields as for a new project; for half an hour its ``id`` is the ``preview`` of one."""
        source, body = await _read(request)
        preview = await until_hangup(request, self._preview(request.state.caller, source, body))
        title = body.title or preview.document.title or file_title(preview.file_name)
        return JSONResponse(preview_json(preview, title))

    async def preview_cover(self, preview_id: str, request: Request) -> Response:
        """The cover of the document of a preview."""
        cover = self._service.previews.get(preview_id, request.state.caller).document.cover
        if cover is None:
            raise NotFound("this document has no cover", "preview")
        return Response(cover.image, media_type=cover.media_type, headers={"Cache-Control": "private, no-cache"})

    async def list_characters(self, request: Request) -> JSONResponse:
        """The characters who speak in a document, with a voice proposed for each; fields as for a new project.

        Nothing is kept. Its names and voices, corrected, are the ``cast`` of a project with ``speakers: true``.
        """
        source, body = await _read(request)
        listing = await until_hangup(request, self._characters(request.state.caller, source, body))
        return JSONResponse({"object": "list", "data": [_role_json(role) for role in listing]})

    def list_projects(self, request: Request, limit: Limit = 50, after: str | None = None) -> JSONResponse:
        """The caller's projects and those shared with it, newest first."""
        projects = self._projects.page(request.state.owner_filter, limit + 1, after)
        return JSONResponse(list_page(projects, limit, self._as_json))

    def get_project(self, project_id: str, request: Request) -> Response:
        """A project's state: parts by state, seconds of audio, and the estimated time left."""
        return self._answer(self._projects.get(project_id, request.state.owner_filter))

    async def edit_project(self, project_id: str, request: Request) -> Response:
        """Edit title or settings; parts generated with other settings become stale. Its owner may also set
        ``sharing``."""
        body = as_model(await read_json(request), ProjectChanges)
        owner_filter = request.state.owner_filter
        edit = partial(self._service.edit, project_id, owner_filter, body.title, body.settings, body.sharing)
        return self._answer(await to_thread.run_sync(edit))

    def delete_project(self, project_id: str, request: Request) -> JSONResponse:
        """Delete a project with all its audio; for ``undo_seconds`` POST …/restore restores it."""
        undo = self._service.delete(project_id, request.state.owner_filter)
        return JSONResponse({"id": project_id, "object": "project.deleted", "deleted": True, "undo_seconds": undo})

    def restore_project(self, project_id: str, request: Request) -> Response:
        """Restore a deleted project; queued parts wait until it is resumed."""
        return self._answer(self._service.restore(project_id, request.state.owner_filter))

    async def speak(self, project_id: str, request: Request) -> Response:
        """Queue parts: missing, stale or all, of one chapter or of the project; or parts by their ids, which get an
        additional take."""
        body = as_model(await read_json(request), SpeakBody)
        return self._answer(
            await to_thread.run_sync(
                self._service.queue_parts, project_id, request.state.owner_filter, body.parts, body.chapter
            )
        )

    def pause(self, project_id: str, request: Request) -> Response:
        """Pause the project: no more parts are started; running ones are finished."""
        return self._answer(self._service.pause(project_id, request.state.owner_filter, True))

    def resume(self, project_id: str, request: Request) -> Response:
        """Continue after a pause."""
        return self._answer(self._service.pause(project_id, request.state.owner_filter, False))

    def cancel(self, project_id: str, request: Request) -> Response:
        """Remove all queued parts from the queue; existing takes stay."""
        return self._answer(self._service.cancel(project_id, request.state.owner_filter))

    def list_parts(
        self,
        project_id: str,
        request: Request,
        offset: Annotated[int, Query(ge=0, le=MAX_PARTS)] = 0,
        limit: Limit = 50,
        state: PartState | None = None,
        audio: bool | None = None,
        noted: bool | None = None,
        character: str | None = None,
    ) -> JSONResponse:
        """Parts in order, with their takes. ``state``: only those in this state; ``audio``: only those with audio, or
        without; ``noted``: with an open note, or without; ``character``: of this character, blank: the narrator's; also
        in the total."""
        owner_filter, part_filter = request.state.owner_filter, PartFilter(state, audio, noted, character)
        project = self._projects.get(project_id, owner_filter)
        parts = self._projects.parts(project_id, owner_filter, offset, limit, part_filter)
        total = self._projects.count_parts(project_id, owner_filter, part_filter)
        more = offset + len(parts) < total
        data = [part_json(part, project.settings) for part in parts]
        return JSONResponse({"object": "list", "data": data, "total": total, "has_more": more})

    async def edit_part(self, project_id: str, part_id: str, request: Request) -> JSONResponse:
        """Edit a part's text, voice, pause, direction or character, or choose one of its takes; no other part becomes
        stale."""
        body = as_model(await read_json(request), PartBody)
        changes = self._cast.tagged(body.changes(), body.tags)
        owner_filter = request.state.owner_filter
        part = await to_thread.run_sync(self._service.edit_part, project_id, owner_filter, part_id, changes)
        project = await to_thread.run_sync(self._projects.get, project_id, owner_filter)
        return JSONResponse(part_json(part, project.settings))

    async def _create(self, caller: str, source: _Source, body: ProjectBody) -> Project:
        """Create a project. Errors name the document's field in the request. Raises InvalidRequest, QueueFull."""
        settings = body.settings(ProjectSettings())
        with _field_named(source):
            document_import = await self._import_of(caller, source, body)
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
            document = await to_thread.run_sync(body.of_items)
        chapters = None if body.chapters is None else tuple(body.chapters)
        return DocumentImport(
            document, kind, body.splitting, body.cast or {}, notes, body.speakers, name, chapters, body.with_cover
        )

    def _answer(self, project: Project, status: int = 200) -> JSONResponse:
        return JSONResponse(self._as_json(project), status)

    def _as_json(self, project: Project) -> dict[str, Any]:
        try:
            seconds_left = self._service.seconds_left(project)
        except StudioError:  # the engine is not ready
            seconds_left = None
        return project_json(project, seconds_left)


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
    return names | figures | {"narrator": character.is_narrator}


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
    body = as_model(await read_json(request), ProjectBody)
    if [body.input, body.items, body.preview].count(None) != 2:
        raise InvalidRequest("send one of input (a document), items (its parts) and preview (of a document)", "input")
    if body.input is None:
        return _Source("preview" if body.preview else "items", "items"), body
    return _Source("input", body.kind or "txt", body.input.encode()), body


def _typed(fields: dict[str, str]) -> dict[str, Any]:
    """A form's fields as in JSON; blank ones are absent."""
    values: dict[str, Any] = {name: value for name, value in fields.items() if value.strip()}
    if "chapters" in values:
        values["chapters"] = values["chapters"].split(",")
    if "cast" in values:
        try:
            values["cast"] = parse_object(values["cast"].encode())
        except ApiError:
            raise InvalidRequest(
                f"cast must be a JSON object of at most {MAX_CAST} names and their voices", "cast"
            ) from None
    return values
