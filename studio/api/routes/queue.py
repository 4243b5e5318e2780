"""Requests under way: GET /v1/queue, DELETE /v1/requests/{id}."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.api.callers import name_of
from studio.settings import Settings
from studio.speech.speech_service import SpeechService


def queue_routes(service: SpeechService, settings: Settings) -> APIRouter:
    """The routes about requests. The list shows the caller's own; an id cannot be guessed, so who has it may use it."""
    routes = APIRouter(tags=["requests"])

    @routes.get("/v1/queue")
    async def get_queue(request: Request) -> JSONResponse:
        """How full the engine and its queue are, how many requests a caller may have at a time (null: any number), the
        caller's name from STUDIO_API_KEYS, and which of the caller's own requests are under way."""
        caller = request.state.caller
        return JSONResponse(service.queue_for(caller) | {"caller": name_of(settings, caller)})

    @routes.delete("/v1/requests/{request_id}")
    async def cancel_request(request_id: str) -> JSONResponse:
        """End a request that waits or speaks; its listener's stream breaks off, and its row is free."""
        service.register.cancel(request_id)
        return JSONResponse({"id": request_id, "object": "request", "cancelled": True})

    return routes
