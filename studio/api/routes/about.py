"""GET /v1/settings: what this studio is. GET /v1/diagnostics: the same with recent trouble, as a file."""

from __future__ import annotations

import logging
from dataclasses import asdict
from datetime import datetime, timezone

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.about import WARNINGS, settings_in_force, storage, versions
from studio.library import Library
from studio.settings import Settings
from studio.speech.service import SpeechService


def about_routes(service: SpeechService, library: Library, settings: Settings) -> APIRouter:
    """The routes that tell about the studio itself."""
    routes = APIRouter(tags=["system"])
    logging.getLogger().addHandler(WARNINGS)

    def facts() -> dict[str, object]:
        """Blocking."""
        return {
            "object": "studio",
            "model": service.host.model_id,
            "keys_needed": bool(settings.api_keys),
            "settings": settings_in_force(settings),
            "versions": versions(),
            "storage": storage(library),
        }

    @routes.get("/v1/settings")
    async def get_settings(request: Request) -> JSONResponse:
        """The settings in force and where each comes from, versions, storage. Keys are only counted.

        The owner of the first key hears what this start has given to it: what was made without a key.
        """
        first = settings.owner(settings.api_keys[0]) if settings.api_keys else None
        adopted = asdict(library.adopted) if request.state.caller == first else None
        return JSONResponse(await to_thread.run_sync(facts) | {"adopted": adopted})

    @routes.get("/v1/diagnostics")
    async def get_diagnostics(request: Request) -> JSONResponse:
        """A file for a report of a fault: the settings, the engine, recent warnings, and this caller's failed takes."""
        status = service.status
        engine = asdict(service.host.engine().info) if status.state == "ready" else None
        failed = [take.as_json() for take in service.takes.list(request.state.caller) if take.state == "failed"]
        now = datetime.now(timezone.utc)
        file = await to_thread.run_sync(facts) | {
            "at": now.isoformat(timespec="seconds"),
            "status": asdict(status),
            "engine": engine,
            "load": asdict(service.stats()) if engine else None,
            "background": {each.name: asdict(each.status) for each in service.background},
            "failed_takes": failed[:50],
            "warnings": WARNINGS.lines,
        }
        name = f"voice-studio-{now:%Y%m%d-%H%M%S}.json"
        return JSONResponse(file, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    return routes
