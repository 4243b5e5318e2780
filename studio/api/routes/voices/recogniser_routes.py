"""The speech recogniser: /v1/recogniser shows it and lets the studio's owner download its model."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.api.http.access import check_owner, is_owner
from studio.settings import Settings
from studio.voices.hearing.recogniser import Transcriber, is_installed
from studio.voices.hearing.recogniser_download import ABOUT, COMMAND, LICENCE, MODEL, RecogniserDownload


def recogniser_routes(transcriber: Transcriber, download: RecogniserDownload, settings: Settings) -> APIRouter:
    routes = APIRouter(tags=["voices"])

    def as_json(request: Request) -> dict[str, object]:
        status = download.status
        return {
            "object": "recogniser",
            "name": transcriber.name,
            "installed": is_installed(),
            "install": COMMAND,
            "offered": {"model": MODEL, "licence": LICENCE, "bytes": ABOUT},
            "may_fetch": is_owner(settings, request),
            "fetching": {"bytes": status.done, "total": status.total} if status.is_running else None,
            "error": status.error,
        }

    @routes.get("/v1/recogniser")
    def get_recogniser(request: Request) -> JSONResponse:
        """The recogniser in use, or the model that can be downloaded and the progress of the download."""
        return JSONResponse(as_json(request))

    @routes.post("/v1/recogniser", status_code=202)
    async def fetch_recogniser(request: Request) -> JSONResponse:
        """Download the model in the background and use it afterwards; GET shows the progress. Only for the owner.

        Answers 501 if the package faster-whisper is not installed.
        """
        check_owner(settings, request)
        await download.begin()
        return JSONResponse(await to_thread.run_sync(as_json, request), 202)

    @routes.delete("/v1/recogniser")
    async def stop_fetching(request: Request) -> JSONResponse:
        """Cancel the download and remove its files. Only for the owner."""
        check_owner(settings, request)
        await download.cancel()
        return JSONResponse(await to_thread.run_sync(as_json, request))

    return routes
