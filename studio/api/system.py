"""GET /health: whether the studio can speak now, how far it is on its way there, and how busy it is."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from studio.speech import SpeechService


def system_routes(service: SpeechService) -> APIRouter:
    """The health check of this service."""
    routes = APIRouter(tags=["system"])

    @routes.get("/health")
    async def health() -> JSONResponse:
        """200 when ready; 503 while starting (what it does, how far it is from 0 to 1) and after a failure."""
        status = service.status
        if status.state != "ready":
            return JSONResponse(
                {
                    "status": status.state,
                    "doing": status.doing,
                    "progress": round(status.progress, 3),
                    "error": status.error,
                },
                503,
                headers={"Retry-After": "1"},
            )
        engine = service.host.engine()
        info = asdict(engine.info) | {"model": service.host.model_id}
        return JSONResponse({"status": "ready", "engine": info, "load": asdict(engine.stats())})

    return routes
