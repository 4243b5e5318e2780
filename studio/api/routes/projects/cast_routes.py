"""The cast of a project over HTTP: characters, their voices, merges, and the lines whose speaker is unsure."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from studio.api.http.body import as_model, read_json
from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import reads
from studio.api.schemas.cast_bodies import (
    CharacterBody,
    MergeCharacterBody,
    NewCharacterBody,
    ProposeBody,
    RecastBody,
    cast_json,
    line_json,
    member_json,
    proposal_json,
)
from studio.api.schemas.projects import PartsBody
from studio.library import Library
from studio.library.projects.part_filter import PartFilter
from studio.library.projects.project_records import MAX_PARTS
from studio.projects.casting.cast_service import CastService

Limit = Annotated[int, Query(ge=1, le=200)]


class CastRoutes:
    def __init__(self, library: Library, service: CastService) -> None:
        self._library = library
        self._cast = library.cast
        self._service = service

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["projects"])
        project = "/v1/projects/{project_id}"
        character = project + "/cast/{character_id}"
        routes.get(project + "/cast")(self.get_cast)
        routes.post(project + "/cast", openapi_extra=reads(NewCharacterBody))(self.add_character)
        routes.post(project + "/cast/recast", openapi_extra=reads(RecastBody))(self.recast)
        routes.get(project + "/cast/lines")(self.list_lines)
        routes.post(project + "/cast/proposals", openapi_extra=reads(ProposeBody))(self.propose)
        routes.patch(character, openapi_extra=reads(CharacterBody))(self.edit_character)
        routes.delete(character)(self.delete_character)
        routes.post(character + "/merge", openapi_extra=reads(MergeCharacterBody))(self.merge_character)
        routes.patch(project + "/parts", openapi_extra=reads(PartsBody))(self.edit_parts)
        return routes

    def get_cast(self, project_id: str, request: Request) -> JSONResponse:
        """The narrator and the characters: voice, lines, words and a sample line; and how many lines are unsure."""
        return self._listed(project_id, request)

    async def add_character(self, project_id: str, request: Request) -> JSONResponse:
        """Add a character without lines; PATCH …/parts gives it some."""
        new = as_model(await read_json(request), NewCharacterBody).character()
        member = await to_thread.run_sync(self._service.add, project_id, request.state.owner_filter, new)
        return JSONResponse(member_json(member), 201)

    async def edit_character(self, project_id: str, character_id: str, request: Request) -> JSONResponse:
        """Rename a character, or change aliases, gender or voice. With another voice its lines become stale."""
        changes = as_model(await read_json(request), CharacterBody).changes()
        edit = partial(self._service.edit, project_id, request.state.owner_filter, character_id, changes)
        return JSONResponse(member_json(await to_thread.run_sync(edit)))

    def delete_character(self, project_id: str, character_id: str, request: Request) -> JSONResponse:
        """Delete a character; its lines go to the narrator. It can be restored from the trash, with its lines."""
        self._cast.merge(project_id, request.state.owner_filter, character_id, None)
        answer = {"id": character_id, "object": "project.character.deleted", "deleted": True}
        return JSONResponse(answer | {"undo_seconds": self._library.trash.seconds})

    async def merge_character(self, project_id: str, character_id: str, request: Request) -> JSONResponse:
        """Merge a character into another one, which is returned. The merged one can be restored from the trash."""
        body = as_model(await read_json(request), MergeCharacterBody)
        merge = partial(self._cast.merge, project_id, request.state.owner_filter, character_id, body.into)
        member = await to_thread.run_sync(merge)
        assert member is not None
        return JSONResponse(member_json(member) | {"undo_seconds": self._library.trash.seconds})

    async def recast(self, project_id: str, request: Request) -> JSONResponse:
        """Give the characters proposed voices: by gender, different from the narrator's and from those they talk to."""
        body = as_model(await read_json(request), RecastBody)
        owner_filter = request.state.owner_filter
        await to_thread.run_sync(self._service.recast, project_id, owner_filter, body.missing)
        return await to_thread.run_sync(self._listed, project_id, request)

    def list_lines(
        self,
        project_id: str,
        request: Request,
        unsure: bool = False,
        character: str | None = None,
        offset: Annotated[int, Query(ge=0, le=MAX_PARTS)] = 0,
        limit: Limit = 50,
    ) -> JSONResponse:
        """Lines in order, with the text before and after. ``unsure``: only those whose speaker is unsure and not
        confirmed; ``character``: only those of this character, blank: the narrator's."""
        part_filter = PartFilter(is_unsure=unsure, character=character)
        lines, total = self._service.lines(project_id, request.state.owner_filter, part_filter, offset, limit)
        data = [line_json(line) for line in lines]
        return JSONResponse({"object": "list", "data": data, "total": total, "has_more": offset + len(data) < total})

    async def propose(self, project_id: str, request: Request) -> JSONResponse:
        """Ask the chat endpoint of the settings for the speakers and tags of lines. Nothing is changed."""
        body = as_model(await read_json(request), ProposeBody)
        work = self._service.propose(project_id, request.state.owner_filter, body.ids)
        data = [proposal_json(*entry) for entry in await until_hangup(request, work)]
        return JSONResponse({"object": "list", "model": self._service.assistant, "data": data})

    async def edit_parts(self, project_id: str, request: Request) -> JSONResponse:
        """Change many parts at once, by ids or from first to last: voice, pause, speed, sampling, tags, scene end,
        character. Parts that would be spoken differently become stale. All are changed, or none."""
        body = as_model(await read_json(request), PartsBody)
        direct = partial(self._service.direct, project_id, request.state.owner_filter, body.selection(), body.changes())
        count = await to_thread.run_sync(direct, body.tags)
        return JSONResponse({"object": "project.parts.changed", "count": count})

    def _listed(self, project_id: str, request: Request) -> JSONResponse:
        owner_filter = request.state.owner_filter
        members = self._cast.members(project_id, owner_filter)
        unsure_count = self._library.projects.count_parts(project_id, owner_filter, PartFilter(is_unsure=True))
        return JSONResponse(cast_json(members, unsure_count, self._service.assistant))
