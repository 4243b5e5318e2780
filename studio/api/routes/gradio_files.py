"""Uploads and files of gradio_client, at Gradio's own addresses: bounded, each for its caller alone, without paths."""

from __future__ import annotations

import logging
from collections.abc import Generator
from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from studio.api.http.error_responses import ApiError
from studio.api.http.ranges import of_file, ranged
from studio.api.http.upload import read_form
from studio.errors import StudioError
from studio.library.client_files import MAX_UPLOAD, ClientFile, ClientFiles

log = logging.getLogger(__name__)

FORM_LIMIT = MAX_UPLOAD + 256 * 1024
_GUARDED = {"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff"}


def gradio_file_routes(files: ClientFiles) -> APIRouter:
    """The routes that take the place of Gradio's, which would serve whatever lies in its folders to anyone."""
    routes = APIRouter(include_in_schema=False)

    @routes.post("/gradio_api/upload")
    async def keep(request: Request) -> JSONResponse:
        """Keep the form's files; a reference for each, which clients send back as a file's path."""
        form = await read_form(request, FORM_LIMIT, "files")
        form.file("files")  # at least one
        state = request.state
        kept: list[ClientFile] = []
        try:
            for upload in form.uploads["files"]:
                kept.append(await files.add_upload(upload, state.sees, state.caller))
        except (StudioError, OSError) as error:
            for file in kept:
                files.remove(file)
            if isinstance(error, StudioError):
                raise
            log.warning("an upload was not kept: %s", error)
            message = "The upload could not be kept: the studio's temporary folder is full or cannot be written."
            raise ApiError(503, message, "files", "no_room") from error
        return JSONResponse([file.reference for file in kept])

    @routes.api_route("/gradio_api/file={reference:path}", methods=["GET", "HEAD"])
    @routes.api_route("/gradio_api/file/{reference:path}", methods=["GET", "HEAD"])
    async def fetch(reference: str, request: Request) -> Response:
        """A file that was made for this caller, or that it has uploaded."""
        file = files.find(reference, request.state.sees)
        (await to_thread.run_sync(file.open)).close()  # a refusal comes before the first byte

        def read(start: int, stop: int) -> Generator[bytes, None, None]:
            yield from of_file(file.open(), start, stop)

        name = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
        headers = _GUARDED | {"Content-Disposition": name}
        return ranged(request, file.size, file.reference.partition("/")[0], read, "application/octet-stream", headers)

    return routes
