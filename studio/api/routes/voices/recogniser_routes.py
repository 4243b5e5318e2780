"""The speech recogniser: which one there is, and its model fetched by the studio's owner: /v1/recogniser."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.api.callers import has_first_key
from studio.api.http.error_responses import ApiError
from studio.settings import Settings, on_space
from studio.voices.hearing.fetching import ABOUT, COMMAND, LICENCE, MODEL, RecogniserFetch
from studio.voices.hearing.recogniser import Transcriber, is_installed


def recogniser_routes(transcriber: Transcriber, fetch: RecogniserFetch, settings: Settings) -> APIRouter:
    """The routes about this recogniser."""
    routes = APIRouter(tags=["voices"])

    def may_fetch(request: Request) -> bool:
        """Whether it has the first of STUDIO_API_KEYS; without keys anybody may, but on a Space nobody."""
        return has_first_key(settings, request.state.caller) and bool(settings.api_keys or not on_space())

    def as_json(request: Request) -> dict[str, object]:
        now = fetch.status
        return {
            "object": "recogniser",
            "name": transcriber.name,
            "installed": is_installed(),
            "install": COMMAND,
            "offered": {"model": MODEL, "licence": LICENCE, "bytes": ABOUT},
            "may_fetch": may_fetch(request),
            "fetching": {"bytes": now.done, "total": now.total} if now.is_fetching else None,
            "error": now.error,
        }

    def check(request: Request) -> None:
        if not may_fetch(request):
            raise ApiError(
                403, "This is for the studio's owner, who has the first of its STUDIO_API_KEYS.", code="owner_only"
            )

    @routes.get("/v1/recogniser")
    def get_recogniser(request: Request) -> JSONResponse:
        """What writes down the words of clips; else the model that can be fetched, and how far that is."""
        return JSONResponse(as_json(request))

    @routes.post("/v1/recogniser", status_code=202)
    async def fetch_recogniser(request: Request) -> JSONResponse:
        """Fetch the model in the background and use it from then on; GET says how far it is. For the owner alone.

        Answers 501 where the package faster-whisper is not installed.
        """
        check(request)
        await fetch.begin()
        return JSONResponse(await to_thread.run_sync(as_json, request), 202)

    @routes.delete("/v1/recogniser")
    async def stop_fetching(request: Request) -> JSONResponse:
        """Give up what is being fetched, of which nothing stays. For the owner alone."""
        check(request)
        await fetch.cancel()
        return JSONResponse(await to_thread.run_sync(as_json, request))

    return routes
