"""The parts of a project over HTTP: insert, split, merge, move, delete, regenerate; find and replace in all parts."""

from __future__ import annotations

from functools import partial

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.api.http.body import as_model, read_json
from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import reads
from studio.api.schemas.arrangement import (
    MergeBody,
    MoveBody,
    NewPartBody,
    RegeneratePartBody,
    ReplaceBody,
    RestoreBody,
    SplitBody,
    matches_json,
    undo_json,
)
from studio.api.schemas.projects import part_json
from studio.library.projects.project_records import Part
from studio.projects.part_regeneration import PartRegeneration
from studio.projects.project_service import ProjectService


class ArrangementRoutes:
    """Each route returns the changed parts."""

    def __init__(self, service: ProjectService, regeneration: PartRegeneration) -> None:
        self._service = service
        self._regeneration = regeneration
        self._projects = service.library.projects
        self._arrangement = service.library.arrangement
        self._replacements = service.library.replacements

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["projects"])
        project = "/v1/projects/{project_id}"
        part = project + "/parts/{part_id}"
        routes.post(project + "/parts", openapi_extra=reads(NewPartBody))(self.insert_part)
        routes.delete(part)(self.delete_part)
        routes.post(project + "/parts/restore", openapi_extra=reads(RestoreBody))(self.restore_parts)
        routes.post(part + "/split", openapi_extra=reads(SplitBody))(self.split_part)
        routes.post(part + "/merge", openapi_extra=reads(MergeBody))(self.merge_parts)
        routes.post(part + "/move", openapi_extra=reads(MoveBody))(self.move_part)
        routes.post(part + "/mend", openapi_extra=reads(RegeneratePartBody))(self.mend_part)
        routes.post(project + "/replace", openapi_extra=reads(ReplaceBody))(self.replace)
        routes.post(project + "/replace/undo")(self.undo_replace)
        return routes

    async def insert_part(self, project_id: str, request: Request) -> JSONResponse:
        """Insert a part after another one, or before the first."""
        body = as_model(await read_json(request), NewPartBody)
        add = self._service.insert_part
        part = await to_thread.run_sync(add, project_id, request.state.owner_filter, body.part(), body.after)
        return JSONResponse((await self._as_json(request, part))[0], 201)

    def delete_part(self, project_id: str, part_id: str, request: Request) -> JSONResponse:
        """Delete a part with its audio; for ``undo_seconds`` POST …/parts/restore restores it.

        Its chapter then begins with the next part. The only part of a project cannot be deleted.
        """
        self._arrangement.delete(project_id, request.state.owner_filter, part_id)
        answer = {"id": part_id, "object": "project.part.deleted", "deleted": True}
        return JSONResponse(answer | {"undo_seconds": self._service.library.trash.seconds})

    async def restore_parts(self, project_id: str, request: Request) -> JSONResponse:
        """Restore deleted parts at their former places: {"ids": [...]}."""
        body = as_model(await read_json(request), RestoreBody)
        restore = partial(self._arrangement.restore, project_id, request.state.owner_filter, body.ids)
        return await self._listed(request, *await to_thread.run_sync(restore))

    async def split_part(self, project_id: str, part_id: str, request: Request) -> JSONResponse:
        """Split a part. The first part keeps the takes, which are then stale; the second gets the pause."""
        body = as_model(await read_json(request), SplitBody)
        split = partial(self._arrangement.split, project_id, request.state.owner_filter, part_id, body.text, body.at)
        return await self._listed(request, *await to_thread.run_sync(split))

    async def merge_parts(self, project_id: str, part_id: str, request: Request) -> JSONResponse:
        """Merge a part with the following one, in its own voice; the takes of both can still be chosen."""
        body = as_model(await read_json(request), MergeBody)
        args = project_id, request.state.owner_filter, part_id
        merge = partial(self._arrangement.merge, *args, body.following, body.text)
        return JSONResponse((await self._as_json(request, await to_thread.run_sync(merge)))[0])

    async def move_part(self, project_id: str, part_id: str, request: Request) -> JSONResponse:
        """Move a part to another position; its audio stays."""
        body = as_model(await read_json(request), MoveBody)
        move = partial(self._arrangement.move, project_id, request.state.owner_filter, part_id, body.position)
        return JSONResponse((await self._as_json(request, await to_thread.run_sync(move)))[0])

    async def mend_part(self, project_id: str, part_id: str, request: Request) -> JSONResponse:
        """Regenerate a sentence of a part in the same voice, with other words if wanted, joined seamlessly: an
        additional take, which is chosen. The response is sent when it is generated."""
        body = as_model(await read_json(request), RegeneratePartBody)
        work = self._regeneration.add_take(
            project_id, request.state.owner_filter, part_id, body.text, body.start, body.end, body.replacement
        )
        return JSONResponse((await self._as_json(request, await until_hangup(request, work)))[0])

    async def replace(self, project_id: str, request: Request) -> JSONResponse:
        """Find and replace words in all parts, or count them with ``dry_run``; changed parts become stale. Nothing is
        changed if a part would become blank or too long."""
        body = as_model(await read_json(request), ReplaceBody)
        action = self._replacements.count if body.dry_run else self._replacements.replace
        matches = await to_thread.run_sync(action, project_id, request.state.owner_filter, body.replacement())
        return JSONResponse(matches_json(matches, body.dry_run))

    def undo_replace(self, project_id: str, request: Request) -> JSONResponse:
        """Undo the newest replacement, then the one before; parts edited since are left as they are."""
        return JSONResponse(undo_json(self._replacements.undo(project_id, request.state.owner_filter)))

    async def _listed(self, request: Request, *parts: Part) -> JSONResponse:
        return JSONResponse({"object": "list", "data": await self._as_json(request, *parts)})

    async def _as_json(self, request: Request, *parts: Part) -> list[dict[str, object]]:
        project = await to_thread.run_sync(self._projects.get, parts[0].project_id, request.state.owner_filter)
        return [part_json(part, project.settings) for part in parts]
