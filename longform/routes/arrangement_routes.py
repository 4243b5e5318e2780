"""The parts of a project over HTTP: insert, split, merge, move, delete, regenerate; find and replace in all parts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from longform.library.project_records import Part
from longform.part_regeneration import PartRegeneration
from longform.project_service import ProjectService
from longform.routes.arrangement_bodies import (
    DeletePartsBody,
    MergeBody,
    MoveBody,
    MovePartsBody,
    NewPartBody,
    PartIdsBody,
    RegeneratePartBody,
    ReplaceBody,
    SplitBody,
    matches_json,
    undo_json,
)
from longform.routes.project_bodies import part_json
from studio.api.body import JsonBody
from studio.api.queued import look_up, project_router
from studio.api.sending import until_hangup


class ArrangementRoutes:
    """Each route returns the changed parts."""

    def __init__(self, service: ProjectService, regeneration: PartRegeneration) -> None:
        self._service = service
        self._regeneration = regeneration
        self._projects = service.library.projects
        self._arrangement = service.library.arrangement
        self._replacements = service.library.replacements

    def router(self) -> APIRouter:
        routes = project_router()
        project = "/v1/projects/{project_id}"
        part = project + "/parts/{part_id}"
        routes.post(project + "/parts")(self.insert_part)
        routes.delete(part)(self.delete_part)
        routes.post(project + "/parts/delete")(self.delete_parts)
        routes.post(project + "/parts/restore")(self.restore_parts)
        routes.post(project + "/parts/move")(self.move_parts)
        routes.post(part + "/split")(self.split_part)
        routes.post(part + "/merge")(self.merge_parts)
        routes.post(part + "/move")(self.move_part)
        routes.post(part + "/regenerate")(self.regenerate_part)
        routes.post(project + "/replace")(self.replace)
        routes.post(project + "/replace/undo")(self.undo_replace)
        return routes

    def insert_part(self, project_id: str, body: JsonBody[NewPartBody], request: Request) -> JSONResponse:
        """Insert a part after another one, or before the first."""
        part = self._service.insert_part(project_id, request.state.owner_filter, body.part(), body.after)
        return JSONResponse(self._as_json(request, part)[0], 201)

    def delete_part(self, project_id: str, part_id: str, request: Request) -> JSONResponse:
        """Delete a part with its audio; for ``undo_seconds`` POST …/parts/restore restores it.

        Its chapter then begins with the next part. The only part of a project cannot be deleted.
        """
        self._arrangement.delete(project_id, request.state.owner_filter, [part_id])
        answer = {"id": part_id, "object": "project.part.deleted", "deleted": True}
        return JSONResponse(answer | {"undo_seconds": self._service.library.trash.seconds})

    def delete_parts(self, project_id: str, body: JsonBody[DeletePartsBody], request: Request) -> JSONResponse:
        """Delete parts as one: all of them, or none if one does not exist: {"ids": [...]}."""
        count = self._arrangement.delete(project_id, request.state.owner_filter, body.ids, body.text_before)
        answer = {"object": "project.parts.deleted", "count": count}
        return JSONResponse(answer | {"undo_seconds": self._service.library.trash.seconds})

    def restore_parts(self, project_id: str, body: JsonBody[PartIdsBody], request: Request) -> JSONResponse:
        """Restore deleted parts at their former places: {"ids": [...]}."""
        count = self._arrangement.restore(project_id, request.state.owner_filter, body.ids)
        return JSONResponse({"object": "project.parts.restored", "count": count})

    def split_part(self, project_id: str, part_id: str, body: JsonBody[SplitBody], request: Request) -> JSONResponse:
        """Split a part. The first part keeps the takes, which are then stale; the second gets the pause."""
        parts = self._arrangement.split(project_id, request.state.owner_filter, part_id, body.text, body.at)
        return self._listed(request, *parts)

    def merge_parts(self, project_id: str, part_id: str, body: JsonBody[MergeBody], request: Request) -> JSONResponse:
        """Merge a part with the following one, in its own voice; the takes of both can still be chosen."""
        part = self._arrangement.merge(project_id, request.state.owner_filter, part_id, body.following, body.text)
        return JSONResponse(self._as_json(request, part)[0])

    def move_part(self, project_id: str, part_id: str, body: JsonBody[MoveBody], request: Request) -> JSONResponse:
        """Move a part to another position; its audio stays."""
        owner_filter = request.state.owner_filter
        self._arrangement.move(project_id, owner_filter, [part_id], body.position, body.position_before)
        part = self._projects.part(project_id, owner_filter, part_id)
        return JSONResponse(self._as_json(request, part)[0])

    def move_parts(self, project_id: str, body: JsonBody[MovePartsBody], request: Request) -> JSONResponse:
        """Move parts so that the first has a position and the others follow it, in their order."""
        owner_filter = request.state.owner_filter
        count = self._arrangement.move(project_id, owner_filter, body.ids, body.position, body.position_before)
        return JSONResponse({"object": "project.parts.moved", "count": count})

    async def regenerate_part(
        self, project_id: str, part_id: str, body: JsonBody[RegeneratePartBody], request: Request
    ) -> JSONResponse:
        """Regenerate a sentence of a part in the same voice, with other words if wanted, joined seamlessly: an
        additional take, which is chosen. The response is sent when it is generated."""
        work = self._regeneration.add_take(
            project_id, request.state.owner_filter, part_id, body.text, body.start, body.end, body.replacement
        )
        part = await until_hangup(request, work)
        answer = await until_hangup(request, look_up(self._as_json, request, part, patient=True))
        return JSONResponse(answer[0])

    def replace(self, project_id: str, body: JsonBody[ReplaceBody], request: Request) -> JSONResponse:
        """Find and replace words in all parts, or count them with ``dry_run``; changed parts become stale. Nothing is
        changed if a part would become blank or too long."""
        action = self._replacements.count if body.dry_run else self._replacements.replace
        matches = action(project_id, request.state.owner_filter, body.replacement())
        return JSONResponse(matches_json(matches, body.dry_run))

    def undo_replace(
        self, project_id: str, request: Request, replacement: Annotated[str | None, Query(max_length=64)] = None
    ) -> JSONResponse:
        """Undo a replacement by its id, or the newest, then the one before; parts edited since are left as they are."""
        return JSONResponse(undo_json(self._replacements.undo(project_id, request.state.owner_filter, replacement)))

    def _listed(self, request: Request, *parts: Part) -> JSONResponse:
        return JSONResponse({"object": "list", "data": self._as_json(request, *parts)})

    def _as_json(self, request: Request, *parts: Part) -> list[dict[str, object]]:
        project = self._projects.get(parts[0].project_id, request.state.owner_filter)
        return [part_json(part, project.settings) for part in parts]
