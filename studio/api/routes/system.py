"""GET /health and /ready: state, progress and load of the studio. GET /metrics: for Prometheus. GET /v1/settings: facts
about the studio. GET /v1/diagnostics: the same with recent problems, as a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from studio.api.openapi import sends
from studio.diagnostics import WARNINGS, settings_in_force, storage, storage_seen_by, versions
from studio.library import Library
from studio.settings import Settings
from studio.speech.recorder import NOT_WHOLE
from studio.speech.speech_service import SpeechService
from studio.update_notice import UpdateNotice
from studio.voices.clip_service import ClipService
from studio.work import read


def system_routes(service: SpeechService, library: Library, clips: ClipService) -> APIRouter:
    transcriber, denoiser = clips.transcriber, clips.denoiser
    routes = APIRouter(tags=["system"])

    @routes.get("/health")
    async def health() -> JSONResponse:
        """200 if the studio is ready; 503 while it starts (with the step and progress from 0 to 1) and after a failure.

        Errors of background work, or `trouble` of the engine, set `degraded`; the studio stays ready and needs no
        restart.
        """
        status = service.status
        if status.state != "ready":
            return JSONResponse(
                {
                    "status": status.state,
                    "doing": status.doing,
                    "progress": round(status.progress, 3),
                    "error": status.error,
                    "transcriber": transcriber.name,
                    "denoiser": denoiser.is_there,
                },
                503,
                headers={"Retry-After": "1"},
            )
        engine = service.host.engine()
        info = asdict(engine.info) | {"model": service.host.model_id}
        load = engine.stats()
        answer: dict[str, object] = {"status": "ready", "engine": info, "load": asdict(load)}
        answer |= {"transcriber": transcriber.name, "denoiser": denoiser.is_there, "work": service.queues.figures}
        answer |= service.health
        if service.recorder is not None:
            answer["takes"] = {outcome: service.register.outcomes[outcome] for outcome in ("kept", *NOT_WHOLE)}
        work = {check.name: check.status for check in service.background}
        answer["degraded"] = load.trouble is not None or any(status.error is not None for status in work.values())
        answer["background"] = {
            name: {"ok": status.error is None, "failures": status.failures} for name, status in work.items()
        }
        if (backup := library.backup) is not None:
            state = backup.status
            answer["backup"] = {"last": state.last, "pending": state.pending, "failed": state.error is not None} | {
                "left_out": len(state.left_out)
            }
        return JSONResponse(answer)

    @routes.get("/readyz", include_in_schema=False)  # as LocalAI and Kubernetes' conventions call it
    @routes.get("/ready")
    async def ready() -> JSONResponse:
        """200 if the studio is ready, else 503, for load balancers."""
        is_ready = service.status.state == "ready"
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    @routes.get("/metrics", **sends("text/plain"))
    async def metrics() -> Response:
        """Counters and histograms in Prometheus' text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return routes


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
        is_ready = status.state == "ready"
        engine = asdict(service.host.engine().info) | {"model": service.host.model_id} if is_ready else None
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
