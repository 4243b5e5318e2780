"""The models over HTTP: the engine's, which are listed, downloaded and switched, and the recogniser's."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from studio.api.access import check_owner, is_owner
from studio.api.body import JsonBody
from studio.api.field_types import StrictBody
from studio.api.queued import LibraryRoute
from studio.api.sending import until_hangup
from studio.engine_host import EngineHost
from studio.models.hub_download import DownloadStatus
from studio.models.model_list import model_json
from studio.models.model_service import ModelService
from studio.settings import Settings
from studio.voices.recogniser import ABOUT, COMMAND, LICENCE, MODEL, RecogniserDownload, Transcriber, is_installed

MAX_PATH = 4096
_MODELS, _MODEL = "/v1/engine/models", "/v1/engine/model"


class ModelBody(StrictBody):
    model: str = Field(
        min_length=1, max_length=MAX_PATH, description="A name from GET /v1/engine/models, or a path on this machine."
    )


class EngineModelRoutes:
    """All of them are for the owner."""

    def __init__(self, models: ModelService, host: EngineHost, settings: Settings) -> None:
        self._models, self._host, self._settings = models, host, settings

    def router(self) -> APIRouter:
        async def only_owner(request: Request) -> None:
            check_owner(self._settings, request)

        routes = APIRouter(tags=["system"], dependencies=[Depends(only_owner)])
        routes.get(_MODELS)(self.list_models)
        routes.post(_MODELS + "/{name}/download", status_code=202)(self.download)
        routes.delete(_MODELS + "/{name}/download")(self.cancel_download)
        routes.get(_MODEL)(self.get_state)
        routes.put(_MODEL, status_code=202)(self.switch)
        routes.delete(_MODEL)(self.cancel_switch)
        return routes

    async def list_models(
        self, request: Request, path: Annotated[str | None, Query(max_length=MAX_PATH)] = None
    ) -> JSONResponse:
        """The models that can be downloaded, the loaded one, and the one at ``path`` on this machine: licence,
        languages, size, the memory that each weight format needs, whether it fits now, and the expected speed. Only for
        the owner."""
        models = await until_hangup(request, self._models.listing(request.state.caller, path or None))
        data = [model_json(model) for model in models]
        return JSONResponse({"object": "list", "data": data} | self._state())

    async def get_state(self) -> JSONResponse:
        """The loaded model, the progress of a switch and of downloads. Only for the owner."""
        await self._models.look()
        return JSONResponse(self._state())

    async def download(self, name: str) -> JSONResponse:
        """Download a model in the background, or continue an interrupted download; GET /v1/engine/model shows the
        progress. Only for the owner."""
        self._models.begin_download(name)
        return JSONResponse(self._state(), 202)

    async def cancel_download(self, name: str, keep: bool = False) -> JSONResponse:
        """Cancel a download and remove its unfinished files, or keep them with ``keep=true``: the next one continues.
        Only for the owner."""
        await self._models.cancel_download(name, keep)
        return JSONResponse(self._state())

    async def switch(self, body: JsonBody[ModelBody], request: Request) -> JSONResponse:
        """Load another model: {"model": "audio8-0.6b"}. Requests that have begun end first, streams after 60 seconds at
        the latest; new ones get 503 with Retry-After until the model is ready. If it does not load, the previous one is
        loaded again. Only for the owner."""
        await until_hangup(request, self._models.switch(request.state.caller, body.model))
        return JSONResponse(self._state(), 202)

    async def cancel_switch(self) -> JSONResponse:
        """Keep the loaded model; only while requests that have begun are waited for. Only for the owner."""
        await self._models.cancel_switch()
        return JSONResponse(self._state())

    def _state(self) -> dict[str, object]:
        models, host = self._models, self._host
        status = host.status
        return {
            "model": host.model_id,
            "status": status.state,
            "doing": status.doing,
            "progress": round(status.progress, 3),
            "switching_to": models.target,
            "can_cancel": models.is_waiting,
            "cannot_switch": models.cannot_switch,
            "fixed_by_setting": models.is_fixed,
            "error": status.error or host.trouble or models.error,
            "downloads": {name: _download_json(download) for name, download in models.downloads.items()},
        }


def _download_json(status: DownloadStatus) -> dict[str, object]:
    return {"running": status.is_running, "bytes": status.done, "total": status.total, "error": status.error}


def recogniser_routes(transcriber: Transcriber, download: RecogniserDownload, settings: Settings) -> APIRouter:
    """/v1/recogniser shows the speech recogniser and lets the studio's owner download its model."""
    routes = APIRouter(tags=["voices"], route_class=LibraryRoute)

    def as_json(request: Request) -> dict[str, object]:
        status = download.status
        return {
            "object": "recogniser",
            "name": transcriber.name,
            "installed": is_installed(),
            "install": COMMAND if is_owner(settings, request) else None,
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
