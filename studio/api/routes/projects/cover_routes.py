"""The cover of a project over HTTP: get, set, remove."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from studio.api.http.openapi import reads_form, sends
from studio.api.http.upload import read_form
from studio.api.schemas.projects import project_json
from studio.audio.cover import MAX_COVER, read_cover
from studio.errors import NotFound
from studio.library import Library

FORM_LIMIT = MAX_COVER + 64 * 1024


def cover_routes(library: Library) -> APIRouter:
    routes = APIRouter(tags=["projects"])
    path = "/v1/projects/{project_id}/cover"

    @routes.get(path, **sends("image/jpeg", "image/png"))
    def get_cover(project_id: str, request: Request) -> Response:
        """The cover image of the project's files."""
        cover = library.covers.get(project_id, request.state.owner_filter)
        if cover is None:
            raise NotFound("this project has no cover", "project")
        headers = {"Cache-Control": "private, no-cache", "ETag": f'"{cover.digest}"'}
        return Response(cover.image, media_type=cover.media_type, headers=headers)

    @routes.put(path, openapi_extra=reads_form("cover", required=("cover",)))
    async def put_cover(project_id: str, request: Request) -> JSONResponse:
        """Set the cover: multipart with ``cover``, a JPEG or PNG of at most 4 MiB and 4096 pixels a side."""
        form = await read_form(request, FORM_LIMIT, "cover")
        cover = await to_thread.run_sync(read_cover, form.file("cover"))
        project = await to_thread.run_sync(library.covers.put, project_id, request.state.owner_filter, cover)
        return JSONResponse(project_json(project, None))

    @routes.delete(path)
    def delete_cover(project_id: str, request: Request) -> JSONResponse:
        """Remove the cover."""
        return JSONResponse(project_json(library.covers.put(project_id, request.state.owner_filter, None), None))

    return routes
