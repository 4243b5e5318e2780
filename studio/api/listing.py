"""What there is to choose from: GET /v1/models, GET /v1/models/{id}, GET /v1/audio/voices."""

from __future__ import annotations

import time

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from studio.api.errors import ApiError
from studio.api.schemas import MODEL_ALIASES
from studio.speech import SpeechService
from studio.voices import Voice

STARTED = int(time.time())


def model_ids(service: SpeechService) -> tuple[str, ...]:
    """The ids that `model` may have: the loaded checkpoint's first, then OpenAI's."""
    return (service.host.model_id, *MODEL_ALIASES)


def check_model(service: SpeechService, model: str | None) -> None:
    """Raises ApiError (404) for a model that is not served here; absent or blank means the one that is."""
    if model and model.strip() and model.strip() not in model_ids(service):
        raise ApiError(404, f"The model {model[:80]!r} does not exist", "model", "model_not_found")


def listing_routes(service: SpeechService) -> APIRouter:
    """The listings of this service."""
    routes = APIRouter(tags=["listings"])

    @routes.get("/v1/models")
    async def list_models() -> JSONResponse:
        """The model that is loaded, and the names of OpenAI's that mean it."""
        data = [_model(service, model_id) for model_id in model_ids(service)]
        return JSONResponse({"object": "list", "data": data})

    @routes.get("/v1/models/{model_id:path}")
    async def get_model(model_id: str) -> JSONResponse:
        """One model; its id may contain slashes."""
        check_model(service, model_id)
        return JSONResponse(_model(service, model_id))

    @routes.get("/v1/audio/voices")
    async def list_voices(legacy: bool = False) -> JSONResponse:
        """The voices to speak in; ``legacy=true`` lists bare names, as some servers do."""
        voices = service.voices.listed
        if legacy:
            return JSONResponse({"voices": [voice.id for voice in voices], "uploaded_voices": []})
        data = [_voice(voice) for voice in voices]
        return JSONResponse(
            {
                "object": "list",
                "voices": data,
                "data": data,
                "aliases": service.voices.aliases,
                "uploaded_voices": [],
                "has_more": False,
            }
        )

    return routes


def _model(service: SpeechService, model_id: str) -> dict[str, object]:
    return {
        "id": model_id,
        "object": "model",
        "created": STARTED,
        "owned_by": "fish-voice-studio",
        "task": "text-to-speech",
        "voices": [{"name": voice.id, "language": None} for voice in service.voices.listed],
    }


def _voice(voice: Voice) -> dict[str, object]:
    return {
        "id": voice.id,
        "object": "audio.voice",
        "name": voice.name,
        "text": voice.text,
        "bundled": voice.clip is not None,
    }
