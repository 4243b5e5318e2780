"""Uploads and files of gradio_client at Gradio's paths: limited, private to their caller, without file system paths."""

from __future__ import annotations

from collections.abc import Generator
from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from studio.api.sending import range_response, read_span
from studio.api.upload import read_form
from studio.errors import REFUSALS
from studio.library.client_files import MAX_UPLOAD, ClientFile, ClientFiles

FORM_LIMIT = MAX_UPLOAD + 256 * 1024
MAX_FILES = 4
_GUARDED = {"Cache-Control": "private, no-store", "X-Content-Type-Options": "nosniff"}


def gradio_file_routes(files: ClientFiles) -> APIRouter:
    """The routes that replace Gradio's, which would serve all files in its folders to anyone."""
    routes = APIRouter(include_in_schema=False)

    @routes.post("/gradio_api/upload")
    async def keep(request: Request) -> JSONResponse:
        """Store the form's files. Returns a reference for each, which clients send as the file's path."""
        form = await read_form(request, FORM_LIMIT, "files", MAX_FILES)
        form.file("files")  # at least one
        state = request.state
        client_files: list[ClientFile] = []
        try:
            for upload in form.uploads["files"]:
                client_files.append(await files.add_upload(upload, state.owner_filter, state.caller))
        except REFUSALS:
            for file in client_files:
                files.remove(file)
            raise
        return JSONResponse([file.reference for file in client_files])

    @routes.get("/gradio_api/file={reference:path}")
    @routes.get("/gradio_api/file/{reference:path}")
    async def fetch(reference: str, request: Request) -> Response:
        """A file that was created for or uploaded by this caller."""
        file = files.find(reference, request.state.owner_filter)
        (await to_thread.run_sync(file.open)).close()  # raises errors before the first byte

        def read(start: int, stop: int) -> Generator[bytes, None, None]:
            yield from read_span(file.open(), start, stop)

        name = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
        headers, tag = _GUARDED | {"Content-Disposition": name}, file.reference.partition("/")[0]
        return range_response(request, file.size, tag, read, "application/octet-stream", headers)

    return routes
