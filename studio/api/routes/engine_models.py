"""The engine's models over HTTP: /v1/engine/models lists and downloads them, /v1/engine/model switches."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from studio.api.http.access import check_owner
from studio.api.http.body import as_model, read_json
from studio.api.http.openapi import reads
from studio.api.schemas.field_types import StrictBody
from studio.engine_host import EngineHost
from studio.models.hub_download import DownloadStatus
from studio.models.model_list import model_json
from studio.models.model_service import ModelService
from studio.settings import Settings

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
        routes.put(_MODEL, status_code=202, openapi_extra=reads(ModelBody))(self.switch)
        routes.delete(_MODEL)(self.cancel_switch)
        return routes

    async def list_models(self, path: Annotated[str | None, Query(max_length=MAX_PATH)] = None) -> JSONResponse:
        """The models that can be downloaded, the loaded one, and the one at ``path`` on this machine: licence,
        languages, size, the memory that each weight format needs, whether it fits now, and the expected speed. Only for
        the owner."""
        data = [model_json(model) for model in await self._models.listing(path or None)]
        return JSONResponse({"object": "list", "data": data} | self._state())

    async def get_state(self) -> JSONResponse:
        """The loaded model, the progress of a switch and of downloads. Only for the owner."""
        return JSONResponse(self._state())

    async def download(self, name: str) -> JSONResponse:
        """Download a model in the background, or continue an interrupted download; GET /v1/engine/model shows the
        progress. Only for the owner."""
        self._models.begin_download(name)
        return JSONResponse(self._state(), 202)

    async def cancel_download(self, name: str) -> JSONResponse:
        """Cancel a download and remove its unfinished files. Only for the owner."""
        await self._models.cancel_download(name)
        return JSONResponse(self._state())

    async def switch(self, request: Request) -> JSONResponse:
        """Load another model: {"model": "audio8-0.6b"}. Requests that have begun end first; new ones get 503 with
        Retry-After until the model is ready. If it does not load, the previous one is loaded again. Only for the
        owner."""
        body = as_model(await read_json(request), ModelBody)
        await self._models.switch(body.model)
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
