"""GET /v1/models, and the model names in requests."""

from __future__ import annotations

import time
from typing import TypeVar

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.api.error_responses import ApiError
from studio.api.speech_bodies import MODEL_ALIASES, SpeechOptions
from studio.speech.speech_service import SpeechService

Options = TypeVar("Options", bound=SpeechOptions)
STARTED = int(time.time())


def model_ids(service: SpeechService) -> tuple[str, ...]:
    """The valid model ids: the loaded checkpoint's first, then OpenAI's."""
    return (service.host.model_id, *MODEL_ALIASES)


def known_model(service: SpeechService, model: str) -> str | None:
    """The id of a model by one of its names, ignoring case; None for a model that is not served here.

    Clients send either the folder's name (`s2-pro`) or the hub id (`fishaudio/s2-pro`).
    """
    name = model.strip().strip("/").casefold()
    for model_id in model_ids(service):
        folded = model_id.casefold()
        if name == folded or (("/" in name) != ("/" in folded) and _last(name) == _last(folded)):
            return model_id
    return None


async def for_loaded_model(service: SpeechService, options: Options, caller: str) -> Options:
    """The options, with instructions in the form that the model takes, if it takes any, and with a voice that was sent
    as the model, as some clients do. Any other name means the loaded model: clients send names of other servers' models
    that nobody can change. Raises NotReady, Unavailable."""
    if options.instructions:
        info = service.host.engine().info
        if info.instructs and not info.card.ignore_instructions:
            options = options.instructing()
        elif info.card.ignore_instructions or info.card.tags is not None:
            options = options.model_copy(update={"instructions": None})
    model = (options.model or "").strip()
    if not model or options.voice is not None or known_model(service, model) is not None:
        return options
    if await to_thread.run_sync(service.voices.seen_by(caller).knows, model):
        return options.model_copy(update={"model": None, "voice": model})
    return options


def model_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter(tags=["listings"])

    @routes.get("/v1/models")
    def list_models(request: Request) -> JSONResponse:
        """The loaded model, and OpenAI's names for it."""
        data = [_model(service, model_id, request) for model_id in model_ids(service)]
        return JSONResponse({"object": "list", "data": data})

    @routes.get("/v1/audio/models")
    async def list_audio_models() -> JSONResponse:
        """The models in Open WebUI's form."""
        return JSONResponse({"models": [{"id": model_id, "name": model_id} for model_id in model_ids(service)]})

    @routes.get("/v1/test")
    async def test() -> JSONResponse:
        """A constant, by which wyoming-openai and other clients of Kokoro-FastAPI find GET /v1/audio/voices."""
        return JSONResponse({"status": "ok"})

    @routes.get("/v1/models/{model_id:path}")
    def get_model(model_id: str, request: Request) -> JSONResponse:
        """One model; its id may contain slashes."""
        if not model_id:
            raise ApiError(404, "Invalid URL (GET /v1/models/)")
        if (known := known_model(service, model_id)) is None:
            raise ApiError(404, f"The model {model_id[:80]!r} does not exist", "model", "model_not_found")
        return JSONResponse(_model(service, known, request))

    return routes


def _last(model: str) -> str:
    return model.rpartition("/")[2]


def _model(service: SpeechService, model_id: str, request: Request) -> dict[str, object]:
    """The model's card is known once it is loaded."""
    voices = service.voices.seen_by(request.state.owner_filter)
    card = service.host.engine().info.card if service.status.state == "ready" else None
    return {
        "id": model_id,
        "object": "model",
        "created": STARTED,
        "owned_by": "fish-voice-studio",
        "task": "text-to-speech",
        "languages": list(card.languages) if card else [],
        "tags": None if card is None or card.tags is None else list(card.tags),
        "normalize": card.normalize if card else None,
        "demo": card.demo if card else None,
        "voices": [{"name": voice.slug, "language": voice.language or None} for voice in voices.listed],
    }
