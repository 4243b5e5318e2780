"""GET /v1/models, and the model names in requests."""

from __future__ import annotations

import time
from typing import TypeVar

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from engine import EngineInfo
from studio.api.error_responses import ApiError
from studio.api.queued import listed
from studio.api.speech_bodies import MODEL_ALIASES, SpeechOptions
from studio.errors import InvalidRequest
from studio.library.records import RANDOM
from studio.models.catalogue import CATALOGUE
from studio.speech.speech_service import SpeechService

Options = TypeVar("Options", bound=SpeechOptions)
DESIGN = "voicedesign"
"""The task of speech in a voice that is described."""
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
        if name == folded or (("/" in name) != ("/" in folded) and name.split("/")[-1] == folded.split("/")[-1]):
            return model_id
    return None


async def for_loaded_model(service: SpeechService, options: Options, caller: str) -> Options:
    """The options, with instructions in the form that the model takes, if it takes any, and with a voice that was sent
    as the model, as some clients do. Any other name means the loaded model: clients send names of other servers' models
    that nobody can change. Raises NotReady, Unavailable, InvalidRequest for a voice that cannot be designed."""
    if (options.task_type or "").casefold() == DESIGN:
        check_design(service.host.engine().info, options.instructions or "", "instructions")
        field = "voice" if options.ref_audio is None else "ref_audio"
        if getattr(options, field) not in (None, RANDOM):
            raise InvalidRequest(f"a described voice is made up: send instructions without {field}", field)
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


def check_design(info: EngineInfo, description: str, param: str) -> None:
    """Raises InvalidRequest if the loaded model cannot make up the described voice. ``param``: its field."""
    if not info.designs:
        able = " or ".join(f"{model.title} ({model.name})" for model in CATALOGUE if model.designs)
        why, how = "cannot make up a voice from a description", "in the page's settings, or with PUT /v1/engine/model"
        raise InvalidRequest(f"the loaded model {why}; load {able}: {how}", param, "model_does_not_design")
    if not description.strip():
        raise InvalidRequest(f"{param} is blank; describe the voice, such as: an old sailor, hoarse, warm", param)


def model_routes(service: SpeechService) -> APIRouter:
    routes = APIRouter(tags=["listings"])

    @routes.get("/v1/models")
    async def list_models(request: Request) -> JSONResponse:
        """The loaded model, and OpenAI's names for it."""
        data = await listed(request, lambda: [_model(service, model_id, request) for model_id in model_ids(service)])
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
    async def get_model(model_id: str, request: Request) -> JSONResponse:
        """One model; its id may contain slashes."""
        if (known := known_model(service, model_id)) is None:
            raise ApiError(404, f"The model {model_id[:80]!r} does not exist", "model", "model_not_found")
        return JSONResponse(await listed(request, _model, service, known, request))

    return routes


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
