"""Fish Audio's protocol on the studio's services, so that its SDKs and integrations work unmodified."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from protocols.client_voices import account_of
from protocols.fish.fish_body import CONSTANTS, for_fish_client
from protocols.fish.fish_speech import asr_routes, tts_routes
from protocols.fish.fish_voices import ModelRoutes, ReferenceRoutes
from protocols.fish.live import live_routes
from studio.api.error_responses import ApiError, Protocol, add_protocol
from studio.services import Studio
from studio.speech.speech_service import SpeechService

PREFIXES = ("/model", "/wallet", "/compat")


def _error(error: ApiError) -> dict[str, object]:
    """Fish Audio's old SDK builds its exception from exactly these two keys, and fails for any other."""
    return {"status": error.status, "message": for_fish_client(error.message, error.param)}


FISH_AUDIO = Protocol(
    name="FishError",
    # Clients with a trailing slash in their base URL send two.
    paths=re.compile(
        r"//?(model|wallet|v1/(tts|asr|references|health|vqgan|chat|voice-design|audio/infill|agent)|compat)(/|$)"
    ),
    error=_error,
    description="Fish Audio's form.",
    not_offered=CONSTANTS["not_offered"],
)


def fish_speech_routes(speech: SpeechService) -> list[APIRouter]:
    """The routes that send speech."""
    add_protocol(FISH_AUDIO)
    return [tts_routes(speech), live_routes(speech)]


def register(studio: Studio) -> None:
    """Add the protocol to a studio."""
    studio.additions.prefixes += PREFIXES
    studio.additions.routers += [
        *fish_speech_routes(studio.speech),
        ModelRoutes(studio).router(),
        ReferenceRoutes(studio).router(),
        asr_routes(studio.clips),
        account_routes(),
    ]


def account_routes() -> APIRouter:
    """The routes of /wallet; ``self`` may be any id."""
    routes = APIRouter(tags=["fish audio"])

    @routes.get("/wallet/{user_id}/api-credit")
    @routes.get("/wallet/{user_id}/package")
    async def wallet(user_id: str, request: Request) -> JSONResponse:
        """The credit or the package: constant. Home Assistant reads the credit during setup, and identifies the account
        by user_id."""
        account, constants = account_of(request), CONSTANTS[request.url.path.rpartition("/")[2]]
        return JSONResponse({"_id": account, "user_id": account} | constants)

    return routes
