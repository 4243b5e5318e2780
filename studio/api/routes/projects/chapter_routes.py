"""A project's map over HTTP: its chapters with their sums, and the ids of its parts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from studio.api.schemas.projects import chapter_json
from studio.library.projects.part_filter import PartFilter
from studio.library.projects.project_records import MAX_PARTS, PartState
from studio.projects.project_service import ProjectService


class ChapterRoutes:
    """Reads only."""

    def __init__(self, service: ProjectService) -> None:
        self._projects = service.library.projects

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["projects"])
        project = "/v1/projects/{project_id}"
        routes.get(project + "/outline")(self.list_chapters)
        routes.get(project + "/parts/ids")(self.list_part_ids)
        return routes

    def list_chapters(self, project_id: str, request: Request) -> JSONResponse:
        """The chapters in order: title, first part, parts by state, words, seconds of audio, and the expected length
        of the whole chapter."""
        owner_filter = request.state.owner_filter
        settings = self._projects.get(project_id, owner_filter).settings
        chapters = self._projects.chapters(project_id, owner_filter)
        return JSONResponse({"object": "list", "data": [chapter_json(chapter, settings) for chapter in chapters]})

    def list_part_ids(
        self,
        project_id: str,
        request: Request,
        offset: Annotated[int, Query(ge=0, le=MAX_PARTS)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PARTS)] = MAX_PARTS,
        state: PartState | None = None,
        audio: bool | None = None,
        noted: bool | None = None,
        character: str | None = None,
    ) -> JSONResponse:
        """The ids of parts in order, filtered as in the list of parts."""
        part_filter = PartFilter(state, audio, noted, character)
        ids = self._projects.part_ids(project_id, request.state.owner_filter, part_filter, offset, limit)
        return JSONResponse({"object": "list", "data": ids})
