"""GET /health and /ready: state, progress and load of the studio. GET /metrics: for Prometheus."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from studio.api.openapi import sends
from studio.library import Library
from studio.speech.recorder import NOT_WHOLE
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService


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
