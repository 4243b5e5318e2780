"""What there is to choose from: models and voices."""

from __future__ import annotations

import time
from typing import TypeVar

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from studio.api.errors import ApiError
from studio.api.schemas import MODEL_ALIASES, SpeechOptions
from studio.speech import SpeechService

Options = TypeVar("Options", bound=SpeechOptions)
STARTED = int(time.time())


def model_ids(service: SpeechService) -> tuple[str, ...]:
    """The ids that `model` may have: the loaded checkpoint's first, then OpenAI's."""
    return (service.host.model_id, *MODEL_ALIASES)


def check_model(service: SpeechService, model: str | None) -> None:
    """Raises ApiError (404) for a model that is not served here; absent or blank means the one that is."""
    if model and model.strip() and model.strip() not in model_ids(service):
        raise ApiError(404, f"The model {model[:80]!r} does not exist", "model", "model_not_found")


def with_model_as_voice(service: SpeechService, options: Options) -> Options:
    """The options; some clients have no voice to choose and send its name as the model. Raises ApiError (404)."""
    model = (options.model or "").strip()
    if model and model not in model_ids(service) and options.voice is None and service.voices.knows(model):
        return options.model_copy(update={"model": None, "voice": model})
    check_model(service, model)
    return options


def listing_routes(service: SpeechService) -> APIRouter:
    """The listings of this service."""
    routes = APIRouter(tags=["listings"])

    @routes.get("/v1/models")
    async def list_models() -> JSONResponse:
        """The model that is loaded, and the names of OpenAI's that mean it."""
        data = [_model(service, model_id) for model_id in model_ids(service)]
        return JSONResponse({"object": "list", "data": data})

    @routes.get("/v1/audio/models")
    async def list_audio_models() -> JSONResponse:
        """The same in the shape that Open WebUI asks for."""
        return JSONResponse({"models": [{"id": model_id, "name": model_id} for model_id in model_ids(service)]})

    @routes.get("/v1/models/{model_id:path}")
    async def get_model(model_id: str) -> JSONResponse:
        """One model; its id may contain slashes."""
        if not model_id:
            raise ApiError(404, "Invalid URL (GET /v1/models/)")
        check_model(service, model_id)
        return JSONResponse(_model(service, model_id))

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
