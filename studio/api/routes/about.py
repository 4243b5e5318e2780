"""GET /v1/settings: facts about the studio. GET /v1/diagnostics: the same with recent problems, as a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import Response

from studio.diagnostics import WARNINGS, settings_in_force, storage, storage_seen_by, versions
from studio.library import Library
from studio.settings import Settings
from studio.speech.speech_service import SpeechService
from studio.update_notice import UpdateNotice
from studio.work import read


def about_routes(
    service: SpeechService, library: Library, settings: Settings, update_notice: UpdateNotice
) -> APIRouter:
    routes = APIRouter(tags=["system"])

    def facts(caller: str) -> dict[str, object]:
        """The facts that this caller may see. Blocking."""
        is_owner = settings.has_first_key(caller)
        return {
            "object": "studio",
            "model": service.host.model_id,
            "keys_needed": bool(settings.api_keys),
            "is_owner": is_owner,
            "caller": settings.caller_name(caller),
            "settings": settings_in_force(settings) if is_owner else [],
            "versions": versions() | ({"newer studio": newer} if (newer := update_notice.newer) else {}),
            "storage": storage(library) if is_owner else storage_seen_by(library, caller),
        }

    @routes.get("/v1/settings")
    async def get_settings(request: Request) -> Response:
        """Versions and storage. For the holder of the first key also the effective settings and their sources, the
        library's folder and backup, and the number of items without a key that this start assigned to it. Keys are only
        counted."""
        caller = request.state.caller
        is_first = bool(settings.api_keys) and settings.has_first_key(caller)
        adopted = asdict(library.adopted) if is_first else None
        return Response(json.dumps(await read(facts, caller) | {"adopted": adopted}), media_type="application/json")

    @routes.get("/v1/diagnostics")
    async def get_diagnostics(request: Request) -> Response:
        """A file for bug reports: settings, engine, recent warnings, and this caller's failed takes.

        Settings, warnings and the state of background work are for the holder of the first key.
        """
        status = service.status
        engine = asdict(service.host.engine().info) if status.state == "ready" else None
        failed = [take.as_json() for take in service.register.recent(request.state.caller) if take.state == "failed"]
        now = datetime.now(UTC)
        file = await read(facts, request.state.caller)
        file |= {
            "at": now.isoformat(timespec="seconds"),
            "status": asdict(status),
            "engine": engine,
            "load": asdict(service.stats()) if engine else None,
            "background": {check.name: asdict(check.status) for check in service.background if file["is_owner"]},
            "failed_takes": failed[:50],
            "warnings": WARNINGS.lines if file["is_owner"] else [],
        }
        headers = {"Content-Disposition": f'attachment; filename="voice-studio-{now:%Y%m%d-%H%M%S}.json"'}
        # In ASCII: the names of folders need not be UTF-8.
        return Response(json.dumps(file), headers=headers, media_type="application/json")

    return routes
