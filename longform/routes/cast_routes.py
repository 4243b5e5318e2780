"""The cast of a project over HTTP: characters, their voices, merges, and the lines whose speaker is unsure."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from longform.cast_service import CastService
from longform.library.project_repository import PartFilter, ProjectLibrary
from longform.routes.cast_bodies import (
    CharacterBody,
    MergeCharacterBody,
    NewCharacterBody,
    ProposeBody,
    RecastBody,
    cast_json,
    line_json,
    member_json,
    proposal_json,
    replaced_voices_json,
)
from longform.routes.project_bodies import Limit, Offset, PartsBody, page_json, replaced_json
from manuscript.passages import SURE
from studio.api.body import JsonBody
from studio.api.queued import look_up, project_router
from studio.api.sending import until_hangup


class CastRoutes:
    def __init__(self, library: ProjectLibrary, service: CastService) -> None:
        self._library = library
        self._cast = library.cast
        self._service = service

    def router(self) -> APIRouter:
        routes = project_router()
        project = "/v1/projects/{project_id}"
        character = project + "/cast/{character_id}"
        routes.get(project + "/cast")(self.get_cast)
        routes.post(project + "/cast")(self.add_character)
        routes.post(project + "/cast/recast")(self.recast)
        routes.get(project + "/cast/lines")(self.list_lines)
        routes.post(project + "/cast/proposals")(self.propose)
        routes.patch(character)(self.edit_character)
        routes.delete(character)(self.delete_character)
        routes.post(character + "/merge")(self.merge_character)
        routes.patch(project + "/parts")(self.edit_parts)
        return routes

    def get_cast(self, project_id: str, request: Request) -> JSONResponse:
        """The narrator and the characters: voice, lines, words and a sample line; and how many lines are unsure."""
        return self._listed(project_id, request)

    def add_character(self, project_id: str, body: JsonBody[NewCharacterBody], request: Request) -> JSONResponse:
        """Add a character without lines; PATCH …/parts gives it some."""
        member = self._service.add(project_id, request.state.owner_filter, body.character())
        return JSONResponse(member_json(member), 201)

    def edit_character(
        self, project_id: str, character_id: str, body: JsonBody[CharacterBody], request: Request
    ) -> JSONResponse:
        """Rename a character, or change aliases, gender or voice. With another voice its lines become stale."""
        member, replaced = self._service.edit(project_id, request.state.owner_filter, character_id, body.changes())
        return JSONResponse(member_json(member) | {"replaced": replaced_voices_json(replaced)})

    def delete_character(self, project_id: str, character_id: str, request: Request) -> JSONResponse:
        """Delete a character; its lines go to the narrator. It can be restored from the trash, with its lines."""
        self._cast.merge(project_id, request.state.owner_filter, character_id, None)
        answer = {"id": character_id, "object": "project.character.deleted", "deleted": True}
        return JSONResponse(answer | {"undo_seconds": self._library.trash.seconds})

    def merge_character(
        self, project_id: str, character_id: str, body: JsonBody[MergeCharacterBody], request: Request
    ) -> JSONResponse:
        """Merge a character into another one, which is returned. The merged one can be restored from the trash."""
        member = self._cast.merge(project_id, request.state.owner_filter, character_id, body.into)
        assert member is not None
        return JSONResponse(member_json(member) | {"undo_seconds": self._library.trash.seconds})

    def recast(self, project_id: str, body: JsonBody[RecastBody], request: Request) -> JSONResponse:
        """Give the characters proposed voices: by gender, different from the narrator's and from those they talk to."""
        changed = self._service.recast(project_id, request.state.owner_filter, body.missing)
        return self._listed(project_id, request, replaced=replaced_voices_json(changed))

    def list_lines(
        self,
        project_id: str,
        request: Request,
        unsure: bool = False,
        character: str | None = None,
        offset: Offset = 0,
        limit: Limit = 50,
    ) -> JSONResponse:
        """Lines with the text before and after, in order; line feeds separate paragraphs. ``unsure``: only those
        whose speaker is unsure and not confirmed, in the order in which a decision mends most; ``character``: only
        those of this character, blank: the narrator's."""
        part_filter = PartFilter(is_unsure=unsure, character=character)
        lines, total = self._service.lines(project_id, request.state.owner_filter, part_filter, offset, limit)
        return JSONResponse(page_json([line_json(line) for line in lines], offset, total))

    async def propose(self, project_id: str, body: JsonBody[ProposeBody], request: Request) -> JSONResponse:
        """Ask the chat endpoint of the settings for the speakers and tags of lines. Nothing is changed. With
        ``estimate`` nothing is asked."""
        if body.estimate:
            cost = partial(self._service.cost, project_id, request.state.owner_filter, body.ids)
            questions, tokens = await until_hangup(request, look_up(cost))
            answer = {"object": "project.cast.estimate", "model": self._service.assistant}
            return JSONResponse(answer | {"questions": questions, "tokens": tokens})
        work = self._service.propose(project_id, request.state.owner_filter, body.ids)
        data = [proposal_json(*entry) for entry in await until_hangup(request, work)]
        return JSONResponse({"object": "list", "model": self._service.assistant, "data": data})

    def edit_parts(self, project_id: str, body: JsonBody[PartsBody], request: Request) -> JSONResponse:
        """Change many parts at once, by ids or from first to last: voice, pause, speed, sampling, tags, scene end,
        character. Parts that would be spoken differently become stale. All are changed, or none. A decision about one
        line decides its scene again; the answer lists the other lines that changed. POST …/undo takes ``replaced``."""
        selection, changes = body.selection(), body.changes()
        owner_filter = request.state.owner_filter
        count, replaced, followed = self._service.direct(project_id, owner_filter, selection, changes, body.tags)
        lines = [
            {"part": one.ids[0], "character": one.after["character"], "confidence": one.after["confidence"]}
            | {"unsure": one.after["confidence"] < SURE}
            for one in followed
        ]
        answer = {"object": "project.parts.changed", "count": count, "followed": lines}
        return JSONResponse(answer | {"replaced": replaced_json(replaced, followed)})

    def _listed(self, project_id: str, request: Request, **more: object) -> JSONResponse:
        owner_filter = request.state.owner_filter
        members = self._cast.members(project_id, owner_filter)
        unsure_count = self._library.projects.count_parts(project_id, owner_filter, PartFilter(is_unsure=True))
        return JSONResponse(cast_json(members, unsure_count, self._service.assistant) | more)
